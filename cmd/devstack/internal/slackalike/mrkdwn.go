package slackalike

import (
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// longestMarked bounds what is between two marks, in bytes.
const longestMarked = 3000

// mrkdwn converts Slack's markup to HTML, by the rules of
// https://docs.slack.dev/messaging/formatting-message-text: fenced and inline code, quotes, links
// and mentions in angle brackets, *bold*, _italic_ and ~strike~ at word boundaries. Everything else
// is escaped text.
func mrkdwn(text string) template.HTML {
	var b strings.Builder
	parts := strings.Split(text, "```")
	for i, part := range parts {
		fenced := i%2 == 1
		if fenced && i == len(parts)-1 { // never closed
			b.WriteString("```")
			fenced = false
		}
		if fenced {
			b.WriteString(`<pre>`)
			b.WriteString(escape(strings.Trim(part, "\n")))
			b.WriteString(`</pre>`)
			continue
		}
		if i > 0 {
			part = strings.TrimPrefix(part, "\n")
		}
		lines(&b, part)
	}
	return template.HTML(b.String()) //nolint:gosec // every piece of text went through escape
}

// plain is the text of a plain_text object: no markup except emoji.
func plain(text string) template.HTML {
	var b strings.Builder
	for len(text) > 0 {
		if text[0] == ':' {
			if sign, size := emoji(text); size > 0 {
				b.WriteString(sign)
				text = text[size:]
				continue
			}
		}
		run := len(text)
		if i := strings.IndexByte(text[1:], ':'); i >= 0 {
			run = 1 + i
		}
		b.WriteString(strings.ReplaceAll(escape(text[:run]), "\n", "<br>"))
		text = text[run:]
	}
	return template.HTML(b.String()) //nolint:gosec // every piece of text went through escape
}

// lines writes text outside of fences, with runs of quoted lines gathered.
func lines(b *strings.Builder, text string) {
	quoting, first := false, true
	for line := range strings.SplitSeq(text, "\n") {
		rest, quoted := strings.CutPrefix(line, "&gt;")
		if !quoted {
			rest, quoted = strings.CutPrefix(line, ">")
		}
		switch {
		case quoted && !quoting:
			b.WriteString("<blockquote>")
		case !quoted && quoting:
			b.WriteString("</blockquote>")
		case !first:
			b.WriteString("<br>")
		}
		quoting, first = quoted, false
		if quoted {
			line = strings.TrimPrefix(rest, " ")
		}
		inline(b, line)
	}
	if quoting {
		b.WriteString("</blockquote>")
	}
}

// inline writes one line. It never looks back further than one rune, and searches a closing mark
// within longestMarked bytes, so that hostile lines are cheap.
func inline(b *strings.Builder, line string) {
	before := ' '
	for len(line) > 0 {
		switch line[0] {
		case '`':
			if end := strings.IndexByte(line[1:], '`'); end > 0 {
				b.WriteString("<code>" + escape(line[1:1+end]) + "</code>")
				before, line = '`', line[end+2:]
				continue
			}
		case '<':
			if end := strings.IndexByte(line, '>'); end > 1 {
				if html, ok := angled(line[1:end]); ok {
					b.WriteString(html)
					before, line = '>', line[end+1:]
					continue
				}
			}
		case ':':
			if sign, size := emoji(line); size > 0 {
				b.WriteString(sign)
				before, line = ':', line[size:]
				continue
			}
		case '*', '_', '~':
			if end := closing(line, before); end > 0 {
				tag := map[byte]string{'*': "b", '_': "i", '~': "s"}[line[0]]
				b.WriteString("<" + tag + ">")
				inline(b, line[1:end])
				b.WriteString("</" + tag + ">")
				before, line = rune(line[0]), line[end+1:]
				continue
			}
		}
		size := textRun(line)
		b.WriteString(escape(line[:size]))
		before, _ = utf8.DecodeLastRuneInString(line[:size])
		line = line[size:]
	}
}

// textRun is the length of the text up to the next mark, at least one rune.
func textRun(line string) int {
	_, first := utf8.DecodeRuneInString(line)
	if i := strings.IndexAny(line[first:], "`<*_~:"); i >= 0 {
		return first + i
	}
	return len(line)
}

// closing finds the mark that closes the opening mark at the beginning of the line; 0 if there is
// no opening mark.
func closing(line string, before rune) int {
	after, _ := utf8.DecodeRuneInString(line[1:])
	if isWord(before) || len(line) < 3 || unicode.IsSpace(after) || after == rune(line[0]) {
		return 0
	}
	for i := 2; i < min(len(line), longestMarked); i++ {
		if line[i] != line[0] {
			continue
		}
		last, _ := utf8.DecodeLastRuneInString(line[:i])
		next, _ := utf8.DecodeRuneInString(line[i+1:])
		if !unicode.IsSpace(last) && (i+1 == len(line) || !isWord(next)) {
			return i
		}
	}
	return 0
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// angled writes the content of angle brackets: a link, a mention, a date. Anything else was meant
// as text, by a sender who forgot to escape it.
func angled(inside string) (string, bool) {
	target, label, labelled := strings.Cut(inside, "|")
	switch {
	case strings.HasPrefix(target, "!date^"):
		return date(target, label), true
	case strings.HasPrefix(target, "!"), strings.HasPrefix(target, "@"), strings.HasPrefix(target, "#"):
		name := strings.TrimPrefix(target, "!")
		if labelled {
			name = label
		} else if strings.HasPrefix(target, "!") {
			name = "@" + name
		}
		return `<span class="mention">` + escape(name) + `</span>`, true
	default:
		href, ok := link(target)
		if !ok {
			return "", false
		}
		if !labelled {
			label = strings.TrimPrefix(target, "mailto:")
		}
		return `<a href="` + template.HTMLEscapeString(href) + `" target="_blank" rel="noopener noreferrer nofollow">` + escape(label) + `</a>`, true
	}
}

// date writes an instant that the reader's browser formats, for !date^<seconds>^<format>. If the
// browser does not, the fallback is shown.
func date(target, fallback string) string {
	parts := strings.SplitN(target, "^", 4)
	seconds, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || len(parts) < 3 {
		return escape(fallback)
	}
	return `<time class="date" datetime="` + time.Unix(seconds, 0).UTC().Format(time.RFC3339) +
		`" data-format="` + escape(parts[2]) + `">` + escape(fallback) + `</time>`
}

// link allows targets that may be followed: web addresses and mail.
func link(target string) (string, bool) {
	target = unescape(target)
	u, err := url.Parse(target)
	if err != nil {
		return "", false
	}
	switch u.Scheme {
	case "http", "https":
		return target, u.Host != ""
	case "mailto":
		return target, true
	default:
		return "", false
	}
}

// escape returns HTML for text in which Slack's three entities represent their characters.
func escape(text string) string { return template.HTMLEscapeString(unescape(text)) }

func unescape(text string) string {
	if !strings.Contains(text, "&") {
		return text
	}
	return strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(text)
}

// emoji finds a short name that alerts use at the beginning of the text, and returns its sign and
// its length. Other names stay as they are.
func emoji(text string) (sign string, size int) {
	end := strings.IndexByte(text[1:], ':')
	if end < 0 {
		return "", 0
	}
	switch text[1 : 1+end] {
	case "rotating_light":
		sign = "🚨"
	case "warning":
		sign = "⚠️"
	case "white_check_mark":
		sign = "✅"
	case "x":
		sign = "❌"
	case "red_circle":
		sign = "🔴"
	case "large_orange_circle":
		sign = "🟠"
	case "large_yellow_circle":
		sign = "🟡"
	case "large_green_circle":
		sign = "🟢"
	case "large_blue_circle":
		sign = "🔵"
	case "information_source":
		sign = "ℹ️"
	case "fire":
		sign = "🔥"
	case "bell":
		sign = "🔔"
	case "eyes":
		sign = "👀"
	case "hourglass":
		sign = "⌛"
	default:
		return "", 0
	}
	return sign, end + 2
}
