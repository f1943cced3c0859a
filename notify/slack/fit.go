package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// empty replaces an empty text, which Slack does not accept.
const empty = "–"

// Fit cuts the texts of a message's blocks to Slack's limits, and replaces empty ones by a dash, so
// that a template need not know how long a value is. Other errors in a message are left to [Valid].
func Fit(body []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var m map[string]any
	if err := decoder.Decode(&m); err != nil {
		return nil, fmt.Errorf("slack message: not a JSON object: %w", err)
	}
	if text, ok := m["text"].(string); ok {
		m["text"] = shorten(text, maxText)
	}
	blocks, _ := m["blocks"].([]any)
	for _, b := range blocks {
		if b, ok := b.(map[string]any); ok {
			fitBlock(b)
		}
	}
	fitted, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("marshal slack message: %w", err)
	}
	return fitted, nil
}

func fitBlock(b map[string]any) {
	if id, ok := b["block_id"].(string); ok {
		b["block_id"] = shorten(id, maxBlockID)
	}
	elements, _ := b["elements"].([]any)
	switch b["type"] {
	case "header":
		fitText(b["text"], maxHeader)
	case "section":
		fitText(b["text"], maxSection)
		fields, _ := b["fields"].([]any)
		for _, f := range fields {
			fitText(f, maxField)
		}
	case "context":
		for _, e := range elements {
			fitText(e, maxContextText)
		}
	case "actions":
		for _, e := range elements {
			if e, ok := e.(map[string]any); ok && e["type"] == "button" {
				fitText(e["text"], maxButtonText)
			}
		}
	}
}

func fitText(object any, limit int) {
	o, ok := object.(map[string]any)
	if !ok {
		return
	}
	text, ok := o["text"].(string)
	switch {
	case !ok:
	case text == "":
		o["text"] = empty
	default:
		o["text"] = shorten(text, limit)
	}
}

// shorten cuts a text that may already be escaped, but not within an entity.
func shorten(text string, limit int) string {
	if Length(text) <= limit {
		return text
	}
	const longestEntity = len("&amp;")
	cut := strings.TrimSuffix(Plain(text, limit), ellipsis)
	if at := strings.LastIndexByte(cut, '&'); at > len(cut)-longestEntity && !strings.Contains(cut[at:], ";") {
		cut = cut[:at]
	}
	return cut + ellipsis
}
