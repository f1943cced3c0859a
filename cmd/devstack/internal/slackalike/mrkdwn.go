package slackalike

import (
	"html/template"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mrkdwn turns Slack's markup into HTML, by the rules of
// https://docs.slack.dev/messaging/formatting-message-text: fenced and inline
// code, quotes, links and mentions in angle brackets, *bold*, _italic_ and
// ~strike~ at word boundaries. Whatever is none of these is text and escaped.
func mrkdwn(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "```") {
		fenced := i%2 == 1
		if fenced && i == strings.Count(text, "```") { // never closed
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

// plain is the text of a plain_text object.
func plain(text string) template.HTML {
	return template.HTML(strings.ReplaceAll(emoji(escape(text)), "\n", "<br>")) //nolint:gosec // went through escape
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

// inline writes one line. It never looks back further than one rune, and each
// opening mark searches its closing one once, so that its cost is bounded by the
// square of a line at worst.
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
		b.WriteString(emoji(escape(line[:size])))
		before, _ = utf8.DecodeLastRuneInString(line[:size])
		line = line[size:]
	}
}

// textRun is the length of the text up to the next mark, at least one rune.
func textRun(line string) int {
	_, first := utf8.DecodeRuneInString(line)
	if i := strings.IndexAny(line[first:], "`<*_~"); i >= 0 {
		return first + i
	}
	return len(line)
}

// closing finds the mark that closes the one with which the line begins, 0 if
// that is no opening mark.
func closing(line string, before rune) int {
	after, _ := utf8.DecodeRuneInString(line[1:])
	if isWord(before) || len(line) < 3 || unicode.IsSpace(after) || after == rune(line[0]) {
		return 0
	}
	for i := 2; i < len(line); i++ {
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

// angled writes what stands in angle brackets: a link, a mention, a date. What
// is neither was meant as text, by a sender who forgot to escape.
func angled(inside string) (string, bool) {
	target, label, labelled := strings.Cut(inside, "|")
	switch {
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

// link lets through what may be followed: web addresses and mail.
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

// escape makes HTML of text in which Slack's three entities stand for their
// characters.
func escape(text string) string { return template.HTMLEscapeString(unescape(text)) }

func unescape(text string) string {
	if !strings.Contains(text, "&") {
		return text
	}
	return strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(text)
}

// emoji replaces the short names that alerts use; others stay as they are.
func emoji(text string) string {
	if strings.Count(text, ":") < 2 {
		return text
	}
	return strings.NewReplacer(
		":rotating_light:", "🚨", ":warning:", "⚠️", ":white_check_mark:", "✅", ":x:", "❌", ":red_circle:", "🔴",
		":large_orange_circle:", "🟠", ":large_yellow_circle:", "🟡", ":large_green_circle:", "🟢", ":large_blue_circle:", "🔵",
		":information_source:", "ℹ️", ":fire:", "🔥", ":bell:", "🔔", ":eyes:", "👀", ":hourglass:", "⌛",
	).Replace(text)
}
