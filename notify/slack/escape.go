package slack

import (
	"strings"
	"unicode"
	"unicode/utf16"
)

// Length returns the length of text as Slack may measure it: in UTF-16 units, the larger of the
// possible counts.
func Length(text string) int {
	n := 0
	for _, r := range text {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

const ellipsis = "…"

// Escape returns text for a mrkdwn object, at most limit long when escaped. "&", "<" and ">" become
// entities, so that no channel, user or link remains; invalid bytes and control characters are
// replaced. The text is cut between characters, never inside an entity, and ends in an ellipsis if
// it was longer.
func Escape(text string, limit int) string { return bounded(text, limit, entity) }

// Plain returns text for a plain_text object, at most limit long. Slack finds no markup in such
// objects, so nothing is escaped.
func Plain(text string, limit int) string {
	return bounded(text, limit, func(rune) string { return "" })
}

// Code returns text for the inside of a code block or a code span: like [Escape], and no backtick
// in it ends the code.
func Code(text string, limit int) string {
	return bounded(text, limit, func(r rune) string {
		if r == '`' {
			return "ˋ"
		}
		return entity(r)
	})
}

// entity returns the replacement of r in mrkdwn; "" means r itself.
func entity(r rune) string {
	switch r {
	case '&':
		return "&amp;"
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	default:
		return ""
	}
}

// bounded writes text character by character until the limit, and remembers where it can be cut so
// that an ellipsis fits. instead returns the replacement of a character; "" means the character
// itself.
func bounded(text string, limit int, instead func(rune) string) string {
	var b strings.Builder
	b.Grow(min(len(text), limit) + len(ellipsis))
	length, cutAt := 0, 0
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			if r == '\r' {
				continue
			}
			r = '\uFFFD'
		}
		piece := instead(r)
		if piece == "" {
			length += max(utf16.RuneLen(r), 1)
		} else {
			length += Length(piece)
		}
		if length > limit {
			return strings.TrimRightFunc(b.String()[:cutAt], unicode.IsSpace) + ellipsis
		}
		if piece == "" {
			b.WriteRune(r)
		} else {
			b.WriteString(piece)
		}
		if length+Length(ellipsis) <= limit {
			cutAt = b.Len()
		}
	}
	return b.String()
}

// line returns text on one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }
