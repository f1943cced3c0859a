package slackalike

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of Block Kit, in characters and items, from
// https://docs.slack.dev/reference/block-kit/blocks and its pages on section,
// header, context, actions, image and markdown blocks, on text objects and on
// button elements.
const (
	maxBlocks         = 50
	maxSectionText    = 3000
	maxFields         = 10
	maxFieldText      = 2000
	maxHeaderText     = 150
	maxActions        = 25
	maxContext        = 10
	maxContextText    = 3000
	maxMarkdown       = 12_000
	maxButtonText     = 75
	maxValue          = 2000
	maxURL            = 3000
	maxAltText        = 2000
	maxImageTitle     = 2000
	maxID             = 255
	maxConfirmTitle   = 100
	maxConfirmText    = 300
	maxConfirmButtons = 30
	maxPlaceholder    = 150
	maxOptions        = 100
	maxOptionValue    = 150

	// maxAllText is the limit of the text in all blocks together. It is documented only for
	// markdown blocks; senders measured about 13,200 characters of any kind:
	// https://github.com/slackapi/bolt-js/issues/2509.
	maxAllText = 13_200
)

// blockCheck walks through blocks and keeps the first problem, in the words and with the JSON
// pointer that Slack's Web API uses in its explanations.
type blockCheck struct {
	problem string
	said    int // characters of text so far
	ids     map[string]bool
}

// checkBlocks returns what is wrong with the blocks, "" if nothing is.
func checkBlocks(blocks []any, at string) string {
	c := &blockCheck{ids: map[string]bool{}}
	if len(blocks) > maxBlocks {
		return c.fail(at, "no more than %d items allowed, found %d", maxBlocks, len(blocks))
	}
	for i, b := range blocks {
		c.block(b, fmt.Sprintf("%s/%d", at, i))
		if c.problem != "" {
			return c.problem
		}
	}
	if c.said > maxAllText {
		return c.fail(at, "all texts together must be less than %d characters, found %d", maxAllText+1, c.said)
	}
	return ""
}

// fail notes a problem, unless there is one, and returns it.
func (c *blockCheck) fail(at, format string, args ...any) string {
	if c.problem == "" {
		c.problem = fmt.Sprintf(format, args...) + " [json-pointer:" + at + "]"
	}
	return c.problem
}

func (c *blockCheck) block(value any, at string) {
	b, ok := value.(map[string]any)
	if !ok {
		c.fail(at, "must be an object")
		return
	}
	id := c.str(b, "block_id", at, maxID, false)
	if id != "" && c.ids[id] {
		c.fail(at+"/block_id", "block_id %q is not unique", id)
	}
	c.ids[id] = true
	switch kind, _ := b["type"].(string); kind {
	case "section":
		c.section(b, at)
	case "header":
		c.members(b, at, "text", "level")
		c.text(b["text"], at+"/text", maxHeaderText, "plain_text")
	case "divider":
		c.members(b, at)
	case "context":
		c.members(b, at, "elements")
		for i, e := range c.items(b["elements"], at+"/elements", maxContext) {
			c.contextElement(e, fmt.Sprintf("%s/elements/%d", at, i))
		}
	case "actions":
		c.members(b, at, "elements")
		c.actions(c.items(b["elements"], at+"/elements", maxActions), at+"/elements")
	case "image":
		c.members(b, at, "image_url", "slack_file", "alt_text", "title")
		c.image(b, at)
		if title, given := b["title"]; given {
			c.text(title, at+"/title", maxImageTitle, "plain_text")
		}
	case "markdown":
		c.members(b, at, "text")
		c.said += utf8.RuneCountInString(c.str(b, "text", at, maxMarkdown, true))
	case "rich_text":
		c.members(b, at, "elements")
		c.items(b["elements"], at+"/elements", maxBlocks)
		c.said += said(b["elements"])
	case "":
		c.fail(at, "missing required field: type")
	default:
		c.fail(at+"/type", "unsupported type: %s", kind)
	}
}

func (c *blockCheck) section(b map[string]any, at string) {
	c.members(b, at, "text", "fields", "accessory", "expand")
	text, hasText := b["text"]
	fields, hasFields := b["fields"]
	if !hasText && !hasFields {
		c.fail(at, "missing required field: text or fields")
	}
	if hasText {
		c.text(text, at+"/text", maxSectionText, "mrkdwn", "plain_text")
	}
	if hasFields {
		for i, f := range c.items(fields, at+"/fields", maxFields) {
			c.text(f, fmt.Sprintf("%s/fields/%d", at, i), maxFieldText, "mrkdwn", "plain_text")
		}
	}
	if accessory, given := b["accessory"]; given {
		c.element(accessory, at+"/accessory", true)
	}
}

func (c *blockCheck) contextElement(value any, at string) {
	e, ok := value.(map[string]any)
	if !ok {
		c.fail(at, "must be an object")
		return
	}
	if e["type"] == "image" {
		c.members(e, at, "image_url", "slack_file", "alt_text")
		c.image(e, at)
		return
	}
	c.text(value, at, maxContextText, "mrkdwn", "plain_text")
}

// actions checks interactive elements. Their action_ids must differ within a block.
func (c *blockCheck) actions(elements []any, at string) {
	ids := map[string]bool{}
	for i, e := range elements {
		here := fmt.Sprintf("%s/%d", at, i)
		id := c.element(e, here, false)
		if id != "" && ids[id] {
			c.fail(here+"/action_id", "action_id %q is not unique", id)
		}
		ids[id] = true
	}
}

