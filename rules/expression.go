package rules

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	// maxInstructions bounds an expression, as counted by [instructions]. ClickHouse compiles about
	// a million, because of its memory limit, and refuses more. Go would run such an expression: a
	// rule could then be evaluated, but neither counted nor previewed.
	maxInstructions = 500_000
	// maxRanges bounds the ranges in all classes of an expression. ClickHouse gets them written
	// out, with about twenty characters each, and accepts 64 KiB.
	maxRanges = 3000
)

// expressionProblem returns why an expression cannot be used, in the process and in ClickHouse;
// empty if it can.
func expressionProblem(expression string) string {
	if _, err := regexp.Compile(expression); err != nil {
		return fmt.Sprintf("Must be a valid RE2 expression: %v", err)
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return fmt.Sprintf("Must be a valid RE2 expression: %v", err)
	}
	if instructions(parsed) > maxInstructions || ranges(parsed) > maxRanges {
		return `The expression is too large for ClickHouse; use fewer repetitions, or fewer and simpler classes, such as [A-Za-z] instead of \pL`
	}
	return ""
}

// instructions returns about how many instructions RE2 makes from an expression, rather too many
// than too few. It stops counting when there are too many.
func instructions(r *syntax.Regexp) int {
	sum := 2
	for _, sub := range r.Sub {
		if sum += instructions(sub); sum > maxInstructions {
			return sum
		}
	}
	switch r.Op {
	case syntax.OpLiteral:
		for _, c := range r.Rune {
			sum += utf8.RuneLen(c)
			if r.Flags&syntax.FoldCase != 0 {
				for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
					sum += 1 + utf8.RuneLen(other)
				}
			}
		}
	case syntax.OpCharClass:
		sum += classInstructions(r.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		sum += 16
	case syntax.OpRepeat:
		// An unbounded repetition counts as one more than its minimum.
		sum *= max(r.Max, r.Min+1, 1)
	case syntax.OpNoMatch, syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest,
		syntax.OpConcat, syntax.OpAlternate:
	}
	return sum
}

// ranges returns the number of ranges in the classes of an expression.
func ranges(r *syntax.Regexp) int {
	sum := 0
	if r.Op == syntax.OpCharClass {
		sum = len(r.Rune) / 2
	}
	for _, sub := range r.Sub {
		sum += ranges(sub)
	}
	return sum
}

// classInstructions returns about how many instructions the class of pairs of runes takes.
// Multi-byte characters with the same end share instructions.
func classInstructions(pairs []rune) int {
	type suffix struct {
		low, high byte
		next      int
	}
	known := map[suffix]int{}
	heads := 0
	add := func(low, high []byte) {
		next := 0
		for i, first := range slices.Backward(low) {
			s := suffix{first, high[i], next}
			if known[s] == 0 {
				known[s] = len(known) + 1
			}
			next = known[s]
		}
		heads++
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		splitRange(pairs[i], pairs[i+1], add)
	}
	return len(known) + heads
}

// splitRange splits a range of runes into ranges whose bytes have independent ranges.
func splitRange(low, high rune, add func(low, high []byte)) {
	for _, last := range []rune{0x7F, 0x7FF, 0xFFFF} {
		if low <= last && high > last {
			splitRange(low, last, add)
			splitRange(last+1, high, add)
			return
		}
	}
	for bits := 6; bits < 24 && high > 0x7F; bits += 6 {
		mask := rune(1)<<bits - 1
		if low&^mask == high&^mask {
			break
		}
		if low&mask != 0 {
			splitRange(low, low|mask, add)
			splitRange(low|mask+1, high, add)
			return
		}
		if high&mask != mask {
			splitRange(low, high&^mask-1, add)
			splitRange(high&^mask, high, add)
			return
		}
	}
	add(bytesOf(low), bytesOf(high))
}

// bytesOf returns the encoding of a rune, also for a surrogate, which has none.
func bytesOf(c rune) []byte {
	if c >= 0xD800 && c <= 0xDFFF {
		return []byte{0xED, byte(0x80 | c>>6&0x3F), byte(0x80 | c&0x3F)}
	}
	return utf8.AppendRune(nil, c)
}
