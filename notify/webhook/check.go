package webhook

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

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

// CheckURL returns what is wrong with a webhook's URL, as the field "url". No message quotes it.
func CheckURL(text string) []fault.Field {
	problem := ""
	u, err := parseURL(text)
	switch {
	case len(text) > MaxURLBytes:
		problem = fmt.Sprintf("Must be at most %d characters", MaxURLBytes)
	case err != nil:
		problem = sentence(err.Error())
	case u.Fragment != "":
		problem = "Must not have a fragment; remove the # and the text after it"
	case !validPort(u.Port()):
		problem = "The port must be from 1 to 65535"
	}
	if problem == "" {
		return nil
	}
	return []fault.Field{{Field: "url", Code: "url", Message: problem}}
}

// validPort reports whether a connection can have a port; the empty one is that of the scheme.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// CheckTarget returns what is wrong with the target of a webhook: its URL, or the Slack app that it
// posts as. No message quotes a secret.
func CheckTarget(w *notify.Webhook) []fault.Field {
	if w.Slack == (notify.SlackApp{}) {
		if w.URL == "" && w.Kind == notify.KindSlack {
			return []fault.Field{{Field: "url", Code: "required", Message: "Enter the URL of an incoming webhook, or a channel and a bot token"}}
		}
		return CheckURL(w.URL)
	}
	var fields []fault.Field
	add := func(field, code, message string) {
		fields = append(fields, fault.Field{Field: field, Code: code, Message: message})
	}
	if w.Kind != notify.KindSlack {
		add("slack", "not_applicable", "Only a webhook of kind slack can post as a Slack app; remove it or change the kind")
		return fields
	}
	if w.URL != "" {
		add("url", "not_applicable", "A webhook has either a URL or a bot token; remove one of them")
	}
	if w.SigningSecret != "" {
		add("signingSecret", "not_applicable", "Slack does not check signatures; remove it, or enter that of the Slack app as slack.signingSecret")
	}
	if problem := channelProblem(w.Slack.Channel); problem != "" {
		add("slack.channel", "channel", problem)
	}
	if problem := tokenProblem(w.Slack.BotToken); problem != "" {
		add("slack.botToken", "secret", problem)
	}
	const secretDigits = 32
	if s := w.Slack.SigningSecret; s != "" && (len(s) != secretDigits || strings.Trim(s, "0123456789abcdef") != "") {
		add("slack.signingSecret", "secret", "Must be the 32 hexadecimal digits that the app shows under Basic Information, Signing Secret")
	}
	return fields
}

// CheckCertificate returns what is wrong with a webhook's client certificate, as the field
// "clientCertificate". No message quotes it.
func CheckCertificate(w *notify.Webhook) []fault.Field {
	const field = "clientCertificate"
	if w.ClientCertificate == "" {
		return nil
	}
	if w.Slack.Used() || strings.HasPrefix(w.URL, "http://") {
		return []fault.Field{{Field: field, Code: "not_applicable", Message: "Only a webhook with an https:// URL can use a client certificate; remove it"}}
	}
	if _, err := tls.X509KeyPair([]byte(w.ClientCertificate), []byte(w.ClientCertificate)); err != nil {
		return []fault.Field{{Field: field, Code: "certificate", Message: "Must be a certificate and its private key, without a passphrase, both as PEM"}}
	}
	return nil
}

func channelProblem(channel string) string {
	const maxName, minID = 80, 7
	name, named := strings.CutPrefix(channel, "#")
	switch {
	case channel == "":
		return "Enter the channel's ID, such as C0123456789, or its name after a #"
	case named && (name == "" || len([]rune(name)) > maxName || strings.ContainsAny(name, " #,@<>&|\"'") || strings.ContainsFunc(name, unicode.IsControl)):
		return "Not a valid name of a channel; copy it from Slack, or enter the channel's ID"
	case named:
	case len(channel) < minID || len(channel) > maxName || !strings.ContainsRune("CGD", rune(channel[0])) ||
		strings.Trim(channel, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "":
		return "Must be a channel's ID, which begins with C, G or D (in Slack: the channel's name, About), or its name after a #"
	}
	return ""
}

func tokenProblem(token string) string {
	const maxToken, minToken = 300, 20
	switch {
	case token == "":
		return "Enter the app's Bot User OAuth Token, which begins with xoxb-"
	case strings.HasPrefix(token, "xoxe."):
		return "This token expires within hours; turn token rotation off in the app and install it again"
	case strings.HasPrefix(token, "xoxp-") || strings.HasPrefix(token, "xapp-"):
		return "This is another kind of token; enter the Bot User OAuth Token, which begins with xoxb-"
	case !strings.HasPrefix(token, "xoxb-") || len(token) < minToken || len(token) > maxToken ||
		strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return "Must be the Bot User OAuth Token that the app shows under OAuth & Permissions; it begins with xoxb-"
	}
	return ""
}

// CheckHeaders returns which of a webhook's own headers cannot be sent, as fields "headers.NAME".
// No message quotes a value.
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
			problem = "Not a valid name of a header; use letters, digits and hyphens"
		case reserved(name):
			problem = "Tocsin sets this header itself; remove it"
		case seen[http.CanonicalHeaderKey(name)]:
			problem = "The same header appears twice; remove one"
		case len(headers[name]) > MaxHeaderValueBytes:
			problem = fmt.Sprintf("The value must be at most %d bytes", MaxHeaderValueBytes)
		case !httpguts.ValidHeaderFieldValue(headers[name]):
			problem = "The value contains line breaks or control characters; remove them"
		}
		seen[http.CanonicalHeaderKey(name)] = true
		if problem != "" {
			fields = append(fields, fault.Field{Field: "headers." + name, Code: "header", Message: problem})
		}
	}
	return fields
}

// reserved reports whether a header is set by Tocsin or by the connection.
func reserved(name string) bool {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, "webhook-") || strings.HasPrefix(name, "proxy-") {
		return true
	}
	switch name {
	case "host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "keep-alive",
		"te", "trailer", "upgrade", "expect", "user-agent", "accept-encoding", "http2-settings",
		// A constant key would make receivers drop every message except the first.
		"idempotency-key", "x-idempotency-key":
		return true
	}
	return false
}

// CheckSecret returns what is wrong with a signing secret, as the field "signingSecret"; an empty
// one means none. No message quotes it.
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

// CheckBody returns what is wrong with a body template, as the field "bodyTemplate"; an empty one
// means the layout of the kind. The template is rendered with the worst samples of exchanges, and
// the result must be a body that the kind's receiver accepts.
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
				return fmt.Errorf("with a long or unusual exchange, Slack would refuse the message: %w", err)
			}
		}
	}
	return nil
}

// sentence makes an error text begin like a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
