package alerts

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"tocsin/rules"
)

// maxSignatureRunes bounds a signature, and maxSignedBytes how much of a message is read.
const (
	maxSignatureRunes = 200
	maxSignedBytes    = 2 << 10
)

// Signature returns the common part of similar failures: the error type and the first line of the
// message, with "#" in place of each word that contains a digit and "…" in place of each quotation.
// It is clean text of at most 200 characters, and empty for an exchange without an error.
func Signature(e *rules.Exchange) string {
	kind := strings.TrimSpace(rules.CleanText(e.ErrorType, maxSignedBytes))
	message := generalized(rules.CleanText(e.ErrorMessage, maxSignedBytes))
	switch {
	case kind == "":
		return shortened(message)
	case message == "":
		return shortened(kind)
	default:
		return shortened(kind + ": " + message)
	}
}

// generalized removes the parts that differ each time from the first line of a message.
func generalized(message string) string {
	var b strings.Builder
	for _, p := range pieces(firstLine(message)) {
		if p.shown != " " || !strings.HasSuffix(b.String(), " ") {
			b.WriteString(p.shown)
		}
	}
	return strings.TrimSpace(b.String())
}

func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return line
}

// piece is a part of a message, and its replacement in a signature.
type piece struct{ text, shown string }

// pieces splits a line into words, quotations and the characters between them.
func pieces(line string) []piece {
	var list []piece
	last := ""
	for len(line) > 0 {
		first, size := utf8.DecodeRuneInString(line)
		end := quotation(line, first, size)
		var shown string
		switch {
		case end > 0 && !wordBefore(last):
			shown = string(first) + "…" + string(closing(first))
		case !inWord(first):
			end, shown = size, string(first)
			if unicode.IsSpace(first) {
				shown = " "
			}
		default:
			if end = strings.IndexFunc(line, func(r rune) bool { return !inWord(r) }); end < 0 {
				end = len(line)
			}
			shown = generalWord(line[:end])
		}
		list = append(list, piece{line[:end], shown})
		line, last = line[end:], shown
	}
	return list
}

// generalWord keeps a word without digits. For a word with digits it keeps the characters between
// and around them, such as the punctuation at its end.
func generalWord(word string) string {
	if !strings.ContainsFunc(word, unicode.IsDigit) {
		return word
	}
	kept := strings.TrimRight(word, ".-_/:@")
	return "#" + word[len(kept):]
}

// inWord reports whether r belongs to a word; ids, addresses, paths, numbers and times are words.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@", r)
}

// quotation returns where the quotation at the beginning of message ends; 0 if there is none or it
// does not end.
func quotation(message string, first rune, size int) int {
	last := closing(first)
	if last == 0 {
		return 0
	}
	end := strings.IndexRune(message[size:], last)
	if end < 0 {
		return 0
	}
	return size + end + utf8.RuneLen(last)
}

// closing returns the closing rune of a quotation that r opens; 0 if r opens none.
func closing(r rune) rune {
	switch r {
	case '"', '\'', '`':
		return r
	case '“':
		return '”'
	case '«':
		return '»'
	}
	return 0
}

// wordBefore reports whether text ends in a letter, so that an apostrophe after it does not open a
// quotation.
func wordBefore(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return unicode.IsLetter(r)
}

func shortened(text string) string {
	count := 0
	for at := range text {
		if count == maxSignatureRunes-1 && utf8.RuneCountInString(text[at:]) > 1 {
			return text[:at] + "…"
		}
		count++
	}
	return text
}
