package webhook

import (
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

// Bounds of the stored head of a response, in bytes.
const (
	maxHead      = 4 << 10
	maxHeadValue = 1 << 10
	maxHeadName  = 128
)

// Head returns the request that an attempt sends, byte for byte. For an earlier attempt, at d.At,
// it derives the same request. If the request cannot be made, it returns only the method.
func (s *Sender) Head(d *notify.Delivery) notify.RequestHead {
	head := notify.RequestHead{Method: http.MethodPost, Headers: []notify.HeaderField{}}
	now := d.At
	if now.IsZero() {
		now = s.now()
	}
	if p := s.presets.Get(d.Webhook.Preset); p != nil && p.Mails() {
		return s.mailHead(p, d, now)
	}
	r, err := s.request(d, s.targets.get(&d.Webhook), now)
	if err != nil {
		return head
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return head
	}
	head.Method = r.Method
	digest := sha256.Sum256(content)
	head.BodySHA256, head.BodyBytes = hex.EncodeToString(digest[:]), len(content)
	head.Host = rules.CleanText(r.URL.Host, maxHeadValue)
	head.Headers = make([]notify.HeaderField, 0, len(r.Header))
	for _, name := range sortedNames(r.Header) {
		for _, value := range r.Header[name] {
			head.Headers = append(head.Headers, sentField(name, value))
		}
	}
	return head
}

// sortedNames returns the sorted keys of a map.
func sortedNames[V any](m map[string]V) []string {
	names := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(names)
	return names
}

// sentField is a header in the form in which it is shown. Only headers that are known to be
// harmless show their values, because a header of the webhook may contain anything.
func sentField(name, value string) notify.HeaderField {
	field := notify.HeaderField{Name: rules.CleanText(name, maxHeadName)}
	switch http.CanonicalHeaderKey(name) {
	case "Content-Type", "User-Agent", headerID, headerTimestamp:
		field.Value = rules.CleanText(value, maxHeadValue)
	default:
		field.Masked = true
	}
	return field
}

// responseHead is the head of a response in the form in which it is stored.
func (s secrets) responseHead(resp *http.Response) *notify.ResponseHead {
	head := &notify.ResponseHead{
		StatusLine: s.line(resp.Proto+" "+resp.Status, maxHeadValue), Headers: make([]notify.HeaderField, 0, len(resp.Header)),
	}
	left := maxHead - len(head.StatusLine)
	for _, name := range sortedNames(resp.Header) {
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
		// A redirect may contain a token in its path.
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
	return rules.CleanText(s.redact(cleanText(text)), limit)
}

// secretName reports whether a header of an answer, by its name in lower case, contains a secret of
// the receiver.
func secretName(lower string) bool {
	for _, part := range []string{"cookie", "auth", "token", "secret", "password", "credential", "signature", "session", "api-key", "apikey"} {
		if strings.Contains(lower, part) {
			return true
		}
	}
	return false
}
