package webhook

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"tocsin/notify"
	"tocsin/rules"
)

const redacted = "[redacted]"

// Lengths below which a text is too common to be a secret.
const (
	minSecret  = 6
	minSegment = 8
)

// secrets are the texts that must not be shown, longest first.
type secrets []string

// secretsOf returns what of a webhook must not be shown: everything of its URL
// beyond the host, the values of its headers, its signing secrets.
func secretsOf(w *notify.Webhook) secrets {
	var list secrets
	atLeast := func(length int, texts ...string) {
		for _, text := range texts {
			if len(text) < length {
				continue
			}
			list = append(list, text)
			// JSON encoders may escape slashes.
			if escaped := strings.ReplaceAll(text, "/", `\/`); escaped != text {
				list = append(list, escaped)
			}
		}
	}
	add := func(texts ...string) { atLeast(minSecret, texts...) }
	add(w.URL)
	if u, err := url.Parse(w.URL); err == nil {
		add(u.RequestURI(), u.Path, u.EscapedPath(), u.RawQuery, u.Fragment)
		atLeast(minSegment, strings.Split(u.Path, "/")...)
		atLeast(minSegment, strings.Split(u.EscapedPath(), "/")...)
		for _, values := range u.Query() {
			atLeast(minSegment, values...)
		}
		if u.User != nil {
			password, _ := u.User.Password()
			add(u.User.String(), u.User.Username(), password)
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
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}

// redact returns text without any of the secrets, nor the beginning of one at
// its end, where the text may have been cut.
func (s secrets) redact(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	for _, secret := range s {
		for n := min(len(secret)-1, len(text)); n >= minSecret; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				text = text[:len(text)-n] + redacted
				break
			}
		}
	}
	return text
}

// header returns the head of an answer without cookies and secrets.
func (s secrets) header(h http.Header) http.Header {
	kept := make(http.Header, len(h))
	for name, values := range h {
		if name == "Set-Cookie" {
			continue
		}
		for _, value := range values {
			kept.Add(name, s.redact(rules.CleanText(value, maxError)))
		}
	}
	return kept
}

// clean returns the beginning of an answer as text that any store can hold, at
// most maxResponse bytes.
func clean(body []byte) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, string(body))
	return rules.CleanText(text, maxResponse)
}
