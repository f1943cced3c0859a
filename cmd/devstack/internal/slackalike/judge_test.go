package slackalike

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const asJSON = "application/json; charset=utf-8"

// text is a mrkdwn or plain_text object of n characters.
func text(kind string, n int) map[string]any {
	return map[string]any{"type": kind, "text": strings.Repeat("ü", n)}
}

func many(n int, value any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = value
	}
	return out
}

func button(change ...any) map[string]any {
	b := map[string]any{"type": "button", "text": text("plain_text", 4)}
	for i := 0; i < len(change); i += 2 {
		b[change[i].(string)] = change[i+1]
	}
	return b
}

func block(kind string, change ...any) map[string]any {
	b := map[string]any{"type": kind}
	for i := 0; i < len(change); i += 2 {
		b[change[i].(string)] = change[i+1]
	}
	return b
}

func TestJudgePayloads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contentType string
		body        string
		want        refusal
	}{
		"text":                       {asJSON, `{"text":"a"}`, ""},
		"blocks without text":        {asJSON, `{"blocks":[{"type":"divider"}]}`, ""},
		"attachment without text":    {asJSON, `{"attachments":[{"fallback":"a"}]}`, ""},
		"form":                       {"application/x-www-form-urlencoded", "payload=" + url.QueryEscape(`{"text":"a&b"}`), ""},
		"unknown member":             {asJSON, `{"text":"a","unfurl":1}`, ""},
		"text of 40,001":             {asJSON, `{"text":"` + strings.Repeat("a", 40_001) + `"}`, ""},
		"channel of an app":          {asJSON, `{"text":"a","channel":"#elsewhere"}`, ""},
		"form without payload":       {"application/x-www-form-urlencoded", `{"text":"a"}`, invalidPayload},
		"no content type":            {"", `{"text":"a"}`, invalidPayload},
		"plain text":                 {"text/plain", `{"text":"a"}`, invalidPayload},
		"empty body":                 {asJSON, ``, invalidPayload},
		"cut JSON":                   {asJSON, `{"text":"a`, invalidPayload},
		"JSON and more":              {asJSON, `{"text":"a"} {"text":"b"}`, invalidPayload},
		"null":                       {asJSON, `null`, invalidPayload},
		"array":                      {asJSON, `[{"text":"a"}]`, invalidPayload},
		"raw newline in a string":    {asJSON, "{\"text\":\"a\nb\"}", invalidPayload},
		"not UTF-8":                  {asJSON, "{\"text\":\"\xff\"}", invalidPayload},
		"text is a number":           {asJSON, `{"text":1}`, invalidPayload},
		"too large":                  {asJSON, `{"text":"` + strings.Repeat("a", maxBody) + `"}`, invalidPayload},
		"attachments is an object":   {asJSON, `{"attachments":{}}`, invalidPayload},
		"attachment is a string":     {asJSON, `{"attachments":["a"]}`, invalidPayload},
		"nothing":                    {asJSON, `{}`, noText},
		"empty text":                 {asJSON, `{"text":"","blocks":[],"attachments":null}`, noText},
		"blank text":                 {asJSON, `{"text":" \n"}`, noText},
		"empty attachment":           {asJSON, `{"attachments":[{"color":"good"}]}`, noText},
		"101 attachments":            {asJSON, `{"attachments":[` + strings.Repeat(`{"text":"a"},`, 100) + `{"text":"a"}]}`, tooManyAttachments},
		"100 attachments":            {asJSON, `{"attachments":[` + strings.Repeat(`{"text":"a"},`, 99) + `{"text":"a"}]}`, ""},
		"blocks is a string":         {asJSON, `{"text":"a","blocks":"[]"}`, invalidBlocks},
		"bad block in an attachment": {asJSON, `{"attachments":[{"blocks":[{"type":"sectoin"}]}]}`, invalidBlocks},
		"a person":                   {asJSON, `{"text":"a","channel":"@nobody"}`, userNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, got := judge(c.contentType, []byte(c.body))
			if got.word != c.want || (c.want != "") != (got.detail != "") {
				t.Errorf("checked %+v, want %q with a reason", got, c.want)
			}
			if long := name == "text of 40,001"; m.Truncated != long || long && len(m.Text) != maxText {
				t.Errorf("truncated: %v, text of %d", m.Truncated, len(m.Text))
			}
		})
	}
}

