package presettest

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// The effects of a message on a key, and the states that follow.
const (
	actionSend        = "send"
	actionOpen        = "open"
	actionAcknowledge = "acknowledge"
	actionClose       = "close"

	stateOpen         = "open"
	stateAcknowledged = "acknowledged"
	stateClosed       = "closed"
)

// dialect is what is known of a service in addition to its preset.
type dialect struct {
	// accepts and answer are the status and the body for an accepted message.
	accepts int
	answer  string
	form    bool
	// action returns the effect of a message, and its key.
	action func(req *http.Request, root any) (action, key string)
	// changes returns the message that this one changes or replies to; empty if there is none.
	changes func(req *http.Request, root any) string
	// check refuses what the schema cannot describe.
	check func(req *http.Request, root any) error
	// describes is the path at which the service says when its process began; empty if there is none.
	describes string
}

// bound is the longest text that a service takes at a pointer. These are the documented ones of the
// services, and not those to which presets cut.
type bound struct {
	pointer, unit string
	most          int
}

// bounds returns the longest texts, and the size of the largest body; 0 means that none is known.
func bounds(id string) (texts []bound, bytes int) {
	const utf16, runes, octets = "utf16", "runes", "bytes"
	switch id {
	case "pagerduty":
		return []bound{{"/payload/summary", utf16, 1024}, {"/dedup_key", utf16, 255}}, 512_000
	case "jsm":
		return []bound{{"/message", utf16, 130}, {"/alias", utf16, 512}, {"/description", utf16, 15_000}, {"/tags/*", utf16, 50}}, 0
	case "teams":
		return nil, 24_000 // more failed in the flow, although 28 KB are documented
	case "discord":
		return []bound{
			{"/content", utf16, 2000},
			{"/embeds/*/title", utf16, 256},
			{"/embeds/*/description", utf16, 4096},
			{"/embeds/*/fields/*/name", utf16, 256},
			{"/embeds/*/fields/*/value", utf16, 1024},
			{"/embeds/*/footer/text", utf16, 2048},
			{"/embeds/*/url", utf16, 2048},
		}, 0
	case "google-chat":
		return []bound{{"/text", octets, 4096}}, 32_000
	case "mattermost":
		return []bound{{"/text", runes, 16_383}, {"/attachments/*/text", runes, 7900}}, 0
	case "ntfy":
		return []bound{{"/message", octets, 4096}}, 8192
	case "telegram":
		return []bound{{"/text", octets, 4096}}, 0
	case "pushover":
		return []bound{{"/message", utf16, 1024}, {"/title", utf16, 250}, {"/url", utf16, 512}, {"/url_title", utf16, 100}}, 0
	case "incident-io":
		return nil, 512_000
	case "goalert":
		return []bound{{"/summary", octets, 1024}, {"/details", octets, 6144}}, 0
	case "splunk-on-call":
		return []bound{{"/state_message", octets, 20_480}}, 0
	case "twilio":
		return []bound{{"/Body", utf16, 1600}}, 0
	case "jira":
		return []bound{{"/fields/summary", utf16, 255}, {"/fields/description", utf16, 32_767}, {"/fields/labels/*", utf16, 255}, {"/body", utf16, 32_767}}, 0
	}
	return nil, 0
}

// within refuses what is longer than the service takes.
func within(id string, root any, size int) error {
	texts, bytes := bounds(id)
	if bytes > 0 && size > bytes {
		return fmt.Errorf("the body has %d bytes, more than %d", size, bytes)
	}
	for _, b := range texts {
		for _, text := range textsAt(root, strings.Split(b.pointer, "/")[1:]) {
			if n := length(text, b.unit); n > b.most {
				return fmt.Errorf("%s has %d %s, more than the %d of the service", b.pointer, n, b.unit, b.most)
			}
		}
	}
	return nil
}

// byField reads the effect of a message from a field.
func byField(field, key string, actions map[string]string) func(*http.Request, any) (string, string) {
	return func(_ *http.Request, root any) (string, string) { return actions[one(root, field)], one(root, key) }
}

