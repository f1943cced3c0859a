package webhook

import (
	"crypto/sha256"
	"encoding/hex"
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

// Describe tells the request that [Sender.Send] makes of d. Of a request that
// cannot be made it tells what is known.
func (s *Sender) Describe(d *notify.Delivery) notify.RequestHead {
	head := notify.RequestHead{Method: http.MethodPost, Headers: []notify.HeaderField{}}
	if d.Body != nil {
		digest := sha256.Sum256(d.Body.Content)
		head.BodySHA256, head.BodyBytes = hex.EncodeToString(digest[:]), len(d.Body.Content)
	}
	target, err := parseURL(d.Webhook.URL)
	if err != nil || d.Body == nil {
		return head
	}
	head.Host = rules.CleanText(target.Host, maxHeadValue)
	// What cannot be signed is not sent, and leaves no header.
	header, err := s.header(d, target, d.At)
	if err != nil {
		return head
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
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
