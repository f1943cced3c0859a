package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"tocsin/notify"
	"tocsin/rules"
)

// Bounds of the head of an answer that is kept, in bytes.
const (
	maxHead      = 4 << 10
	maxHeadValue = 1 << 10
	maxHeadName  = 128
)

// Describe tells the request that [Sender.Send] makes of d, byte for byte where
// d.At is set. Of a request that cannot be made it tells only the method.
func (s *Sender) Describe(ctx context.Context, d *notify.Delivery) notify.RequestHead {
	head := notify.RequestHead{Method: http.MethodPost, Headers: []notify.HeaderField{}}
	req, err := s.request(ctx, d, d.At)
	if err != nil {
		return head
	}
	content, err := io.ReadAll(req.Body)
	if err != nil {
		return head
	}
	digest := sha256.Sum256(content)
	head.BodySHA256, head.BodyBytes = hex.EncodeToString(digest[:]), len(content)
	head.Host = rules.CleanText(req.URL.Host, maxHeadValue)
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		for _, value := range req.Header[name] {
			head.Headers = append(head.Headers, sentField(name, value))
		}
	}
	return head
}

// sentField is a header as it is kept. Only what is known to be harmless shows
// its value: a header of the webhook's own may hold anything.
func sentField(name, value string) notify.HeaderField {
	field := notify.HeaderField{Name: rules.CleanText(name, maxHeadName)}
	switch strings.ToLower(name) {
	case "content-type", "user-agent", "webhook-id", "webhook-timestamp":
		field.Value = rules.CleanText(value, maxHeadValue)
	default:
		field.Masked = true
	}
	return field
}

// responseHead is the head of an answer as it is kept.
func (s secrets) responseHead(resp *http.Response) *notify.ResponseHead {
	head := &notify.ResponseHead{StatusLine: s.line(resp.Proto+" "+resp.Status, maxHeadValue), Headers: []notify.HeaderField{}}
	left := maxHead - len(head.StatusLine)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		for _, value := range resp.Header[name] {
			field := s.answeredField(name, value)
			left -= len(field.Name) + len(field.Value)
			if left < 0 {
				head.Truncated = true
				return head
			}
			head.Truncated = head.Truncated || len(value) > maxHeadValue
			head.Headers = append(head.Headers, field)
		}
	}
	return head
}

func (s secrets) answeredField(name, value string) notify.HeaderField {
	field := notify.HeaderField{Name: s.line(name, maxHeadName)}
	lower := strings.ToLower(name)
	switch {
	case lower == "location" || lower == "content-location":
		// A redirect may hold a token in its path.
		if field.Value = redirectHost(value); field.Value == "" {
			field.Masked = true
		}
	case secretName(lower):
		field.Masked = true
	default:
		field.Value = s.line(value, maxHeadValue)
	}
	return field
}

// line is one line of an answer without secrets.
func (s secrets) line(text string, limit int) string {
	return rules.CleanText(s.redact(clean([]byte(text))), limit)
}

// secretName reports whether a header of an answer, by its name in lower case,
// holds a secret of the receiver's own.
func secretName(lower string) bool {
	for _, part := range []string{"cookie", "auth", "token", "secret", "password", "credential", "signature", "session", "api-key", "apikey"} {
		if strings.Contains(lower, part) {
			return true
		}
	}
	return false
}
