package preset

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"tocsin/notify/template"
)

// unit is the unit in which a receiver measures texts.
type unit string

const (
	unitBytes unit = "bytes"
	unitRunes unit = "runes"
	unitUTF16 unit = "utf16"
)

func (u unit) valid() bool { return u == unitBytes || u == unitRunes || u == unitUTF16 }

// length returns the length of a text.
func (u unit) length(text string) int {
	switch u {
	case unitRunes:
		return utf8.RuneCountInString(text)
	case unitUTF16:
		n := 0
		for _, r := range text {
			n += max(utf16.RuneLen(r), 1)
		}
		return n
	case unitBytes:
	}
	return len(text)
}

// escaper replaces characters that have a meaning in a receiver's markup.
type escaper struct{ replacer *strings.Replacer }

const maxEscapes = 100

func newEscaper(replace map[string]string) (escaper, error) {
	if len(replace) == 0 {
		return escaper{}, nil
	}
	if len(replace) > maxEscapes || replace[""] != "" {
		return escaper{}, errors.New("escape maps texts to their replacements; an empty text cannot be replaced")
	}
	var pairs []string
	// The longest first, which the replacer prefers.
	for _, from := range slices.SortedFunc(maps.Keys(replace), func(a, b string) int { return len(b) - len(a) }) {
		if from == "" {
			return escaper{}, errors.New("escape: an empty text cannot be replaced")
		}
		pairs = append(pairs, from, replace[from])
	}
	return escaper{strings.NewReplacer(pairs...)}, nil
}

func (e escaper) escape(text string) string {
	if e.replacer == nil {
		return text
	}
	return e.replacer.Replace(text)
}

const ellipsis = "…"

// short returns the beginning of a text, at most n characters.
func short(text string, n int) string {
	if n >= len(text) {
		return text
	}
	runes := 0
	for at := range text {
		if runes == n {
			return strings.TrimRightFunc(text[:at], unicode.IsSpace) + ellipsis
		}
		runes++
	}
	return text
}

// clean drops characters that no receiver shows and some refuse: control characters, and marks that
// reverse the direction of the text after them.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		case r == '\u2028' || r == '\u2029':
			return '\n'
		}
		return r
	}, text)
}

// Cut is a text that was shortened to fit.
type Cut struct {
	Pointer string
	// Length is the length that the text would have had; Max is its limit. Both are in Unit.
	Length, Max int
	Unit        string
}

// String describes the cut.
func (c Cut) String() string {
	return fmt.Sprintf("%s: %d %s cut to %d", c.Pointer, c.Length, c.Unit, c.Max)
}

func (l *leaf) render(r *rendering) (any, bool) {
	text := l.text(r)
	return text, text != ""
}

// text returns the leaf's text within its limit. All values are shortened to the same number of
// characters, and then escaped.
func (l *leaf) text(r *rendering) string {
	escape := r.preset.escape.escape
	if l.html {
		escape = escapeHTML
	} else if l.plain {
		escape = func(text string) string { return text }
	}
	of := func(n int) string {
		limit := template.Limit{OneLine: l.oneLine, Value: func(value string) string { return escape(clean(short(value, n))) }}
		if r.preset.plainURLs && !l.html {
			limit.URL = func(value string) string { return clean(short(value, n)) }
		}
		text, err := l.template.Text(r.values, limit)
		if r.failed(err) {
			return ""
		}
		return text
	}
	shrunk, shrinks := r.shrunk[l.pointer]
	if shrinks && shrunk == 0 {
		return ""
	}
	fits := func(text string) bool {
		return (l.limit == 0 || l.unit.length(text) <= l.limit) && (!shrinks || len(text) <= shrunk)
	}
	whole := of(maxValueRunes)
	if fits(whole) {
		return whole
	}
	cut := Cut{l.pointer, l.unit.length(whole), l.limit, string(l.unit)}
	if shrinks && len(whole) > shrunk {
		cut = Cut{l.pointer, len(whole), shrunk, string(unitBytes)}
	}
	r.cuts = append(r.cuts, cut)
	// A search for the largest number of characters with which the text fits; each counts at least
	// one.
	least, most, best, kept := 0, len(whole), "", 0
	if l.limit > 0 {
		most = min(most, l.limit)
	}
	if shrinks {
		most = min(most, shrunk)
	}
	for least <= most {
		n := (least + most) / 2
		if text := of(n); fits(text) {
			best, kept, least = text, n, n+1
		} else {
			most = n - 1
		}
	}
	// Nothing is left of the values. A value may itself consist of ellipses.
	if kept == 0 && strings.Trim(best, ellipsis+" \n") == "" {
		return ""
	}
	return best
}

// maxValueRunes is more than the longest value has.
const maxValueRunes = 1 << 20

func (l link) render(r *rendering) (any, bool) {
	text, err := l.leaf.template.Text(r.values, template.Limit{OneLine: true})
	if r.failed(err) || l.leaf.limit > 0 && l.leaf.unit.length(text) > l.leaf.limit {
		return nil, false
	}
	if shrunk, found := r.shrunk[l.leaf.pointer]; found && len(text) > shrunk {
		return nil, false
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		l.leaf.domain && !strings.Contains(u.Hostname(), ".") {
		return nil, false
	}
	return text, true
}
