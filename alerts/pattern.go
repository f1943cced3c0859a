package alerts

import (
	"regexp"
	"strings"

	"tocsin/rules"
)

// maxPatternBytes bounds what [ErrorPattern] returns, below the limit of a rule.
const maxPatternBytes = 900

// ErrorPattern returns an RE2 expression that matches the error message of an exchange, and
// messages that differ from it in ids, numbers, quotations or the text after the first line. It is
// empty if there is no message.
func ErrorPattern(e *rules.Exchange) string {
	message := rules.CleanText(e.ErrorMessage, maxSignedBytes)
	line := firstLine(message)
	if line == "" {
		return ""
	}
	before, after, _ := strings.Cut(message, line)
	after, _, _ = strings.Cut(after, "\n")
	var b strings.Builder
	if plainSpace(before) {
		b.WriteString(`^\s*`)
	}
	space := ""
	for _, p := range pieces(line) {
		if p.shown == " " {
			space += p.text
			continue
		}
		part := p.pattern()
		if space != "" && plainSpace(space) {
			part = `\s+` + part
		} else if space != "" {
			part = `.+` + part
		}
		space = ""
		if b.Len()+len(part) > maxPatternBytes {
			return b.String()
		}
		b.WriteString(part)
	}
	if len(e.ErrorMessage) > maxSignedBytes || !plainSpace(space) || !plainSpace(after) {
		return b.String()
	}
	return b.String() + `\s*(\n|$)`
}

// plainSpace reports whether \s* matches a text. It knows fewer spaces than Unicode.
func plainSpace(text string) bool { return strings.Trim(text, " \t\n\f\r") == "" }

// pattern returns an expression for what a piece may be in other messages.
func (p piece) pattern() string {
	switch {
	case p.shown == p.text:
		return regexp.QuoteMeta(p.text)
	case strings.HasPrefix(p.shown, "#") && strings.ContainsAny(p.text, "0123456789"):
		return `\S*\d\S*`
	case strings.HasPrefix(p.shown, "#"):
		return `\S+`
	}
	// A quotation: its opening rune, and the text up to its closing rune.
	quotes := []rune(p.shown)
	first, last := regexp.QuoteMeta(string(quotes[0])), regexp.QuoteMeta(string(quotes[len(quotes)-1]))
	return first + "[^" + last + "]*" + last
}
