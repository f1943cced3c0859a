package webhook

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/slack"
	"tocsin/notify/template"
)

// Bounds of what a person enters about a webhook.
const (
	MaxURLBytes         = 2000
	MaxHeaders          = 20
	MaxHeaderNameBytes  = 100
	MaxHeaderValueBytes = 4 << 10
	minSecretBytes      = 24
	maxSecretBytes      = 64
)

// CheckURL returns what is wrong with a webhook's URL, as the field "url". No
// message repeats it.
func CheckURL(text string) []fault.Field {
	problem := ""
	u, err := parseURL(text)
	switch {
	case len(text) > MaxURLBytes:
		problem = fmt.Sprintf("Must be at most %d characters", MaxURLBytes)
	case err != nil:
		problem = sentence(err.Error())
	case u.Fragment != "":
		problem = "Must not have a fragment; remove what follows the #"
	}
	if problem == "" {
		return nil
	}
	return []fault.Field{{Field: "url", Code: "url", Message: problem}}
}

// CheckHeaders returns which of a webhook's own headers cannot be sent, as
// fields "headers.NAME". No message repeats a value.
func CheckHeaders(headers map[string]string) []fault.Field {
	var fields []fault.Field
	if len(headers) > MaxHeaders {
		fields = append(fields, fault.Field{Field: "headers", Code: "out_of_range", Message: fmt.Sprintf("Must be at most %d headers", MaxHeaders)})
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		problem := ""
		switch {
		case !httpguts.ValidHeaderFieldName(name) || len(name) > MaxHeaderNameBytes:
			problem = "Not a name that a header can have"
		case reserved(name):
			problem = "Tocsin sets this header itself; remove it"
		case seen[http.CanonicalHeaderKey(name)]:
			problem = "The same header appears twice; remove one"
		case len(headers[name]) > MaxHeaderValueBytes:
			problem = fmt.Sprintf("The value must be at most %d bytes", MaxHeaderValueBytes)
		case !httpguts.ValidHeaderFieldValue(headers[name]):
			problem = "The value holds line breaks or control characters; remove them"
		}
		seen[http.CanonicalHeaderKey(name)] = true
		if problem != "" {
			fields = append(fields, fault.Field{Field: "headers." + name, Code: "header", Message: problem})
		}
	}
	return fields
}

// reserved reports whether a header is Tocsin's or the connection's own.
func reserved(name string) bool {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "webhook-") || strings.HasPrefix(name, "proxy-") {
		return true
	}
	switch name {
	case "host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "keep-alive",
		"te", "trailer", "upgrade", "expect", "user-agent", "accept-encoding", "http2-settings",
		// A constant key would make receivers drop every message but the first.
		"idempotency-key", "x-idempotency-key":
		return true
	}
	return false
}

// CheckSecret returns what is wrong with a signing secret, as the field
// "signingSecret"; an empty one is none. No message repeats it.
func CheckSecret(secret string) []fault.Field {
	for one := range strings.FieldsSeq(secret) {
		digits, found := strings.CutPrefix(one, "whsec_")
		key, err := base64.StdEncoding.DecodeString(digits)
		if !found || err != nil || len(key) < minSecretBytes || len(key) > maxSecretBytes {
			return []fault.Field{{
				Field: "signingSecret", Code: "secret",
				Message: fmt.Sprintf("Must be whsec_ followed by the base64 of %d to %d random bytes", minSecretBytes, maxSecretBytes),
			}}
		}
	}
	return nil
}

// CheckBody returns what is wrong with a body template, as the field
// "bodyTemplate"; an empty one is the kind's own layout. The template is
// rendered with samples of the worst that exchanges hold, and what comes out
// must be a body that the kind's receiver takes.
func CheckBody(kind notify.WebhookKind, text string) []fault.Field {
	if text == "" {
		return nil
	}
	if err := checkBody(kind, text); err != nil {
		return []fault.Field{{Field: "bodyTemplate", Code: "template", Message: sentence(err.Error())}}
	}
	return nil
}

func checkBody(kind notify.WebhookKind, text string) error {
	body, err := template.ParseJSON(text, template.InBody)
	if err != nil {
		return err
	}
	if !slices.Contains(body.Names(), "alert.id") {
		return errNoAlertID
	}
	for _, sample := range template.Samples() {
		content, err := renderCustom(body, kind, template.ForAlert(&sample, "https://tocsin.example/inbox/1"))
		if err != nil {
			return err
		}
		if kind == notify.KindSlack {
			if err := slack.Valid(content); err != nil {
				return fmt.Errorf("with a long or odd exchange, Slack would refuse the message: %w", err)
			}
		}
	}
	return nil
}

// sentence begins an error text as a sentence begins.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
