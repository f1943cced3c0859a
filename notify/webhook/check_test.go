package webhook_test

import (
	"encoding/base64"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/webhook"
)

// atomicString is a text that a handler leaves for a test.
type atomicString struct {
	mu   sync.Mutex
	text string
}

func (s *atomicString) set(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
}

func (s *atomicString) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// only checks that fields contains exactly one entry, or none if message is empty.
func only(t *testing.T, fields []fault.Field, field, message string) {
	t.Helper()
	if message == "" {
		if len(fields) != 0 {
			t.Errorf("fields %v, want none", fields)
		}
		return
	}
	if len(fields) != 1 || fields[0].Field != field || !strings.Contains(fields[0].Message, message) {
		t.Errorf("fields %v, want one of %s: …%s…", fields, field, message)
	}
}

func TestCheckURL(t *testing.T) {
	for url, message := range map[string]string{
		"https://hooks.slack.com/services/T/B/x": "",
		"http://10.0.0.1:8080/x?y=z":             "",
		"":                                       "must begin with https://",
		"hooks.slack.com/services":               "must begin with https://",
		"ftp://x.example":                        "must begin with https://",
		"https://":                               "names no host",
		"https://x.example/#part":                "remove the # and the text after it",
		"https://[::1":                           "cannot be read",
		"https://a%FFb.example/":                 "host is not valid text",
		"https://a%E2%98%83b.example/":           "",
		"https://x.example:65535/":               "",
		"https://x.example:65536/":               "port must be from 1 to 65535",
		"https://x.example:0/":                   "port must be from 1 to 65535",
		"https://x.example/" + strings.Repeat("x", webhook.MaxURLBytes): "at most",
	} {
		t.Run(url, func(t *testing.T) { only(t, webhook.CheckURL(url), "url", message) })
	}
}

func TestCheckHeaders(t *testing.T) {
	many := map[string]string{}
	for i := range webhook.MaxHeaders + 1 {
		many["X-"+strconv.Itoa(i)] = "v"
	}
	for name, c := range map[string]struct {
		headers        map[string]string
		field, message string
	}{
		"none":         {nil, "", ""},
		"good":         {map[string]string{"Authorization": "Bearer x", "X-Team": "erp"}, "", ""},
		"host":         {map[string]string{"host": "x"}, "headers.host", "sets this header itself"},
		"length":       {map[string]string{"Content-Length": "1"}, "headers.Content-Length", "sets this header itself"},
		"encoding":     {map[string]string{"Transfer-Encoding": "x"}, "headers.Transfer-Encoding", "sets this header itself"},
		"connection":   {map[string]string{"connection": "close"}, "headers.connection", "sets this header itself"},
		"ours":         {map[string]string{"WEBHOOK-anything": "x"}, "headers.WEBHOOK-anything", "sets this header itself"},
		"idempotency":  {map[string]string{"Idempotency-Key": "x"}, "headers.Idempotency-Key", "sets this header itself"},
		"not a name":   {map[string]string{"X Y": "x"}, "headers.X Y", "Not a valid name"},
		"no name":      {map[string]string{"": "x"}, "headers.", "Not a valid name"},
		"line break":   {map[string]string{"X-A": "a\r\nB: c"}, "headers.X-A", "line breaks"},
		"long":         {map[string]string{"X-A": strings.Repeat("x", webhook.MaxHeaderValueBytes+1)}, "headers.X-A", "at most"},
		"twice":        {map[string]string{"X-A": "a", "x-a": "b"}, "headers.x-a", "twice"},
		"far too many": {many, "headers", "at most 20"},
	} {
		t.Run(name, func(t *testing.T) { only(t, webhook.CheckHeaders(c.headers), c.field, c.message) })
	}
}

func TestCheckSecret(t *testing.T) {
	of := func(n int) string { return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for name, c := range map[string]struct{ secret, message string }{
		"none": {"", ""}, "usual": {secretA, ""}, "rotating": {secretA + " " + secretB, ""}, "least": {of(24), ""}, "greatest": {of(64), ""},
		"short": {of(23), "24 to 64"}, "long": {of(65), "24 to 64"}, "no prefix": {strings.TrimPrefix(secretA, "whsec_"), "whsec_"}, "no base64": {"whsec_%%%", "base64"},
	} {
		t.Run(name, func(t *testing.T) { only(t, webhook.CheckSecret(c.secret), "signingSecret", c.message) })
	}
}

func TestCheckBody(t *testing.T) {
	for name, c := range map[string]struct {
		kind          notify.WebhookKind
		text, message string
	}{
		"none":                  {notify.KindGeneric, "", ""},
		"generic":               {notify.KindGeneric, `{"id": "{{alert.id}}", "text": "{{exchange.errorStack}}"}`, ""},
		"Slack":                 {notify.KindSlack, `{"text": "{{alert.title}}", "blocks": [{"type": "section", "block_id": "{{alert.id}}", "text": {"type": "mrkdwn", "text": "{{alert.message}} x"}}]}`, ""},
		"not JSON":              {notify.KindGeneric, `{{alert.id}}`, "in quotes"},
		"no alert.id":           {notify.KindGeneric, `{"text": "{{alert.title}}"}`, "{{alert.id}} must be in the body"},
		"unknown":               {notify.KindGeneric, `{"id": "{{alert.ID}}"}`, `did you mean "alert.id"?`},
		"Slack: no text":        {notify.KindSlack, `{"id": "{{alert.id}}"}`, "neither text nor blocks"},
		"Slack: empty at times": {notify.KindSlack, `{"blocks": [{"type": "section", "block_id": "{{alert.id}}", "text": {"type": "mrkdwn", "text": "{{exchange.errorType}}"}}]}`, ""},
		"Slack: long at times":  {notify.KindSlack, `{"blocks": [{"type": "header", "text": {"type": "plain_text", "text": "{{alert.id}} {{exchange.route}}"}}]}`, ""},
		"Slack: unknown block":  {notify.KindSlack, `{"blocks": [{"type": "sektion", "block_id": "{{alert.id}}"}]}`, "no such type of block"},
		"Slack: an array":       {notify.KindSlack, `["{{alert.id}}"]`, "not a JSON object"},
		"generic: far too long": {notify.KindGeneric, `["{{alert.id}}"` + strings.Repeat(`,"{{exchange.errorStack}}"`, 50) + `]`, "longer than"},
	} {
		t.Run(name, func(t *testing.T) { only(t, webhook.CheckBody(c.kind, c.text), "bodyTemplate", c.message) })
	}
}

func TestCheckCertificate(t *testing.T) {
	pair, root := certificate(t, "client")
	for name, c := range map[string]struct {
		url, text, code string
	}{
		"none":          {"http://example.com", "", ""},
		"a pair":        {"https://example.com", pair, ""},
		"without TLS":   {"http://example.com", pair, "not_applicable"},
		"without a key": {"https://example.com", string(root), "certificate"},
		"nonsense":      {"https://example.com", "nonsense", "certificate"},
	} {
		fields := webhook.CheckCertificate(&notify.Webhook{URL: c.url, ClientCertificate: c.text})
		if code := append(fields, fault.Field{})[0].Code; code != c.code || (code != "" && fields[0].Field != "clientCertificate") {
			t.Errorf("%s: %+v, want %q", name, fields, c.code)
		}
	}
}
