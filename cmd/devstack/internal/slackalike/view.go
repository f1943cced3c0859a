package slackalike

import (
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"time"
)

// messageView is an entry in the form in which the page shows it.
type messageView struct {
	*Entry
	Edited      bool
	Avatar      string
	Name        string
	Time        string
	ISO         string
	Text        template.HTML
	Fallback    string
	Truncated   bool
	Blocks      []blockView
	Attachments []attachmentView
	Pretty      string
	HeaderLines []string
}

type blockView struct {
	Kind      string
	Text      template.HTML
	Fields    []template.HTML
	Elements  []elementView
	Accessory *elementView
}

type elementView struct {
	Kind    string // text, image, button, menu or other
	Text    template.HTML
	URL     string
	Style   string
	Action  string // of a button or a menu that tells an app
	Choices []choiceView
}

type choiceView struct {
	Text  template.HTML
	Value string
}

type attachmentView struct {
	Color   string
	Pretext template.HTML
	Author  string
	Title   string
	Link    string
	Text    template.HTML
	Fields  []fieldView
	Blocks  []blockView
	Footer  string
}

type fieldView struct {
	Title string
	Text  template.HTML
	Short bool
}

// view reads the message of an entry after its last change. A refused message is shown as it was
// sent.
func (s *Server) view(e *Entry) messageView {
	body, edited := s.shown(e)
	v := messageView{
		Entry:       e,
		Name:        e.App,
		Time:        e.At.Format("15:04"),
		ISO:         e.At.Format(time.RFC3339Nano),
		Pretty:      pretty(body),
		Edited:      edited,
		HeaderLines: headerLines(e),
	}
	if !e.Accepted {
		return v
	}
	m, _ := judge(e.Headers.Get("Content-Type"), []byte(body))
	if m.Username != "" {
		v.Name = m.Username
	}
	v.Avatar = initial(v.Name)
	v.Truncated = m.Truncated
	v.Blocks = blockViews(m.Blocks, e.isBots())
	for _, a := range m.Attachments {
		v.Attachments = append(v.Attachments, viewAttachment(a))
	}
	switch {
	case len(v.Blocks) > 0:
		v.Fallback = unescape(m.Text)
	case m.PlainText:
		v.Text = plain(m.Text)
	default:
		v.Text = mrkdwn(m.Text)
	}
	return v
}

func initial(name string) string {
	for _, r := range name {
		return strings.ToUpper(string(r))
	}
	return "?"
}

func pretty(body string) string {
	raw := []byte(body)
	if !json.Valid(raw) {
		return body
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if encoder.Encode(json.RawMessage(raw)) != nil {
		return body
	}
	return strings.TrimSpace(out.String())
}

func headerLines(e *Entry) []string {
	var out []string
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Content-Type", "User-Agent"} {
		for _, value := range e.Headers.Values(name) {
			out = append(out, strings.ToLower(name)+": "+value)
		}
	}
	return out
}

func blockViews(blocks []any, pressable bool) []blockView {
	var out []blockView
	for _, b := range blocks {
		if fields, ok := b.(map[string]any); ok {
			out = append(out, viewBlock(fields, pressable))
		}
	}
	return out
}

// viewBlock shows a block that was found valid.
func viewBlock(b map[string]any, pressable bool) blockView {
	v := blockView{Kind: str(b, "type")}
	switch v.Kind {
	case "section":
		v.Text = textObject(b["text"])
		for _, f := range items(b, "fields") {
			v.Fields = append(v.Fields, textObject(f))
		}
		if accessory, ok := b["accessory"].(map[string]any); ok {
			e := viewElement(accessory)
			v.Accessory = &e
		}
	case "header":
		v.Text = textObject(b["text"])
	case "context", "actions":
		for _, e := range items(b, "elements") {
			if fields, ok := e.(map[string]any); ok {
				element := viewElement(fields)
				if pressable && (element.Kind == "button" && element.URL == "" || element.Kind == "menu") {
					element.Action = str(fields, "action_id")
				}
				v.Elements = append(v.Elements, element)
			}
		}
	case "image":
		v.Text = plain(str(b, "alt_text"))
	case "markdown":
		v.Text = plain(str(b, "text"))
	case "rich_text":
		v.Text = plain(richText(b["elements"]))
	}
	return v
}

