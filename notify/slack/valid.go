package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Slack's limits, in the units of [Length].
const (
	maxText         = 40_000
	maxBlocks       = 50
	maxHeader       = 150
	maxSection      = 3000
	maxFields       = 10
	maxField        = 2000
	maxElements     = 25
	maxContext      = 10
	maxContextText  = 3000
	maxButtonText   = 75
	maxURL          = 3000
	maxBlockID      = 255
	maxAttachments  = 100
	maxAllBlockText = 13_200
)

// received is a message as Slack reads it, without the parts that this package does not check.
type received struct {
	Text        *string           `json:"text"`
	Blocks      []json.RawMessage `json:"blocks"`
	Attachments []json.RawMessage `json:"attachments"`
}

type receivedBlock struct {
	Type     string         `json:"type"`
	BlockID  string         `json:"block_id"`
	Text     *receivedText  `json:"text"`
	Fields   []receivedText `json:"fields"`
	Elements []receivedItem `json:"elements"`
	ImageURL string         `json:"image_url"`
	AltText  string         `json:"alt_text"`
}

type receivedText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// receivedItem is an element of an actions or a context block. The text of a context element is a
// string; that of a button is an object.
type receivedItem struct {
	Type string          `json:"type"`
	Text json.RawMessage `json:"text"`
	URL  string          `json:"url"`
}

// Valid returns why Slack would refuse the body, or nil.
func Valid(body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("slack message: not valid UTF-8")
	}
	var m received
	if err := json.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("slack message: not a JSON object of the expected form: %w", err)
	}
	hasText := m.Text != nil && strings.TrimSpace(*m.Text) != ""
	switch {
	case !hasText && len(m.Blocks) == 0 && len(m.Attachments) == 0:
		return errors.New("slack message: neither text nor blocks")
	case m.Text != nil && Length(*m.Text) > maxText:
		return fmt.Errorf("slack message: text is longer than %d characters", maxText)
	case len(m.Blocks) > maxBlocks:
		return fmt.Errorf("slack message: more than %d blocks", maxBlocks)
	case len(m.Attachments) > maxAttachments:
		return fmt.Errorf("slack message: more than %d attachments", maxAttachments)
	}
	total := 0
	var ids []string
	for i, raw := range m.Blocks {
		var b receivedBlock
		if err := json.Unmarshal(raw, &b); err != nil {
			// Blocks of other types may use the same names in another form.
			if !judged(raw) {
				total += Length(string(raw))
				continue
			}
			return fmt.Errorf("slack message: block %d: %w", i+1, err)
		}
		if b.BlockID != "" && slices.Contains(ids, b.BlockID) {
			return fmt.Errorf("slack message: block %d: block_id %q appears twice", i+1, b.BlockID)
		}
		ids = append(ids, b.BlockID)
		length, err := b.check()
		if err != nil {
			return fmt.Errorf("slack message: block %d (%s): %w", i+1, Plain(b.Type, 30), err)
		}
		total += length
	}
	if total > maxAllBlockText {
		return fmt.Errorf("slack message: the blocks have %d characters, more than %d", total, maxAllBlockText)
	}
	return nil
}

// judged reports whether the block is of a type that this package checks.
func judged(raw []byte) bool {
	var b struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(raw, &b) != nil || slices.Contains([]string{"", "header", "section", "context", "actions", "divider", "image"}, b.Type)
}

// check returns the length of the block's texts, or an error.
func (b *receivedBlock) check() (length int, err error) {
	if Length(b.BlockID) > maxBlockID {
		return 0, fmt.Errorf("block_id is longer than %d characters", maxBlockID)
	}
	switch b.Type {
	case "header":
		if b.Text == nil || b.Text.Type != "plain_text" {
			return 0, errors.New("a plain_text text is required")
		}
		return b.Text.check(maxHeader)
	case "section":
		return b.section()
	case "context":
		return b.context()
	case "actions":
		return b.actions()
	case "image":
		if b.ImageURL == "" || b.AltText == "" {
			return 0, errors.New("image_url and alt_text are required")
		}
		return Length(b.AltText), nil
	case "divider", "rich_text", "markdown", "video", "table", "file":
		return 0, nil
	case "":
		return 0, errors.New("type is required")
	default:
		return 0, errors.New("there is no such type of block in Slack")
	}
}

func (b *receivedBlock) section() (length int, err error) {
	if b.Text == nil && len(b.Fields) == 0 {
		return 0, errors.New("text or fields are required")
	}
	if len(b.Fields) > maxFields {
		return 0, fmt.Errorf("more than %d fields", maxFields)
	}
	if b.Text != nil {
		if length, err = b.Text.check(maxSection); err != nil {
			return 0, err
		}
	}
	for i := range b.Fields {
		n, err := b.Fields[i].check(maxField)
		if err != nil {
			return 0, fmt.Errorf("field %d: %w", i+1, err)
		}
		length += n
	}
	return length, nil
}

func (b *receivedBlock) context() (length int, err error) {
	if len(b.Elements) == 0 || len(b.Elements) > maxContext {
		return 0, fmt.Errorf("1 to %d elements are required", maxContext)
	}
	for i, e := range b.Elements {
		if e.Type == "image" {
			continue
		}
		t := receivedText{Type: e.Type}
		if err := json.Unmarshal(e.Text, &t.Text); err != nil {
			return 0, fmt.Errorf("element %d: a text is required", i+1)
		}
		n, err := t.check(maxContextText)
		if err != nil {
			return 0, fmt.Errorf("element %d: %w", i+1, err)
		}
		length += n
	}
	return length, nil
}

func (b *receivedBlock) actions() (length int, err error) {
	if len(b.Elements) == 0 || len(b.Elements) > maxElements {
		return 0, fmt.Errorf("1 to %d elements are required", maxElements)
	}
	for i, e := range b.Elements {
		if e.Type != "button" {
			continue
		}
		var t receivedText
		if err := json.Unmarshal(e.Text, &t); err != nil || t.Type != "plain_text" {
			return 0, fmt.Errorf("button %d: a plain_text text is required", i+1)
		}
		n, err := t.check(maxButtonText)
		if err != nil {
			return 0, fmt.Errorf("button %d: %w", i+1, err)
		}
		if Length(e.URL) > maxURL {
			return 0, fmt.Errorf("button %d: url is longer than %d characters", i+1, maxURL)
		}
		length += n
	}
	return length, nil
}

func (t *receivedText) check(limit int) (length int, err error) {
	length = Length(t.Text)
	switch {
	case t.Type != "plain_text" && t.Type != "mrkdwn":
		return 0, errors.New("the type of a text must be plain_text or mrkdwn")
	case length == 0:
		return 0, errors.New("a text is empty")
	case length > limit:
		return 0, fmt.Errorf("a text has %d characters, more than %d", length, limit)
	}
	return length, nil
}
