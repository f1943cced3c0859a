// Package picture draws what receivers of presets show, for the handbook. The pictures are SVG, for
// light and dark pages, and are made from the same bodies that are sent.
//
// A picture shows the parts of a body that people read, in a plain layout. The layout of the
// service itself is different.
package picture

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tocsin/alerts"
	"tocsin/notify/preset"
	"tocsin/notify/template"
)

// layout says where a body has the parts that people read.
type layout struct {
	// above, title, text and below are pointers to texts. facts points to a mapping, or to a list
	// of mappings with a name or title and a value. All may be empty.
	above, title, text, facts, below string
}

func layouts() map[string]layout {
	return map[string]layout{
		"alertmanager":   {"/0/labels/severity", "/0/annotations/summary", "/0/annotations/description", "/0/labels", ""},
		"discord":        {"", "/embeds/0/title", "/embeds/0/description", "/embeds/0/fields", "/embeds/0/footer/text"},
		"email":          {"", "/subject", "/text", "", ""},
		"goalert":        {"", "/summary", "/details", "/meta", ""},
		"google-chat":    {"", "", "/text", "", ""},
		"grafana-irm":    {"/state", "/title", "/message", "", ""},
		"incident-io":    {"/status", "/title", "/description", "/metadata", ""},
		"jira":           {"/fields/issuetype/name", "/fields/summary", "/fields/description", "", "/body"},
		"jsm":            {"/priority", "/message", "/description", "/details", "/note"},
		"mattermost":     {"/attachments/0/pretext", "/attachments/0/title", "/attachments/0/text", "/attachments/0/fields", ""},
		"ntfy":           {"", "/title", "/message", "", ""},
		"pagerduty":      {"/payload/severity", "/payload/summary", "/payload/custom_details/message", "/payload/custom_details", ""},
		"pushover":       {"", "/title", "/message", "", "/url_title"},
		"rootly":         {"/state", "/title", "/description", "", ""},
		"servicenow":     {"/records/0/type", "", "/records/0/description", "/records/0/additional_info", ""},
		"splunk-on-call": {"/message_type", "/entity_display_name", "/state_message", "", ""},
		"teams": {
			"/attachments/0/content/body/0/text", "/attachments/0/content/body/1/text", "/attachments/0/content/body/2/text", "/attachments/0/content/body/3/facts",
			"/attachments/0/content/actions/0/title",
		},
		"telegram": {"", "", "/text", "", ""},
		"twilio":   {"", "", "/Body", "", ""},
	}
}

// Sizes, in pixels.
const (
	width    = 720
	left     = 40
	lineHigh = 22
	gap      = 14
	nameWide = 150
	// perLine, perTitle and perValue are the numbers of characters in a line of text, of a title
	// and of a value.
	perLine, perTitle, perValue = 84, 68, 62
	mostLines                   = 14
	mostFacts                   = 8
	mostBodies                  = 9
)

// Draw returns a picture of what a receiver gets when an alert is raised, and when a person
// resolves it.
func Draw(p *preset.Preset) ([]byte, error) {
	var d drawing
	sample := template.Samples()[0]
	for _, event := range []preset.Event{preset.Fired, preset.Resolved} {
		body, err := bodyOf(p, event, &sample)
		if err != nil {
			return nil, err
		}
		d.card(p, event, body)
	}
	return d.svg(p.Name), nil
}

// bodyOf returns the body that is sent, as a tree.
func bodyOf(p *preset.Preset, event preset.Event, sample *alerts.Instance) (any, error) {
	inputs := p.Examples()
	body, _, problem := p.Body(preset.Sample(event, sample), inputs)
	if problem != nil {
		return nil, fmt.Errorf("%s: %w", p.ID, problem)
	}
	if strings.HasPrefix(body.ContentType, "application/x-www-form-urlencoded") {
		values, err := url.ParseQuery(string(body.Content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.ID, err)
		}
		root := map[string]any{}
		for name := range values {
			root[name] = values.Get(name)
		}
		return root, nil
	}
	var root any
	if err := json.Unmarshal(body.Content, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", p.ID, err)
	}
	return root, nil
}

// at returns the value at a pointer; nil if there is none. Pointers lead into texts that contain
// JSON.
func at(value any, pointer string) any {
	if pointer == "" {
		return nil
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n >= len(v) {
				return nil
			}
			value = v[n]
		default:
			return nil
		}
	}
	if text, isText := value.(string); isText && strings.HasPrefix(text, "{") {
		var inner any
		if json.Unmarshal([]byte(text), &inner) == nil {
			return inner
		}
	}
	return value
}

func textAt(value any, pointer string) string {
	text, _ := at(value, pointer).(string)
	return strings.TrimSpace(text)
}

// drawing is a picture in progress.
type drawing struct {
	parts []string
	y     int
}

func (d *drawing) text(class string, x int, text string) {
	d.parts = append(d.parts, fmt.Sprintf(`<text class="%s" x="%d" y="%d">%s</text>`, class, x, d.y, html.EscapeString(text)))
}

// lines writes a text in lines. The first line is bold if the service shows it so.
func (d *drawing) lines(class, text string, perLine int) {
	n := 0
	for paragraph := range strings.SplitSeq(text, "\n") {
		bold := class
		if plain := unmarked(paragraph); plain != paragraph {
			paragraph, bold = plain, class+" t"
		}
		for _, line := range wrapped(paragraph, perLine) {
			if n++; n > mostLines {
				d.y += lineHigh
				d.text(class, left, "…")
				return
			}
			d.y += lineHigh
			d.text(bold, left, line)
		}
	}
}

