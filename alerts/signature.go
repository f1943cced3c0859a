package alerts

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"tocsin/rules"
)

// maxSignatureRunes bounds a signature, and maxSignedBytes what is read of a message.
const (
	maxSignatureRunes = 200
	maxSignedBytes    = 2 << 10
)

// Signature returns what exchanges that failed alike have in common: the error
// type and the first line of the message, in which "#" stands for each word that
// holds a digit and "…" for each quotation. It is clean text of at most 200
// characters, empty for an exchange without an error.
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

// generalized leaves out of the first line of a message what differs each time.
func generalized(message string) string {
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	var b strings.Builder
	for len(message) > 0 {
		first, size := utf8.DecodeRuneInString(message)
		if end := quotation(message, first, size); end > 0 && !wordBefore(b.String()) {
			b.WriteRune(first)
			b.WriteString("…")
			b.WriteRune(closing(first))
			message = message[end:]
			continue
		}
		if !inWord(first) {
			if unicode.IsSpace(first) {
				first = ' '
			}
			if first != ' ' || !strings.HasSuffix(b.String(), " ") {
				b.WriteRune(first)
			}
			message = message[size:]
			continue
		}
		end := strings.IndexFunc(message, func(r rune) bool { return !inWord(r) })
		if end < 0 {
			end = len(message)
		}
		b.WriteString(generalWord(message[:end]))
		message = message[end:]
	}
	return strings.TrimSpace(b.String())
}

// generalWord keeps a word without a digit, and of one with digits what stands
// between and around, such as the punctuation at its end.
func generalWord(word string) string {
	if !strings.ContainsFunc(word, unicode.IsDigit) {
		return word
	}
	kept := strings.TrimRight(word, ".-_/:@")
	return "#" + word[len(kept):]
}

// inWord reports whether r belongs to a word in the sense of ids, addresses,
// paths, numbers and times.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@", r)
}

// quotation returns where the quotation that begins message ends, 0 where none
// begins or it does not end.
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

// closing returns what ends a quotation that r begins, 0 where r begins none.
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

// wordBefore reports whether text ends in a letter, so that an apostrophe after
// it begins no quotation.
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
