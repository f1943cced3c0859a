// Package slack knows what Slack accepts: its limits, its escaping, its error words, and a layout
// of an alert for the person on call.
//
// Slack refuses a whole message if one text in it is one character too long, and a refused message
// is an alert that nobody sees. So every text is bounded when it is put into a block, after
// escaping, which makes texts longer. The sum of all bounds is far below the limit of a message,
// and [Valid] checks the finished bytes once more in the way Slack does.
//
// Texts of an exchange are never markup. "&", "<" and ">" are escaped, so that an error text
// "<!channel>" notifies nobody. mrkdwn objects are verbatim, so that Slack finds no names or links
// in them by itself.
package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tocsin/alerts"
	"tocsin/notify"
)

// Alert is the content of a message. Its texts are plain and may contain anything.
type Alert struct {
	ID string
	// Reason is why the message is sent. The zero Reason means that the alert fired.
	Reason notify.Reason
	// State is the state of the alert; the zero State means that it fires. ChangedBy is who changed
	// the state or reopened the alert, empty for Tocsin itself, and ChangedAt is when.
	State     alerts.State
	ChangedBy string
	// Resolution is why Tocsin resolved the alert; empty if it did not.
	Resolution string
	ChangedAt  time.Time
	// Assignee is who handles the alert; empty means nobody. SnoozedUntil is until when SnoozedBy
	// has snoozed it; zero means that it is not snoozed.
	Assignee     string
	SnoozedUntil time.Time
	SnoozedBy    string
	// Buttons lets the reader acknowledge, resolve, assign and snooze, as far as that still
	// applies.
	Buttons bool
	// Severity is CRITICAL, WARNING or INFO.
	Severity       string
	Title, Message string
	// URL is where people find the alert, ExchangeURL where they find its exchange; empty means
	// none.
	URL, ExchangeURL string
	Rule             string
	// Owner, Labels, RunbookURL and Note are information of the rule for the people who handle the
	// alert.
	Owner      string
	Labels     map[string]string
	RunbookURL string
	Note       string
	// Count is nil for an alert about one exchange. For a count, the exchange is an example, the
	// newest that matched; it is empty if none is known.
	Count *Count

	Application, Route, Environment string
	// StartTimeNS is the start in nanoseconds since the Unix epoch; Start is the same in the form
	// for people.
	StartTimeNS             int64
	Start                   string
	Duration                string
	ErrorType, ErrorMessage string
	// StackTop is the line of the stack that is worth reading first.
	StackTop                   string
	ExecutionID, CorrelationID string
}

// Count is the result of counting.
type Count struct {
	Observed int64
	// Threshold is the number that is needed; Window is the time window, in the form for people.
	Threshold int
	Window    string
	// GroupBy names the property by which exchanges are counted, such as "Route"; empty means all
	// together.
	GroupBy, Group string
	// Name is the measured quantity, such as "p95", Value its value and Bound its threshold, in the
	// form for people. For a count, they are empty.
	Name, Value, Bound string
}

// Bounds of the layout, in the units of [Length]. Their sum is below 8,000.
const (
	boundHeader  = maxHeader
	boundMessage = 1500
	boundField   = 250
	boundError   = 1800
	boundType    = 300
	boundStack   = 300
	boundID      = 300
	boundText    = 1000
	boundNote    = 600
	// maxLinks bounds how many addresses in a message become links.
	maxLinks = 200
)

// message is the format of Slack's incoming webhooks.
type message struct {
	// Text is what notifications show, and the whole message for clients without blocks.
	Text        string  `json:"text"`
	Blocks      []block `json:"blocks,omitempty"`
	UnfurlLinks bool    `json:"unfurl_links"`
	UnfurlMedia bool    `json:"unfurl_media"`
}

type block struct {
	Type     string   `json:"type"`
	BlockID  string   `json:"block_id,omitempty"`
	Text     *text    `json:"text,omitempty"`
	Fields   []text   `json:"fields,omitempty"`
	Elements []object `json:"elements,omitempty"`
}

// object is an element of a block.
type object any

type text struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Emoji    *bool  `json:"emoji,omitempty"`
	Verbatim bool   `json:"verbatim,omitempty"`
}

type button struct {
	Type     string `json:"type"`
	Text     text   `json:"text"`
	URL      string `json:"url,omitempty"`
	ActionID string `json:"action_id"`
	Value    string `json:"value,omitempty"`
	Style    string `json:"style,omitempty"`
}