// element checks an element and returns its action_id. Of the interactive elements, buttons and
// menus are checked completely; the others are known only by name.
func (c *blockCheck) element(value any, at string, accessory bool) string {
	e, ok := value.(map[string]any)
	if !ok {
		c.fail(at, "must be an object")
		return ""
	}
	kind, _ := e["type"].(string)
	switch {
	case kind == "button":
		c.button(e, at)
	case kind == "image" && accessory:
		c.members(e, at, "image_url", "slack_file", "alt_text")
		c.image(e, at)
		return ""
	case kind == "static_select":
		c.menu(e, at)
	case slices.Contains(interactive(), kind):
	case kind == "":
		c.fail(at, "missing required field: type")
	default:
		c.fail(at+"/type", "unsupported type: %s", kind)
	}
	return c.str(e, "action_id", at, maxID, false)
}

func interactive() []string {
	return []string{
		"checkboxes", "datepicker", "datetimepicker", "multi_static_select", "multi_external_select", "multi_users_select",
		"multi_conversations_select", "multi_channels_select", "overflow", "radio_buttons", "external_select",
		"users_select", "conversations_select", "channels_select", "timepicker", "workflow_button",
	}
}

func (c *blockCheck) button(e map[string]any, at string) {
	c.members(e, at, "text", "url", "value", "style", "confirm", "accessibility_label", "action_id")
	c.text(e["text"], at+"/text", maxButtonText, "plain_text")
	c.str(e, "value", at, maxValue, false)
	c.str(e, "accessibility_label", at, maxButtonText, false)
	if link := c.str(e, "url", at, maxURL, false); link != "" && !strings.Contains(link, ":") {
		c.fail(at+"/url", "invalid url: %q", link)
	}
	if style, given := e["style"]; given && style != "primary" && style != "danger" {
		c.fail(at+"/style", "must be primary or danger")
	}
	if value, given := e["confirm"]; given {
		confirm, ok := value.(map[string]any)
		if !ok {
			c.fail(at+"/confirm", "must be an object")
			return
		}
		c.text(confirm["title"], at+"/confirm/title", maxConfirmTitle, "plain_text")
		c.text(confirm["text"], at+"/confirm/text", maxConfirmText, "plain_text", "mrkdwn")
		c.text(confirm["confirm"], at+"/confirm/confirm", maxConfirmButtons, "plain_text")
		c.text(confirm["deny"], at+"/confirm/deny", maxConfirmButtons, "plain_text")
	}
}

// image checks the common part of image blocks and image elements.
func (c *blockCheck) image(e map[string]any, at string) {
	c.str(e, "alt_text", at, maxAltText, true)
	if _, stored := e["slack_file"]; !stored {
		c.str(e, "image_url", at, maxURL, true)
	}
}

// text checks a text object of one of the given types.
func (c *blockCheck) text(value any, at string, most int, types ...string) {
	if value == nil {
		c.fail(at, "missing required field")
		return
	}
	t, ok := value.(map[string]any)
	if !ok {
		c.fail(at, "must be a text object")
		return
	}
	kind, _ := t["type"].(string)
	if !slices.Contains(types, kind) {
		c.fail(at+"/type", "must be one of: %s", strings.Join(types, ", "))
		return
	}
	if kind == "mrkdwn" {
		c.members(t, at, "text", "verbatim")
	} else {
		c.members(t, at, "text", "emoji")
	}
	for _, flag := range []string{"emoji", "verbatim"} {
		if v, given := t[flag]; given {
			if _, ok := v.(bool); !ok {
				c.fail(at+"/"+flag, "must be a boolean")
			}
		}
	}
	c.said += utf8.RuneCountInString(c.str(t, "text", at, most, true))
}

// str reads a string of at most the given length. A required string must not be empty.
func (c *blockCheck) str(fields map[string]any, name, at string, most int, required bool) string {
	value, given := fields[name]
	if !given {
		if required {
			c.fail(at, "missing required field: %s", name)
		}
		return ""
	}
	s, ok := value.(string)
	if !ok {
		c.fail(at+"/"+name, "must be a string")
		return ""
	}
	if required && s == "" {
		c.fail(at+"/"+name, "must be more than 0 characters")
	}
	if n := utf8.RuneCountInString(s); n > most {
		c.fail(at+"/"+name, "must be less than %d characters, found %d", most+1, n)
	}
	return s
}

// items reads an array that is not empty and has at most the given size.
func (c *blockCheck) items(value any, at string, most int) []any {
	items, ok := value.([]any)
	switch {
	case value == nil:
		c.fail(at, "missing required field")
	case !ok:
		c.fail(at, "must be an array")
	case len(items) == 0:
		c.fail(at, "no less than 1 items allowed")
	case len(items) > most:
		c.fail(at, "no more than %d items allowed, found %d", most, len(items))
	}
	return items
}

// members refuses members that an object does not have. Every object has a type, and every block
// may have a block_id.
func (c *blockCheck) members(fields map[string]any, at string, allowed ...string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name != "type" && name != "block_id" && !slices.Contains(allowed, name) {
			c.fail(at, "invalid additional property: %s", name)
		}
	}
}

// said counts the characters of every "text" below a value.
func said(value any) int {
	n := 0
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			n += said(e)
		}
	case map[string]any:
		for name, e := range v {
			if s, ok := e.(string); ok && name == "text" {
				n += utf8.RuneCountInString(s)
			} else {
				n += said(e)
			}
		}
	}
	return n
}