func TestJudgeBlocks(t *testing.T) {
	t.Parallel()
	section := block("section", "text", text("mrkdwn", 10))
	for name, c := range map[string]struct {
		blocks []any
		want   string // part of the problem, "" if none is expected
	}{
		"50 blocks":                     {many(50, section), ""},
		"51 blocks":                     {many(51, section), "no more than 50 items"},
		"block is a string":             {many(1, "a"), "must be an object [json-pointer:/blocks/0]"},
		"no type":                       {many(1, map[string]any{}), "missing required field: type"},
		"unknown type":                  {many(1, block("sectoin")), "unsupported type: sectoin"},
		"unknown member":                {many(1, block("divider", "txet", "a")), "invalid additional property: txet"},
		"block_id of 255":               {many(1, block("divider", "block_id", strings.Repeat("a", 255))), ""},
		"block_id of 256":               {many(1, block("divider", "block_id", strings.Repeat("a", 256))), "less than 256"},
		"block_id twice":                {many(2, block("divider", "block_id", "a")), "not unique"},
		"section of 3,000":              {many(1, block("section", "text", text("mrkdwn", 3000))), ""},
		"section of 3,001":              {many(1, block("section", "text", text("mrkdwn", 3001))), "less than 3001 characters, found 3001 [json-pointer:/blocks/0/text/text]"},
		"section without text":          {many(1, block("section")), "missing required field: text or fields"},
		"section with null":             {many(1, block("section", "text", nil)), "missing required field"},
		"section with a string":         {many(1, block("section", "text", "a")), "must be a text object"},
		"section with empty text":       {many(1, block("section", "text", text("mrkdwn", 0))), "more than 0 characters"},
		"section with markdown":         {many(1, block("section", "text", text("markdown", 3))), "must be one of: mrkdwn, plain_text"},
		"emoji in mrkdwn":               {many(1, block("section", "text", block("mrkdwn", "text", "a", "emoji", true))), "invalid additional property: emoji"},
		"emoji no boolean":              {many(1, block("section", "text", block("plain_text", "text", "a", "emoji", "true"))), "must be a boolean"},
		"10 fields of 1,000":            {many(1, block("section", "fields", many(10, text("mrkdwn", 1000)))), ""},
		"11 fields":                     {many(1, block("section", "fields", many(11, text("mrkdwn", 1)))), "no more than 10 items allowed, found 11"},
		"no fields":                     {many(1, block("section", "fields", []any{})), "no less than 1 items"},
		"field of 2,000":                {many(1, block("section", "fields", many(1, text("mrkdwn", 2000)))), ""},
		"field of 2,001":                {many(1, block("section", "fields", many(1, text("mrkdwn", 2001)))), "[json-pointer:/blocks/0/fields/0/text]"},
		"header of 150":                 {many(1, block("header", "text", text("plain_text", 150))), ""},
		"header of 151":                 {many(1, block("header", "text", text("plain_text", 151))), "less than 151"},
		"header with mrkdwn":            {many(1, block("header", "text", text("mrkdwn", 5))), "must be one of: plain_text"},
		"header without text":           {many(1, block("header")), "missing required field"},
		"context of 10":                 {many(1, block("context", "elements", many(10, text("mrkdwn", 5)))), ""},
		"context of 11":                 {many(1, block("context", "elements", many(11, text("mrkdwn", 5)))), "no more than 10 items"},
		"context of none":               {many(1, block("context", "elements", []any{})), "no less than 1"},
		"context with a button":         {many(1, block("context", "elements", many(1, button()))), "must be one of: mrkdwn, plain_text"},
		"context with an image":         {many(1, block("context", "elements", many(1, block("image", "image_url", "https://a.example/b.png", "alt_text", "a")))), ""},
		"actions of 25":                 {many(1, block("actions", "elements", many(25, button()))), ""},
		"actions of 26":                 {many(1, block("actions", "elements", many(26, button()))), "no more than 25 items"},
		"actions without elements":      {many(1, block("actions")), "missing required field"},
		"action_id twice":               {many(1, block("actions", "elements", many(2, button("action_id", "a")))), "not unique"},
		"action_id of 256":              {many(1, block("actions", "elements", many(1, button("action_id", strings.Repeat("a", 256))))), "less than 256"},
		"button of 75":                  {many(1, block("actions", "elements", many(1, button("text", text("plain_text", 75))))), ""},
		"button of 76":                  {many(1, block("actions", "elements", many(1, button("text", text("plain_text", 76))))), "less than 76"},
		"button with mrkdwn":            {many(1, block("actions", "elements", many(1, button("text", text("mrkdwn", 7))))), "must be one of: plain_text"},
		"button url of 3,000":           {many(1, block("actions", "elements", many(1, button("url", "https://"+strings.Repeat("a", 2992))))), ""},
		"button url of 3,001":           {many(1, block("actions", "elements", many(1, button("url", "https://"+strings.Repeat("a", 2993))))), "less than 3001"},
		"button url is no url":          {many(1, block("actions", "elements", many(1, button("url", "/alerts/1")))), "invalid url"},
		"button value of 2,001":         {many(1, block("actions", "elements", many(1, button("value", strings.Repeat("a", 2001))))), "less than 2001"},
		"button style":                  {many(1, block("actions", "elements", many(1, button("style", "warning")))), "primary or danger"},
		"button confirm":                {many(1, block("actions", "elements", many(1, button("confirm", map[string]any{"title": text("plain_text", 5)})))), "/confirm/text"},
		"unknown element":               {many(1, block("actions", "elements", many(1, block("knob")))), "unsupported type: knob"},
		"another menu is known":         {many(1, block("actions", "elements", many(1, block("users_select")))), ""},
		"menu":                          {many(1, block("actions", "elements", many(1, menu(3, 150)))), ""},
		"menu without choices":          {many(1, block("actions", "elements", many(1, block("static_select")))), "/options"},
		"menu of too many choices":      {many(1, block("actions", "elements", many(1, menu(101, 5)))), "no more than 100 items"},
		"menu with a long value":        {many(1, block("actions", "elements", many(1, menu(1, 151)))), "/options/0/value"},
		"accessory":                     {many(1, block("section", "text", text("mrkdwn", 5), "accessory", button())), ""},
		"bad accessory":                 {many(1, block("section", "text", text("mrkdwn", 5), "accessory", "button")), "must be an object"},
		"image":                         {many(1, block("image", "image_url", "https://a.example/b.png", "alt_text", "a")), ""},
		"image without alt text":        {many(1, block("image", "image_url", "https://a.example/b.png")), "missing required field: alt_text"},
		"image without url":             {many(1, block("image", "alt_text", "a")), "missing required field: image_url"},
		"markdown of 12,000":            {many(1, block("markdown", "text", strings.Repeat("a", 12_000))), ""},
		"markdown of 12,001":            {many(1, block("markdown", "text", strings.Repeat("a", 12_001))), "less than 12001"},
		"all texts of 13,200":           {append(many(4, block("section", "text", text("mrkdwn", 3000))), block("section", "text", text("mrkdwn", 1200))), ""},
		"all texts of 13,201":           {append(many(4, block("section", "text", text("mrkdwn", 3000))), block("section", "text", text("mrkdwn", 1201))), "all texts together"},
		"rich text counts":              {many(1, block("rich_text", "elements", many(1, block("rich_text_section", "elements", many(1, block("text", "text", strings.Repeat("a", 13_201))))))), "all texts together"},
		"the first problem is reported": {append(many(1, block("header")), many(1, block("knob"))...), "[json-pointer:/blocks/0/text]"},
		"a problem behind good blocks":  {append(many(2, section), block("header")), "/blocks/2/text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := json.Marshal(map[string]any{"text": "a", "blocks": c.blocks})
			if err != nil {
				t.Fatal(err)
			}
			_, got := judge(asJSON, body)
			if c.want == "" && !got.accepted() {
				t.Errorf("refused: %s %s", got.word, got.detail)
			}
			if c.want != "" && (got.word != invalidBlocks || !strings.Contains(got.detail, c.want)) {
				t.Errorf("checked %q %q, want invalid_blocks with %q", got.word, got.detail, c.want)
			}
		})
	}
}