func viewElement(e map[string]any) elementView {
	switch kind := str(e, "type"); kind {
	case "mrkdwn", "plain_text":
		return elementView{Kind: "text", Text: textObject(e)}
	case "image":
		return elementView{Kind: "image", Text: plain(str(e, "alt_text"))}
	case "button":
		v := elementView{Kind: "button", Text: textObject(e["text"]), Style: str(e, "style")}
		if href, ok := link(str(e, "url")); ok {
			v.URL = href
		}
		return v
	case "static_select":
		v := elementView{Kind: "menu", Text: textObject(e["placeholder"])}
		for _, o := range items(e, "options") {
			if option, ok := o.(map[string]any); ok {
				v.Choices = append(v.Choices, choiceView{textObject(option["text"]), str(option, "value")})
			}
		}
		return v
	default:
		return elementView{Kind: "other", Text: plain(kind)}
	}
}

func viewAttachment(value any) attachmentView {
	a, _ := value.(map[string]any)
	v := attachmentView{
		Color:   color(str(a, "color")),
		Pretext: mrkdwn(str(a, "pretext")),
		Author:  unescape(str(a, "author_name")),
		Title:   unescape(str(a, "title")),
		Text:    mrkdwn(str(a, "text")),
		Footer:  unescape(str(a, "footer")),
		Blocks:  blockViews(items(a, "blocks"), false),
	}
	if href, ok := link(str(a, "title_link")); ok {
		v.Link = href
	}
	for _, f := range items(a, "fields") {
		if fields, ok := f.(map[string]any); ok {
			short, _ := fields["short"].(bool)
			v.Fields = append(v.Fields, fieldView{Title: unescape(str(fields, "title")), Text: mrkdwn(str(fields, "value")), Short: short})
		}
	}
	if v.Pretext+v.Text == "" && v.Title == "" && len(v.Blocks)+len(v.Fields) == 0 {
		v.Text = plain(str(a, "fallback"))
	}
	return v
}

// color is the bar of an attachment: one of three words or a hexadecimal value.
func color(name string) string {
	switch name {
	case "good":
		return "#2b9a66"
	case "warning":
		return "#d9a30f"
	case "danger":
		return "#c8372d"
	}
	if ok, _ := regexp.MatchString(`^#?[0-9a-fA-F]{6}$`, name); ok {
		return "#" + strings.TrimPrefix(name, "#")
	}
	return ""
}

func textObject(value any) template.HTML {
	t, _ := value.(map[string]any)
	if str(t, "type") == "mrkdwn" {
		return mrkdwn(str(t, "text"))
	}
	return plain(str(t, "text"))
}

// richText collects the texts of a rich_text block, one line for each element.
func richText(value any) string {
	var out []string
	for _, e := range asList(value) {
		fields, _ := e.(map[string]any)
		switch {
		case str(fields, "text") != "":
			out = append(out, str(fields, "text"))
		case fields["elements"] != nil:
			out = append(out, richText(fields["elements"]))
		case str(fields, "url") != "":
			out = append(out, str(fields, "url"))
		}
	}
	return strings.Join(out, "")
}

func str(fields map[string]any, name string) string {
	s, _ := fields[name].(string)
	return s
}

func items(fields map[string]any, name string) []any { return asList(fields[name]) }

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

// Address is the path that was called.
func (e *Entry) Address() string { return Hook{Path: e.Hook}.Address() }

// Address is the path at which messages are accepted.
func (h Hook) Address() string {
	if channel, bots := strings.CutPrefix(h.Path, hookOfBot); bots {
		return strings.TrimSpace("/api/chat.postMessage " + channel)
	}
	return "/services/" + h.Path
}

// Webhook reports whether messages are posted to a URL.
func (h Hook) Webhook() bool { return !strings.HasPrefix(h.Path, hookOfBot) }

// Outcome is the answer to the sender, in a line.
func (v messageView) Outcome() string {
	if v.Status == 0 {
		return "no answer"
	}
	return fmt.Sprintf("%d %s", v.Status, v.Answer)
}