// Message returns the body that shows a to the person on call. It is within every limit of Slack,
// whatever a contains.
func Message(a *Alert) ([]byte, error) {
	m := message{Text: notice(a)}
	m.Blocks = append(m.Blocks, block{Type: "header", BlockID: blockID(a), Text: plainText(Plain(line(headline(a)), boundHeader))})
	m.Blocks = append(append(m.Blocks, stateBlocks(a)...), handlingBlocks(a)...)
	switch {
	case a.Reason == notify.ReasonRuleRecovered, a.Reason == notify.ReasonSourceRecovered, a.Reason == notify.ReasonAcknowledged,
		a.Reason == notify.ReasonReopened:
	case a.Reason == notify.ReasonRuleFailing, a.Reason == notify.ReasonSourceFailing, a.Reason == notify.ReasonWebhookOff,
		a.Reason == notify.ReasonWebhookFailing, a.Reason == notify.ReasonUndelivered:
		if strings.TrimSpace(a.Message) == "" {
			break
		}
		m.Blocks = append(m.Blocks, messageBlock(strings.TrimSpace(a.Message)))
	case a.Count == nil && a.Reason == notify.ReasonResolved:
	case a.Count == nil:
		m.Blocks = append(m.Blocks, exchangeBlocks(a)...)
	default:
		m.Blocks = append(m.Blocks, countBlocks(a)...)
	}
	if note := strings.TrimSpace(a.Note); note != "" && !isOver(a.Reason) {
		m.Blocks = append(m.Blocks, block{Type: "section", Text: mrkdwn("*Note*\n" + linked(Escape(note, boundNote)))})
	}
	m.Blocks = append(m.Blocks, block{Type: "context", Elements: []object{*mrkdwn(identity(a))}})
	buttons := buttonsOf(a)
	if linkable(a.URL) {
		open := button{Type: "button", Text: *plainText("Open alert"), URL: a.URL, ActionID: actionOpen}
		if len(buttons) == 0 {
			open.Style = stylePrimary
		}
		buttons = append(buttons, open)
	}
	if linkable(a.ExchangeURL) {
		buttons = append(buttons, button{Type: "button", Text: *plainText("Open exchange"), URL: a.ExchangeURL, ActionID: actionExchange})
	}
	if linkable(a.RunbookURL) {
		buttons = append(buttons, button{Type: "button", Text: *plainText("Runbook"), URL: a.RunbookURL, ActionID: actionRunbook})
	}
	if len(buttons) > 0 {
		m.Blocks = append(m.Blocks, block{Type: "actions", Elements: buttons})
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("marshal slack message: %w", err)
	}
	return body, nil
}

func exchangeBlocks(a *Alert) []block {
	var blocks []block
	if message := strings.TrimSpace(a.Message); message != "" && !repeatsError(message, a) {
		blocks = append(blocks, messageBlock(message))
	}
	if code := errorCode(a, a.ErrorMessage); code != "" {
		blocks = append(blocks, block{Type: "section", Text: mrkdwn("```" + code + "```")})
	}
	if list := fields(a); len(list) > 0 {
		blocks = append(blocks, block{Type: "section", Fields: list})
	}
	return blocks
}

// countBlocks shows the count first and the newest exchange as an example. Once the alert is
// resolved, the example is left out, because it is of no use any more.
func countBlocks(a *Alert) []block {
	counted := block{Type: "section", Fields: countFields(a)}
	if a.Reason == notify.ReasonResolved {
		return []block{counted}
	}
	var blocks []block
	message := strings.TrimSpace(a.Message)
	if message != "" {
		blocks = append(blocks, messageBlock(message))
	}
	blocks = append(blocks, counted)
	if place := example(a); place != "" {
		blocks = append(blocks, block{Type: "section", Text: mrkdwn("*Newest exchange*\n" + place)})
	}
	failure := a.ErrorMessage
	if strings.Contains(message, strings.TrimSpace(failure)) {
		failure = ""
	}
	if code := errorCode(a, failure); code != "" {
		blocks = append(blocks, block{Type: "section", Text: mrkdwn("```" + code + "```")})
	}
	return blocks
}

func messageBlock(message string) block {
	return block{Type: "section", Text: mrkdwn(linked(Escape(message, boundMessage)))}
}

// PlainMessage returns a body with only text and the alert's identifier.
func PlainMessage(a *Alert) ([]byte, error) {
	text := notice(a) + "\nAlert " + Escape(line(a.ID), boundID)
	if linkable(a.URL) {
		text += "\n" + Escape(a.URL, maxURL)
	}
	body, err := json.Marshal(message{Text: text})
	if err != nil {
		return nil, fmt.Errorf("marshal slack message: %w", err)
	}
	return body, nil
}