// unmarked removes the markup of bold text in chats, and escapes.
func unmarked(text string) string {
	plain := strings.NewReplacer("<b>", "", "</b>", "", "**", "").Replace(text)
	if found := regexp.MustCompile(`^\*([^*]+)\*`).FindStringSubmatch(plain); found != nil {
		plain = found[1] + strings.TrimPrefix(plain, found[0])
	}
	return plain
}

// unescaped removes the escapes of markup.
func unescaped(text string) string {
	text = regexp.MustCompile(`\\([\\*_{}\[\]^~+|!<>#`+"`"+`])`).ReplaceAllString(text, "$1")
	return strings.ReplaceAll(html.UnescapeString(text), "\u200b", "")
}

// wrapped breaks a text into lines of at most n characters.
func wrapped(text string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		for utf8.RuneCountInString(word) > n {
			runes := []rune(word)
			if line != "" {
				lines, line = append(lines, line), ""
			}
			lines, word = append(lines, string(runes[:n])), string(runes[n:])
		}
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// fact is a name with its value.
type fact struct{ name, value string }

// factsOf lists what is at a pointer.
func factsOf(value any) (facts []fact) {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			if text, isText := v[name].(string); isText {
				facts = append(facts, fact{name, text})
			}
		}
		slices.SortFunc(facts, func(a, b fact) int { return strings.Compare(a.name, b.name) })
	case []any:
		for _, element := range v {
			member, _ := element.(map[string]any)
			name, _ := member["name"].(string)
			title, _ := member["title"].(string)
			text, _ := member["value"].(string)
			facts = append(facts, fact{name + title, text})
		}
	}
	return facts
}

// whole lists all texts and numbers of a body in which the layout finds nothing.
func whole(value any, name string) (facts []fact) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sorted(v) {
			facts = append(facts, whole(v[key], strings.TrimPrefix(name+" "+key, " "))...)
		}
	case []any:
		for _, element := range v {
			facts = append(facts, whole(element, name)...)
		}
	case nil, bool:
	case string:
		if v != "[redacted]" {
			facts = append(facts, fact{name, v})
		}
	default:
		facts = append(facts, fact{name, fmt.Sprint(v)})
	}
	return facts
}

func sorted(m map[string]any) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// card draws one message.
func (d *drawing) card(p *preset.Preset, event preset.Event, body any) {
	of := layouts()[p.ID]
	top := d.y
	d.y += lineHigh + gap
	d.text("s", left, p.Name+" · "+strings.ToLower(event.Word()))
	above, title, text, below := textAt(body, of.above), textAt(body, of.title), textAt(body, of.text), textAt(body, of.below)
	if title == "" && text == "" {
		text, below = below, ""
	}
	facts := factsOf(at(body, of.facts))
	if title == "" && text == "" {
		above, facts = "", whole(body, "")
		facts = facts[:min(len(facts), mostBodies)]
	}
	// What is already shown is not repeated.
	facts = slices.DeleteFunc(facts, func(f fact) bool {
		return f.value == text || f.value == title || f.value == above || strings.Contains(f.value, "\n")
	})
	if above != "" {
		d.lines("k", unescaped(unmarked(above)), perTitle)
	}
	if title != "" {
		d.lines("h", unescaped(unmarked(title)), perTitle)
	}
	if text != "" {
		d.y += gap / 3
		d.lines("b", unescaped(text), perLine)
	}
	if len(facts) > 0 {
		d.y += gap / 2
	}
	for _, f := range facts[:min(len(facts), mostFacts)] {
		d.y += lineHigh
		d.text("s", left, short(f.name, 19))
		d.text("b", left+nameWide, short(unescaped(f.value), perValue))
	}
	if below != "" {
		d.y += gap / 2
		d.lines("s", unescaped(below), perLine)
	}
	d.y += gap + 6
	card := fmt.Sprintf(`<rect class="c" x="12" y="%d" width="%d" height="%d" rx="8"/><rect class="%s" x="12" y="%d" width="5" height="%d" rx="2.5"/>`,
		top+12, width-24, d.y-top-12, event, top+12, d.y-top-12)
	d.parts = append([]string{card}, d.parts...)
}

func short(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// svg returns the picture.
func (d *drawing) svg(name string) []byte {
	const style = `.p{fill:#f6f8fa}.c{fill:#fff;stroke:#d0d7de}text{font:15px system-ui,sans-serif;fill:#1f2328}.s,.k{fill:#57606a}.h{font-size:17px;font-weight:600}.t{font-weight:600}` +
		`.fired{fill:#cf222e}.resolved{fill:#1a7f37}` +
		`@media (prefers-color-scheme:dark){.p{fill:#161b22}.c{fill:#0d1117;stroke:#30363d}text{fill:#e6edf3}.s,.k{fill:#9198a1}.fired{fill:#ff7b72}.resolved{fill:#3fb950}}`
	height := d.y + 14
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" role="img" aria-labelledby="t">`+"\n", width, height, width)
	fmt.Fprintf(&b, "<title id=\"t\">What Tocsin sends to %s when an alert is raised, and when it is resolved</title>\n<style>%s</style>\n", html.EscapeString(name), style)
	fmt.Fprintf(&b, `<rect class="p" width="%d" height="%d" rx="10"/>`+"\n", width, height)
	for _, part := range d.parts {
		b.WriteString(part + "\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}
