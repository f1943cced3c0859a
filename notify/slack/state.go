package slack

import (
	"encoding/json"
	"fmt"
	"strings"

	"tocsin/alerts"
	"tocsin/notify"
)

// boundActor bounds the name of who acted.
const boundActor = 150

// boundReason bounds why Tocsin resolved the alert.
const boundReason = 300

const (
	stylePrimary = "primary"
	stateBlockID = "tocsin_state"
)

// stateBlocks says who acknowledged, resolved or reopened the alert, and when, beside the
// severity, which the headline then leaves out.
func stateBlocks(a *Alert) []block {
	var summary string
	switch {
	case a.Reason == notify.ReasonReopened:
		summary = "Reopened"
	case a.State == alerts.Acknowledged:
		summary = "Acknowledged"
	case a.State == alerts.Resolved:
		summary = "Resolved"
	default:
		return nil
	}
	if by := Escape(line(strings.TrimPrefix(a.ChangedBy, actorPrefix)), boundActor); by != "" {
		summary += " by *" + by + "*"
	}
	if !a.ChangedAt.IsZero() {
		summary += "  ·  " + dated(a.ChangedAt.Unix(), a.ChangedAt.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	if a.Resolution != "" && a.ChangedBy == "" {
		summary += "  ·  " + Escape(line(a.Resolution), boundReason)
	}
	if a.Severity != "" {
		summary += "  ·  " + Escape(line(a.Severity), boundField)
	}
	return []block{{Type: "context", BlockID: stateBlockID, Elements: []object{*mrkdwn(summary)}}}
}

// buttonsOf are the buttons that still apply. Their value is the alert's id and
// nothing else: what a press may do is decided when it comes.
func buttonsOf(a *Alert) []object {
	if !a.Buttons || a.ID == "" || a.Reason != "" && !a.Reason.Changes() || a.State == alerts.Resolved {
		return nil
	}
	resolve := button{Type: "button", Text: *plainText("Resolve"), ActionID: actionResolve, Value: a.ID}
	if a.State == alerts.Acknowledged {
		return []object{resolve}
	}
	return []object{
		button{Type: "button", Text: *plainText("Acknowledge"), ActionID: actionAcknowledge, Value: a.ID, Style: stylePrimary}, resolve,
	}
}

// dated is an instant that Slack shows in the reader's own zone.
func dated(seconds int64, fallback string) string {
	return fmt.Sprintf("<!date^%d^{date_short_pretty} {time_secs}|%s>", seconds, fallback)
}

// WithState adds an alert's state and buttons to a body of the author's own that
// has blocks. Where that would not be valid, and of a body without blocks, the
// body is returned as it is.
func WithState(body []byte, a *Alert) []byte {
	var fields map[string]json.RawMessage
	var blocks []json.RawMessage
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(fields["blocks"], &blocks) != nil || len(blocks) == 0 {
		return body
	}
	added := stateBlocks(a)
	if buttons := buttonsOf(a); len(buttons) > 0 {
		added = append(added, block{Type: "actions", Elements: buttons})
	}
	if len(added) == 0 {
		return body
	}
	for _, b := range added {
		text, err := json.Marshal(b)
		if err != nil {
			return body
		}
		blocks = append(blocks, text)
	}
	joined, err := json.Marshal(blocks)
	if err != nil {
		return body
	}
	fields["blocks"] = joined
	with, err := json.Marshal(fields)
	if err != nil || Valid(with) != nil {
		return body
	}
	return with
}