func headline(a *Alert) string {
	title := line(a.Title)
	if title == "" {
		title = "Alert of rule " + line(a.Rule)
	}
	switch a.Reason {
	case notify.ReasonResolved:
		return "🟢 Resolved: " + title
	case notify.ReasonAcknowledged:
		return "👀 Acknowledged: " + title
	case notify.ReasonReopened:
		return badge(a.Severity) + " Reopened: " + title
	case notify.ReasonRuleRecovered:
		return "🟢 Recovered: rule " + line(a.Rule) + " is evaluated again"
	case notify.ReasonSourceRecovered:
		return "🟢 Recovered: the source of exchanges can be read again"
	case notify.ReasonUndelivered:
		// Whatever happened to the alert since.
		return badge(a.Severity) + " " + title
	case notify.ReasonSnoozeEnded:
		if a.State != alerts.Resolved {
			return badge(a.Severity) + " Snooze ended: " + title
		}
	case notify.ReasonEscalated:
		if a.State == alerts.Firing {
			return badge(a.Severity) + " Escalated: " + title
		}
	case notify.ReasonFired, notify.ReasonRuleFailing, notify.ReasonSourceFailing, notify.ReasonReminder, notify.ReasonWebhookOff,
		notify.ReasonWebhookFailing, notify.ReasonDigest:
	}
	switch {
	case a.State == alerts.Resolved:
		return "🟢 Resolved: " + title
	case a.State == alerts.Acknowledged:
		return "👀 Acknowledged: " + title
	case a.Reason == notify.ReasonReminder:
		return badge(a.Severity) + " Still firing: " + title
	}
	return badge(a.Severity) + " " + title
}

func badge(severity string) string {
	switch severity {
	case "CRITICAL":
		return "🔴 CRITICAL"
	case "WARNING":
		return "🟠 WARNING"
	case "INFO":
		return "🔵 INFO"
	default:
		return "⚪ " + line(severity)
	}
}

// notice is the text in notifications and on lock screens.
func notice(a *Alert) string {
	if isOver(a.Reason) {
		return Escape(headline(a), boundText)
	}
	message := strings.TrimSpace(a.Message)
	if message == "" {
		message = strings.Trim(a.ErrorType+": "+a.ErrorMessage, ": \n")
	}
	return Escape(strings.TrimSpace(headline(a)+"\n"+message), boundText)
}

// linked makes links of the addresses in an escaped text. Slack does not do so in verbatim objects,
// and a message often ends with the address of a runbook.
func linked(text string) string {
	const scheme = "https://"
	var b strings.Builder
	for range maxLinks {
		at := strings.Index(text, scheme)
		if at < 0 {
			break
		}
		end := at + addressLength(text[at:])
		address := text[at:end]
		if address != scheme {
			address = "<" + address + ">"
		}
		b.WriteString(text[:at] + address)
		text = text[end:]
	}
	return b.String() + text
}

// addressLength returns the length of the address at the beginning of text.
func addressLength(text string) int {
	for _, mark := range []string{"&lt;", "&gt;", ellipsis} {
		text, _, _ = strings.Cut(text, mark)
	}
	if end := strings.IndexAny(text, " \t\n|\"'`<>()[]"); end >= 0 {
		text = text[:end]
	}
	return len(strings.TrimRight(text, ".,;:!?"))
}

// repeatsError reports whether the alert's message is the same as the error, as the default message
// is.
func repeatsError(message string, a *Alert) bool {
	if a.ErrorMessage == "" {
		return false
	}
	message = strings.TrimSpace(strings.TrimSuffix(message, ellipsis))
	return strings.HasPrefix(a.ErrorType+": "+a.ErrorMessage, message) || strings.HasPrefix(a.ErrorMessage, message)
}

// errorCode is the text of the error's code block; empty if there is no error.
func errorCode(a *Alert, message string) string {
	var lines []string
	for _, l := range []struct {
		text  string
		limit int
	}{{a.ErrorType, boundType}, {message, boundError}, {line(a.StackTop), boundStack}} {
		if text := strings.TrimSpace(l.text); text != "" {
			lines = append(lines, Code(text, l.limit))
		}
	}
	return strings.Join(lines, "\n")
}

// isOver reports whether a message only says how something continued or ended.
func isOver(reason notify.Reason) bool {
	return reason.IsEvent() || reason == notify.ReasonRuleRecovered || reason == notify.ReasonSourceRecovered
}

// field has a name and a value in mrkdwn.
type field struct{ name, value string }

// named drops the fields without a value.
func named(fields []field) []text {
	var list []text
	for _, f := range fields {
		if f.value != "" {
			list = append(list, *mrkdwn("*" + f.name + "*\n" + f.value))
		}
	}
	return list
}

// identity is the part that people copy into a search.
func identity(a *Alert) string {
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"Execution", a.ExecutionID}, {"Correlation", a.CorrelationID}, {"Started", a.Start}, {"Alert", a.ID},
	} {
		if value := line(p.value); value != "" {
			parts = append(parts, p.name+" `"+Code(value, boundID)+"`")
		}
	}
	if len(parts) == 0 {
		return "Tocsin"
	}
	return strings.Join(parts, "  ·  ")
}

// blockID carries the alert's identifier invisibly. Slack requires it to be short and unique.
func blockID(a *Alert) string {
	return Plain(line(a.ID), maxBlockID)
}

func linkable(url string) bool {
	return url != "" && Length(url) <= maxURL && (strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://"))
}

func mrkdwn(s string) *text { return &text{Type: "mrkdwn", Text: s, Verbatim: true} }

func plainText(s string) *text {
	no := false
	return &text{Type: "plain_text", Text: s, Emoji: &no}
}
