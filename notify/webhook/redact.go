package webhook

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"tocsin/notify"
	"tocsin/rules"
)

const redacted = "[redacted]"

// Lengths below which a text is too common to be treated as a secret.
const (
	minSecret  = 6
	minSegment = 8
)

// secrets are the texts that must not be shown, longest first.
type secrets []string

// secretsOf returns the texts of a webhook that must not be shown: everything in its URL except the
// host, the values of its headers, its signing secrets, its bot token, and more. Texts in more that
// are URLs are treated like its own URL.
func secretsOf(w *notify.Webhook, more []string) secrets {
	var list secrets
	atLeast := func(length int, texts ...string) {
		for _, text := range texts {
			if len(text) < length {
				continue
			}
			list = append(list, spellings(text)...)
		}
	}
	add := func(texts ...string) { atLeast(minSecret, texts...) }
	for _, address := range append([]string{w.URL}, more...) {
		add(address)
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			continue
		}
		add(u.RequestURI(), u.Path, u.EscapedPath(), u.RawQuery, u.Fragment)
		atLeast(minSegment, strings.Split(u.Path, "/")...)
		atLeast(minSegment, strings.Split(u.EscapedPath(), "/")...)
		for _, values := range u.Query() {
			atLeast(minSegment, values...)
		}
		if u.User != nil {
			password, _ := u.User.Password()
			add(u.User.String(), u.User.Username(), password)
			add(base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password)))
		}
	}
	for _, value := range more {
		if _, token, found := strings.Cut(value, " "); found {
			add(token)
		}
	}
	for _, value := range w.Headers {
		add(value)
		// "Bearer TOKEN": the token is the secret, the scheme is a word.
		if _, token, found := strings.Cut(value, " "); found {
			add(token)
		}
	}
	for secret := range strings.FieldsSeq(w.SigningSecret + " " + w.FormerSecret) {
		add(secret, strings.TrimPrefix(secret, "whsec_"))
	}
	add(w.Slack.BotToken, w.Slack.SigningSecret)
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}

// spellings returns a text itself, and the forms in which receivers may return it: in JSON, with
// and without escaped slashes, and in a URL.
func spellings(text string) []string {
	list := []string{text}
	quoted, err := json.Marshal(text)
	if err != nil {
		quoted = []byte(`""`)
	}
	inJSON := string(quoted[1 : len(quoted)-1])
	for _, other := range []string{
		strings.ReplaceAll(text, "/", `\/`), inJSON, strings.ReplaceAll(inJSON, "/", `\/`),
		url.QueryEscape(text), url.PathEscape(text),
	} {
		if other != "" && !slices.Contains(list, other) {
			list = append(list, other)
		}
	}
	return list
}

// redact returns text without the secrets. It also removes the beginning of a secret at the end of
// text, which may have been cut.
func (s secrets) redact(text string) string {
	begins := func(secret string) bool { return strings.Contains(text, secret[:min(minSecret, len(secret))]) }
	if !slices.ContainsFunc(s, begins) {
		return text
	}
	for _, secret := range s {
		if begins(secret) {
			text = strings.ReplaceAll(text, secret, redacted)
		}
	}
	for _, secret := range s {
		if !begins(secret) {
			continue
		}
		for n := min(len(secret)-1, len(text)); n >= minSecret; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				text = text[:len(text)-n] + redacted
				break
			}
		}
	}
	return text
}

// reference returns an id that a receiver has given; nil if it contains a secret.
func (s secrets) reference(id *string) *string {
	if id != nil && s.redact(*id) != *id {
		return nil
	}
	return id
}

// clean returns the beginning of an answer as text that any store accepts, at most maxResponse
// bytes.
func clean(body []byte) string { return cleanText(string(body)) }

func cleanText(text string) string {
	if strings.IndexFunc(text, unprintable) >= 0 {
		text = strings.Map(func(r rune) rune {
			if unprintable(r) {
				return ' '
			}
			return r
		}, text)
	}
	return rules.CleanText(text, maxResponse)
}

func unprintable(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