func dialects() map[string]dialect {
	return map[string]dialect{
		"pagerduty": {
			accepts: http.StatusAccepted, answer: `{"status":"success","message":"Event processed"}`,
			action: byField("/event_action", "/dedup_key", map[string]string{"trigger": actionOpen, "acknowledge": actionAcknowledge, "resolve": actionClose}),
			check: func(_ *http.Request, root any) error {
				return matches("routing key", one(root, "/routing_key"), `^[0-9A-Za-z]{32}$`)
			},
		},
		"jsm": {accepts: http.StatusAccepted, answer: `{"result":"Request will be processed"}`, action: alias, check: authorized(`^GenieKey \S+$`)},
		"servicenow": {
			accepts: http.StatusOK, answer: `{"result":{"Default Bulk Endpoint":"1 events were inserted"}}`,
			action: byField("/records/*/resolution_state", "/records/*/message_key", map[string]string{"New": actionOpen, "Closing": actionClose}),
			check: func(req *http.Request, root any) error {
				closes, clears := one(root, "/records/*/resolution_state") == "Closing", one(root, "/records/*/severity") == "0"
				if closes != clears {
					return errors.New("severity 0 clears, and nothing else does")
				}
				return basic(req)
			},
		},
		"incident-io": {
			accepts: http.StatusAccepted, answer: `{"status":"success"}`,
			action: byField("/status", "/deduplication_key", map[string]string{"firing": actionOpen, "resolved": actionClose}),
			check:  authorized(`^Bearer \S+$`),
		},
		"rootly":      {accepts: http.StatusOK, answer: `{}`, action: byField("/state", "/id", map[string]string{"firing": actionOpen, "resolved": actionClose})},
		"grafana-irm": {accepts: http.StatusOK, answer: "Ok.", action: byField("/state", "/alert_uid", map[string]string{"alerting": actionOpen, "ok": actionClose})},
		"goalert": {
			accepts: http.StatusOK, answer: `{"AlertID":7,"IsNew":true}`,
			action: byField("/action", "/dedup", map[string]string{"": actionOpen, "close": actionClose}),
			check: func(req *http.Request, _ any) error {
				return matches("token", req.URL.Query().Get("token"), `^[-0-9a-f]{36}$`)
			},
		},
		"splunk-on-call": {
			accepts: http.StatusOK, answer: `{"result":"success"}`,
			action: byField("/message_type", "/entity_id", map[string]string{
				"CRITICAL": actionOpen, "WARNING": actionOpen, "INFO": actionOpen, "ACKNOWLEDGEMENT": actionAcknowledge, "RECOVERY": actionClose,
			}),
		},
		"alertmanager": alertmanager(),
		"teams":        {accepts: http.StatusAccepted, check: teams},
		"google-chat": {accepts: http.StatusOK, answer: `{"name":"spaces/A/messages/B"}`, check: func(_ *http.Request, root any) error {
			return free(one(root, "/text"), `<(users|https?:)`)
		}},
		"mattermost": {accepts: http.StatusOK, answer: "ok", check: func(_ *http.Request, root any) error {
			for _, field := range []string{"fallback", "pretext", "title", "text"} {
				if err := free(one(root, "/attachments/*/"+field), `@(all|channel|here)\b|<!`); err != nil {
					return err
				}
			}
			return nil
		}},
		"discord":  {accepts: http.StatusOK, answer: `{"embeds":[],"id":"{n}"}`, check: discord, changes: edited},
		"telegram": {accepts: http.StatusOK, answer: `{"ok":true,"result":{"message_id":{n}}}`, check: telegram, changes: repliedTo},
		"ntfy":     {accepts: http.StatusOK, answer: `{"id":"hwQ2YpKdmg"}`},
		"pushover": {accepts: http.StatusOK, answer: `{"status":1,"request":"647d2300"}`, form: true},
		"twilio": {accepts: http.StatusCreated, answer: `{"sid":"SM0123"}`, form: true, check: func(req *http.Request, root any) error {
			if one(root, "/From") == "" && one(root, "/MessagingServiceSid") == "" {
				return errors.New("a sender is missing")
			}
			return basic(req)
		}},
	}
}

// alertmanager identifies an alert by all its labels: an end with other labels ends nothing.
func alertmanager() dialect {
	labels := map[string]string{}
	return dialect{
		accepts: http.StatusOK, describes: "/api/v2/status",
		action: func(_ *http.Request, root any) (action, key string) {
			key = one(root, "/*/labels/tocsin_alert")
			action = actionClose
			const never = 2100 // an end later than that does not count
			switch ends, err := time.Parse(time.RFC3339Nano, one(root, "/*/endsAt")); {
			case err != nil:
				return "", ""
			case ends.Year() > never:
				action = actionOpen
			}
			list, _ := root.([]any)
			first, _ := list[0].(map[string]any)
			said := fmt.Sprint(first["labels"])
			if was, known := labels[key]; known && was != said {
				return "", ""
			}
			labels[key] = said
			return action, key
		},
		check: func(_ *http.Request, root any) error {
			starts, err := time.Parse(time.RFC3339Nano, one(root, "/*/startsAt"))
			ends, endErr := time.Parse(time.RFC3339Nano, one(root, "/*/endsAt"))
			if err == nil && endErr == nil && ends.Before(starts) {
				return errors.New("start time must be before end time")
			}
			return nil
		},
	}
}

