package clickhouse

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// re2 translates an expression so that RE2 in ClickHouse reads it as Go reads the original. Flags,
// classes and case folding are resolved here with Go's tables, so nothing is left that the two
// could read differently. The result matches the same texts, if they are valid UTF-8. Its capture
// groups have no meaning.
//
// ClickHouse searches at every byte, Go at every character. Only \B holds between two bytes of one
// character. So an expression with \B is searched for after whole characters.
func re2(expression string) (string, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if !hasNoWordBoundary(parsed) {
		writeRE2(&b, parsed)
		return b.String(), nil
	}
	b.WriteString(`\A(?s:.)*?`)
	writeGroup(&b, parsed)
	return b.String(), nil
}

// hasNoWordBoundary reports whether an expression contains \B.
func hasNoWordBoundary(r *syntax.Regexp) bool {
	return r.Op == syntax.OpNoWordBoundary || slices.ContainsFunc(r.Sub, hasNoWordBoundary)
}

func writeRE2(b *strings.Builder, r *syntax.Regexp) {
	switch r.Op {
	case syntax.OpNoMatch:
		b.WriteString(`[^\x{0}-\x{10FFFF}]`)
	case syntax.OpEmptyMatch:
		b.WriteString("(?:)")
	case syntax.OpLiteral:
		for _, c := range r.Rune {
			if r.Flags&syntax.FoldCase != 0 {
				writeFolded(b, c)
			} else {
				writeRune(b, c)
			}
		}
	case syntax.OpCharClass:
		writeClass(b, r.Rune)
	case syntax.OpAnyCharNotNL:
		b.WriteString(`[^\n]`)
	case syntax.OpAnyChar:
		b.WriteString("(?s:.)")
	case syntax.OpBeginLine:
		b.WriteString("(?m:^)")
	case syntax.OpEndLine:
		b.WriteString("(?m:$)")
	case syntax.OpBeginText:
		b.WriteString(`\A`)
	case syntax.OpEndText:
		b.WriteString(`\z`)
	case syntax.OpWordBoundary:
		b.WriteString(`\b`)
	case syntax.OpNoWordBoundary:
		b.WriteString(`\B`)
	case syntax.OpCapture:
		writeGroup(b, r.Sub[0])
	case syntax.OpStar:
		writeGroup(b, r.Sub[0])
		b.WriteByte('*')
	case syntax.OpPlus:
		writeGroup(b, r.Sub[0])
		b.WriteByte('+')
	case syntax.OpQuest:
		writeGroup(b, r.Sub[0])
		b.WriteByte('?')
	case syntax.OpRepeat:
		writeGroup(b, r.Sub[0])
		b.WriteString("{" + strconv.Itoa(r.Min))
		if r.Max != r.Min {
			b.WriteByte(',')
			if r.Max >= 0 {
				b.WriteString(strconv.Itoa(r.Max))
			}
		}
		b.WriteByte('}')
	case syntax.OpConcat:
		for _, sub := range r.Sub {
			if sub.Op == syntax.OpAlternate {
				writeGroup(b, sub)
				continue
			}
			writeRE2(b, sub)
		}
	case syntax.OpAlternate:
		for i, sub := range r.Sub {
			if i > 0 {
				b.WriteByte('|')
			}
			writeRE2(b, sub)
		}
	}
}

func writeGroup(b *strings.Builder, r *syntax.Regexp) {
	b.WriteString("(?:")
	writeRE2(b, r)
	b.WriteByte(')')
}

func writeRune(b *strings.Builder, c rune) {
	switch {
	case c == ' ', '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z':
		b.WriteRune(c)
	default:
		fmt.Fprintf(b, `\x{%X}`, c)
	}
}

// writeFolded writes the class of the characters that differ from c only in case.
func writeFolded(b *strings.Builder, c rune) {
	same := []rune{c, c}
	for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
		same = append(same, other, other)
	}
	if len(same) == 2 {
		writeRune(b, c)
		return
	}
	writeClass(b, same)
}

// writeClass writes a class of ranges, given as pairs.
func writeClass(b *strings.Builder, ranges []rune) {
	if len(ranges) == 0 {
		b.WriteString(`[^\x{0}-\x{10FFFF}]`)
		return
	}
	b.WriteByte('[')
	for i := 0; i+1 < len(ranges); i += 2 {
		fmt.Fprintf(b, `\x{%X}`, ranges[i])
		if ranges[i+1] != ranges[i] {
			fmt.Fprintf(b, `-\x{%X}`, ranges[i+1])
		}
	}
	b.WriteByte(']')
}