// TestJudgeAcceptsTocsinsMessages checks that the look-alike accepts the layout that it is made to
// show.
func TestJudgeAcceptsTocsinsMessages(t *testing.T) {
	t.Parallel()
	bodies, err := filepath.Glob("../../../../notify/*/testdata/*.json")
	bodies = slices.DeleteFunc(bodies, func(path string) bool {
		return strings.Contains(path, "/webhook/") && !strings.Contains(path, "/slack-")
	})
	if err != nil || len(bodies) == 0 {
		t.Fatalf("no message of notify/slack is found: %v", err)
	}
	for _, path := range bodies {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, v := judge(asJSON, body); !v.accepted() {
			t.Errorf("%s is refused: %s, %s", path, v.word, v.detail)
		}
	}
}

func TestMrkdwn(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"*bold* _it_ ~no~ `co*d*e`":                   "<b>bold</b> <i>it</i> <s>no</s> <code>co*d*e</code>",
		"*bold _and it_*":                             "<b>bold <i>and it</i></b>",
		"snake_case_name 2*3*4 * a *":                 "snake_case_name 2*3*4 * a *",
		"*open":                                       "*open",
		"**":                                          "**",
		"(*a*), *b*.":                                 "(<b>a</b>), <b>b</b>.",
		"&lt;b&gt; &amp; &amp;lt; & <b> \"":           "&lt;b&gt; &amp; &amp;lt; &amp; &lt;b&gt; &#34;",
		"<https://a.example/?x=1&amp;y|see>":          `<a href="https://a.example/?x=1&amp;y" target="_blank" rel="noopener noreferrer nofollow">see</a>`,
		"<https://a.example>":                         `<a href="https://a.example" target="_blank" rel="noopener noreferrer nofollow">https://a.example</a>`,
		"<javascript:alert(1)|x>":                     "&lt;javascript:alert(1)|x&gt;",
		"<https://a.example\"onx=1|y>":                "",
		"<!here> <@U1> <#C1|ops>":                     `<span class="mention">@here</span> <span class="mention">@U1</span> <span class="mention">ops</span>`,
		"<!date^1795244520^{date_short} {time}|then>": `<time class="date" datetime="2026-11-21T07:02:00Z" data-format="{date_short} {time}">then</time>`,
		"<!date^x^{time}|then> <!date^1|a>":           "then a",
		"<script>alert(1)</script>":                   "&lt;script&gt;alert(1)&lt;/script&gt;",
		"a\nb":                                        "a<br>b",
		"&gt; a\n> b\nc":                              "<blockquote>a<br>b</blockquote>c",
		"x ```\n<b>*a*\n``` y":                        "x <pre>&lt;b&gt;*a*</pre> y",
		"x ```never closed *a*":                       "x ```never closed <b>a</b>",
		":red_circle: *a*: b:c:d":                     "🔴 <b>a</b>: b:c:d",
		"`":                                           "`",
		"\xff*a*":                                     "\xff<b>a</b>",
		"":                                            "",
	} {
		got := string(mrkdwn(in))
		if strings.Contains(in, `"onx`) {
			if strings.Contains(got, `"onx`) {
				t.Errorf("%q breaks out of its attribute: %s", in, got)
			}
			continue
		}
		if got != want {
			t.Errorf("%q becomes\n%s, want\n%s", in, got, want)
		}
	}
}

