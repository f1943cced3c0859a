package slackalike

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"
)

const (
	// maxBody bounds a request. Slack names no number; this is far above what its
	// other limits leave room for.
	maxBody = 1 << 20
	// maxText is where Slack cuts the text of a message; it still accepts it:
	// https://api.slack.com/changelog/2018-04-truncating-really-long-messages.
	maxText = 40_000
	// maxAttachments is documented with too_many_attachments.
	maxAttachments = 100
)

// message is an accepted payload.
type message struct {
	Text        string
	Username    string
	Channel     string
	PlainText   bool // the sender asked for no markup in Text
	Truncated   bool // Text was longer than Slack keeps
	Blocks      []any
	Attachments []any
}

// judge parses a payload and returns Slack's verdict on it. The verdict on the webhook's state and
// rate comes before.
func judge(contentType string, body []byte) (message, verdict) {
	raw, v := payload(contentType, body)
	if !v.accepted() {
		return message{}, v
	}
	fields, err := object(raw)
	if err != nil {
		return message{}, refuse(invalidPayload, err.Error())
	}
	var m message
	for _, v := range []verdict{
		member(fields, "text", &m.Text),
		member(fields, "username", &m.Username),
		member(fields, "channel", &m.Channel),
		list(fields, "blocks", &m.Blocks),
		list(fields, "attachments", &m.Attachments),
	} {
		if !v.accepted() {
			return message{}, v
		}
	}
	if markup, ok := fields["mrkdwn"].(bool); ok {
		m.PlainText = !markup
	}
	if strings.TrimSpace(m.Text) == "" && len(m.Blocks) == 0 && len(m.Attachments) == 0 {
		return message{}, refuse(noText, "the payload has neither text nor blocks nor attachments")
	}
	if n := len(m.Attachments); n > maxAttachments {
		return message{}, refuse(tooManyAttachments, fmt.Sprintf("%d attachments, at most %d are allowed", n, maxAttachments))
	}
	if problem := checkBlocks(m.Blocks, "/blocks"); problem != "" {
		return message{}, refuse(invalidBlocks, problem)
	}
	for i, a := range m.Attachments {
		if v := checkAttachment(a, fmt.Sprintf("/attachments/%d", i)); !v.accepted() {
			return message{}, v
		}
	}
	// An app's webhook belongs to one channel, and Slack ignores a channel in the payload; a
	// webhook of the older kind tries to use it. A person, which only the older kind can name, is
	// unknown here.
	if strings.HasPrefix(m.Channel, "@") {
		return message{}, refuse(userNotFound, fmt.Sprintf("the payload asks for %q, and there are no people here", m.Channel))
	}
	if utf8.RuneCountInString(m.Text) > maxText {
		m.Text, m.Truncated = string([]rune(m.Text)[:maxText]), true
	}
	return m, verdict{}
}

// payload finds the JSON in a request: the body, or the form's field "payload".
func payload(contentType string, body []byte) ([]byte, verdict) {
	if len(body) > maxBody {
		return nil, refuse(invalidPayload, fmt.Sprintf("the body exceeds %d bytes", maxBody))
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, refuse(invalidPayload, fmt.Sprintf("the content type %q cannot be read", contentType))
	}
	switch kind {
	case "application/json":
		return body, verdict{}
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, refuse(invalidPayload, "the form cannot be read: "+err.Error())
		}
		if !form.Has("payload") {
			return nil, refuse(invalidPayload, "the form has no field payload")
		}
		return []byte(form.Get("payload")), verdict{}
	default:
		return nil, refuse(invalidPayload, fmt.Sprintf("the content type is %s, neither JSON nor a form", kind))
	}
}

// object decodes exactly one JSON object.
func object(raw []byte) (map[string]any, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("the payload is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("the payload is no JSON object: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	if fields == nil {
		return nil, errors.New("the payload is null")
	}
	return fields, nil
}

// member reads a string that may be missing or null.
func member(fields map[string]any, name string, to *string) verdict {
	switch value := fields[name].(type) {
	case nil:
		return verdict{}
	case string:
		*to = value
		return verdict{}
	default:
		return refuse(invalidPayload, fmt.Sprintf("%s is %s, not a string", name, jsonType(value)))
	}
}

// list reads an array that may be missing or null.
func list(fields map[string]any, name string, to *[]any) verdict {
	switch value := fields[name].(type) {
	case nil:
		return verdict{}
	case []any:
		*to = value
		return verdict{}
	default:
		word := invalidPayload
		if name == "blocks" {
			word = invalidBlocks
		}
		return refuse(word, fmt.Sprintf("%s is %s, not an array", name, jsonType(value)))
	}
}

// checkAttachment checks one attachment of the older kind.
func checkAttachment(value any, at string) verdict {
	fields, ok := value.(map[string]any)
	if !ok {
		return refuse(invalidPayload, fmt.Sprintf("%s is %s, not an object", at, jsonType(value)))
	}
	var blocks []any
	if v := list(fields, "blocks", &blocks); !v.accepted() {
		return v
	}
	if problem := checkBlocks(blocks, at+"/blocks"); problem != "" {
		return refuse(invalidBlocks, problem)
	}
	var said strings.Builder
	for _, name := range []string{"text", "fallback", "title", "pretext", "author_name", "footer", "color", "image_url"} {
		var s string
		if v := member(fields, name, &s); !v.accepted() {
			return v
		}
		if name != "color" {
			said.WriteString(s)
		}
	}
	var pairs []any
	if v := list(fields, "fields", &pairs); !v.accepted() {
		return v
	}
	if said.Len() == 0 && len(blocks) == 0 && len(pairs) == 0 {
		return refuse(noText, at+" says nothing")
	}
	return verdict{}
}

func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	default:
		return "an object"
	}
}
