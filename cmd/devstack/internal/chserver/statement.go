package chserver

import (
	"slices"
	"strings"
)

// insertion is an INSERT that contains its rows: the statement for the engine, the format of the
// rows, and where they begin.
type insertion struct {
	head   string
	format string
	data   int // offset in the text of the first byte of the data
}

// splitInsert finds an INSERT with data (FORMAT name … or VALUES …) in a text of which only the
// beginning may be known. Everything else, such as INSERT … SELECT or FROM INFILE, is an ordinary
// statement.
func splitInsert(text string) (insertion, bool) {
	scan := scanner{text: text}
	if !scan.next().is("INSERT") {
		return insertion{}, false
	}
	// The target's name may itself be "format" or "values": step over it.
	token := scan.next()
	for token.is("INTO") || token.is("TABLE") || token.is("FUNCTION") {
		token = scan.next()
	}
	for depth := 0; ; {
		token = scan.next()
		switch {
		case token.text == "":
			return insertion{}, false
		case token.text == ".": // database.table: step over the second name, too
			scan.next()
		case token.text == "(" || token.text == "[" || token.text == "{":
			depth++
		case token.text == ")" || token.text == "]" || token.text == "}":
			depth--
		case depth > 0:
		case token.is("SELECT") || token.is("WITH") || token.is("INFILE") || token.is("WATCH"):
			return insertion{}, false
		case token.is("VALUES"):
			return insertion{head: text[:token.start], format: "Values", data: scan.at}, true
		case token.is("FORMAT"):
			name := scan.next()
			if !name.word {
				return insertion{}, false
			}
			split := insertion{head: text[:token.start], format: name.text, data: scan.at}
			if !strings.EqualFold(name.text, "Values") {
				split.data += dataOffset(text[scan.at:])
			}
			return split, true
		}
	}
}

// dataOffset is the length of the separator between a format's name and its data: white space up to
// and including the first line end.
func dataOffset(rest string) int {
	for i := range len(rest) {
		switch rest[i] {
		case '\n':
			return i + 1
		case ' ', '\t', '\r':
		default:
			return i
		}
	}
	return len(rest)
}

// outputFormat is the format that a FORMAT clause at the end of a statement names, or "".
func outputFormat(text string) string {
	scan := scanner{text: text}
	format := ""
	for depth := 0; ; {
		token := scan.next()
		switch {
		case token.text == "":
			return format
		case token.text == "(":
			depth++
		case token.text == ")":
			depth--
		case depth == 0 && token.is("FORMAT"):
			if name := scan.next(); name.word {
				format = name.text
			}
		}
	}
}

// clientClause returns a clause that only a client can carry out and a server refuses, or "". The
// engine, which is its own client, would read the process's standard input or touch files.
func clientClause(text string) string {
	scan := scanner{text: text}
	inserts := scan.next().is("INSERT")
	for last := scan.next(); last.text != ""; {
		next := scan.next()
		switch {
		case inserts && last.is("INPUT") && next.text == "(":
			return "input()"
		case last.is("INTO") && next.is("OUTFILE"):
			return "INTO OUTFILE"
		case last.is("FROM") && next.is("INFILE"):
			return "FROM INFILE"
		}
		last = next
	}
	return ""
}

// hasWord reports whether the statement contains one of the keywords, outside strings and comments.
func hasWord(text string, words ...string) bool {
	scan := scanner{text: text}
	for token := scan.next(); token.text != ""; token = scan.next() {
		if slices.ContainsFunc(words, token.is) {
			return true
		}
	}
	return false
}

// token is a word, a quoted piece or a single other character; its text is "" at the end.
type token struct {
	text  string
	start int
	word  bool
}

// is compares a keyword; quoted names are none.
func (t token) is(keyword string) bool { return t.word && strings.EqualFold(t.text, keyword) }

// scanner splits SQL into tokens, without white space and comments.
type scanner struct {
	text string
	at   int
}

// next returns the next token. A quote or comment that does not end runs to the end of the text.
func (s *scanner) next() token {
	s.skipBlank()
	start := s.at
	if start >= len(s.text) {
		return token{start: start}
	}
	switch c := s.text[start]; {
	case c == '\'' || c == '"' || c == '`':
		s.skipQuoted(c)
		return token{text: s.text[start:s.at], start: start}
	case isWord(c):
		for s.at < len(s.text) && isWord(s.text[s.at]) {
			s.at++
		}
		return token{text: s.text[start:s.at], start: start, word: true}
	default:
		s.at++
		return token{text: s.text[start:s.at], start: start}
	}
}

// skipQuoted steps over a quoted piece, in which a backslash escapes. A doubled quote reads as two
// adjacent pieces, which has the same effect.
func (s *scanner) skipQuoted(quote byte) {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case quote:
			s.at++
			return
		}
	}
	s.at = len(s.text)
}

// skipBlank steps over white space and the three kinds of comment.
func (s *scanner) skipBlank() {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0:
			s.at++
		case strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "# ") || strings.HasPrefix(rest, "#!"):
			s.skipPast(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			s.skipPast(rest, "*/")
		default:
			return
		}
	}
}

// skipPast steps behind the end marker, or to the end of the text.
func (s *scanner) skipPast(rest, end string) {
	if i := strings.Index(rest, end); i >= 0 {
		s.at += i + len(end)
		return
	}
	s.at = len(s.text)
}

// isWord reports whether the byte can be part of a keyword, name or number.
func isWord(c byte) bool {
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
