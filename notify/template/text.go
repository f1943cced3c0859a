package template

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cut returns text, shortened to at most limit characters with an ellipsis if it is longer. limit
// is at least 1.
func cut(text string, limit int) string {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := 0
	for at := range text {
		if runes++; runes == limit {
			return strings.TrimRightFunc(text[:at], unicode.IsSpace) + "…"
		}
	}
	return text
}

// oneLine replaces every run of white space and control characters by one space, and drops marks
// that reverse the direction of the text after them.
func oneLine(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			space = true
		case unicode.Is(unicode.Bidi_Control, r):
		default:
			if space && b.Len() > 0 {
				b.WriteByte(' ')
			}
			space = false
			b.WriteRune(r)
		}
	}
	return b.String()
}