func TestMrkdwnIsQuickOnHostileText(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	for _, piece := range []string{"*a ", "*a*", "*_~", "<", "`", "```", ":", "&", "> ", "*_a_*", "<http://", "\n"} {
		mrkdwn(strings.Repeat(piece, maxText/len(piece)))
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("twelve hostile texts took %s", took)
	}
}

// FuzzMrkdwn checks that no text becomes markup by itself.
func FuzzMrkdwn(f *testing.F) {
	f.Add("*a* <b> `c` ```d``` <https://e|f> &lt;")
	f.Add("<https://a|b\"c> *_~x~_* :fire:")
	f.Fuzz(func(t *testing.T, in string) {
		for _, out := range []string{string(mrkdwn(in)), string(plain(in))} {
			rest := out
			for {
				_, after, found := strings.Cut(rest, "<")
				if !found {
					break
				}
				tag, _, _ := strings.Cut(after, ">")
				name := strings.TrimPrefix(strings.Fields(tag + " ")[0], "/")
				switch name {
				case "b", "i", "s", "code", "pre", "br", "blockquote":
					if strings.ContainsAny(tag, " \"'") {
						t.Fatalf("%q becomes %q", in, out)
					}
				case "span", "time":
					if strings.Count(tag, `"`) > 6 {
						t.Fatalf("%q becomes %q", in, out)
					}
				case "a":
					href := strings.ToLower(strings.TrimPrefix(tag, `a href="`))
					if tag != "/a" && !strings.HasPrefix(href, "http") && !strings.HasPrefix(href, "mailto:") || strings.Count(tag, `"`) > 6 {
						t.Fatalf("%q becomes %q", in, out)
					}
				default:
					t.Fatalf("%q becomes %q with the tag %q", in, out, fmt.Sprint(name))
				}
				rest = after
			}
		}
	})
}

// menu is a menu with n choices whose values have a given length.
func menu(choices, length int) map[string]any {
	option := map[string]any{"text": map[string]any{"type": "plain_text", "text": "x"}, "value": strings.Repeat("v", length)}
	return map[string]any{
		"type": "static_select", "action_id": "choose", "placeholder": map[string]any{"type": "plain_text", "text": "Choose"}, "options": many(choices, option),
	}
}