// alias reads the effect of a message from its path, as in JSM and Opsgenie.
func alias(req *http.Request, root any) (action, key string) {
	parts := strings.Split(strings.TrimPrefix(req.URL.Path[strings.Index(req.URL.Path, "/v2/alerts"):], "/v2/alerts"), "/")
	if len(parts) == 1 {
		return actionOpen, one(root, "/alias")
	}
	if len(parts) != 3 || req.URL.Query().Get("identifierType") != "alias" {
		return "", ""
	}
	return parts[2], parts[1]
}

func authorized(pattern string) func(*http.Request, any) error {
	return func(req *http.Request, _ any) error {
		return matches("Authorization", req.Header.Get("Authorization"), pattern)
	}
}

func basic(req *http.Request) error {
	encoded, found := strings.CutPrefix(req.Header.Get("Authorization"), "Basic ")
	plain, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || !strings.Contains(string(plain), ":") {
		return errors.New("user and password are missing")
	}
	return nil
}

func matches(what, text, pattern string) error {
	if !regexp.MustCompile(pattern).MatchString(text) {
		return fmt.Errorf("%s: %q is not of the form %s", what, text, pattern)
	}
	return nil
}

// free refuses markup that a text must not contain.
func free(text, pattern string) error {
	if found := regexp.MustCompile(pattern).FindString(text); found != "" {
		return fmt.Errorf("the text holds %q", found)
	}
	return nil
}

// telegram refuses what Telegram cannot parse: tags other than b, tags that are not closed, and a
// bare & or <.
func telegram(_ *http.Request, root any) error {
	text := one(root, "/text")
	open := false
	for rest := text; rest != ""; {
		at := strings.IndexAny(rest, "<&>")
		if at < 0 {
			break
		}
		rest = rest[at:]
		switch {
		case strings.HasPrefix(rest, "<b>") && !open:
			open, rest = true, rest[len("<b>"):]
		case strings.HasPrefix(rest, "</b>") && open:
			open, rest = false, rest[len("</b>"):]
		case strings.HasPrefix(rest, "&amp;"), strings.HasPrefix(rest, "&lt;"), strings.HasPrefix(rest, "&gt;"):
			rest = rest[strings.IndexByte(rest, ';')+1:]
		default:
			return fmt.Errorf("can't parse entities at %.20q", rest)
		}
	}
	if open {
		return errors.New("can't parse entities: a tag is not closed")
	}
	return nil
}

// edited returns the message that Discord edits: the path of a PATCH contains it.
func edited(req *http.Request, _ any) string {
	if req.Method != http.MethodPatch {
		return ""
	}
	_, id, _ := strings.Cut(req.URL.Path, "/messages/")
	return cmp.Or(id, "none")
}

// repliedTo returns the message to which a Telegram message is shown as a reply.
func repliedTo(_ *http.Request, root any) string {
	body, _ := root.(map[string]any)
	reply, _ := body["reply_parameters"].(map[string]any)
	if reply == nil {
		return ""
	}
	return fmt.Sprint(reply["message_id"])
}

// discord refuses more than 6000 characters over all embeds, and links to hosts without a domain.
func discord(req *http.Request, root any) error {
	total := 0
	for _, pointer := range []string{"/embeds/*/title", "/embeds/*/description", "/embeds/*/footer/text", "/embeds/*/fields/*/name", "/embeds/*/fields/*/value"} {
		for _, text := range textsAt(root, strings.Split(pointer, "/")[1:]) {
			total += length(text, "utf16")
		}
	}
	const most = 6000
	if total > most {
		return fmt.Errorf("the embeds have %d characters", total)
	}
	if req.Method == http.MethodPost && req.URL.Query().Get("wait") != "true" {
		return errors.New("without wait, nobody learns of an error")
	}
	for _, link := range textsAt(root, []string{"embeds", "*", "url"}) {
		if u, err := url.Parse(link); err != nil || !strings.Contains(u.Hostname(), ".") {
			return errors.New(`{"embeds":["0"]}`)
		}
	}
	return nil
}

// teams refuses markup that makes links or styles from texts of an exchange.
func teams(_ *http.Request, root any) error {
	for _, text := range textsAt(root, strings.Split("/attachments/*/content/body/*/text", "/")[1:]) {
		if err := free(text, `(^|[^\\])(\\\\)*[*_\[\]]`); err != nil {
			return err
		}
	}
	return nil
}
