package slack

import (
	"encoding/json"
	"fmt"
	"strings"

	"tocsin/alerts"
	"tocsin/notify"
)

// boundActor bounds the name of the person who acted.
const boundActor = 150

// boundReason bounds the reason why Tocsin resolved the alert.
const boundReason = 300

const (
	stylePrimary = "primary"
	stateBlockID = "tocsin_state"

	handlingBlockID = "tocsin_handling"
)

// stateBlocks says who acknowledged, resolved or reopened the alert, and when, and shows the
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

// handlingBlocks says who handles the alert and until when it is snoozed.
func handlingBlocks(a *Alert) []block {
	var parts []string
	if to := Escape(line(a.Assignee), boundActor); to != "" {
		parts = append(parts, "Assigned to *"+to+"*")
	}
	if !a.SnoozedUntil.IsZero() {
		until := "Snoozed until " + dated(a.SnoozedUntil.Unix(), a.SnoozedUntil.UTC().Format("2006-01-02 15:04:05 UTC"))
		if by := Escape(line(strings.TrimPrefix(a.SnoozedBy, actorPrefix)), boundActor); by != "" {
			until += " by *" + by + "*"
		}
		parts = append(parts, until)
	}
	if len(parts) == 0 {
		return nil
	}
	return []block{{Type: "context", BlockID: handlingBlockID, Elements: []object{*mrkdwn(strings.Join(parts, "  ·  "))}}}
}

// buttonsOf returns the buttons that still apply, and the menu. Their values are the alert's id
// and, if needed, what the message shows and what somebody chooses. Whether a press is allowed is
// decided when it arrives.
func buttonsOf(a *Alert) []object {
	if !a.Buttons || a.ID == "" || a.Reason != "" && !a.Reason.Changes() || a.State == alerts.Resolved {
		return nil
	}
	var buttons []object
	if a.State != alerts.Acknowledged {
		buttons = append(buttons, button{Type: "button", Text: *plainText("Acknowledge"), ActionID: actionAcknowledge, Value: a.ID, Style: stylePrimary})
	}
	return append(buttons,
		button{Type: "button", Text: *plainText("Resolve"), ActionID: actionResolve, Value: a.ID},
		button{Type: "button", Text: *plainText("Assign to me"), ActionID: actionAssign, Value: strings.TrimSpace(a.ID + " " + a.Assignee)},
		snoozeMenu(a),
	)
}

// menu is a menu of choices.
type menu struct {
	Type        string   `json:"type"`
	Placeholder text     `json:"placeholder"`
	ActionID    string   `json:"action_id"`
	Options     []option `json:"options"`
}

type option struct {
	Text  text   `json:"text"`
	Value string `json:"value"`
}

// snoozeEnd is the choice that ends a snooze.
const snoozeEnd = "end"

func snoozeMenu(a *Alert) menu {
	m := menu{Type: "static_select", Placeholder: *plainText("Snooze"), ActionID: actionSnooze}
	if !a.SnoozedUntil.IsZero() {
		m.Options = append(m.Options, option{*plainText("End snooze"), a.ID + " " + snoozeEnd})
	}
	for _, choice := range []struct{ label, value string }{
		{"For 30 minutes", "30m"}, {"For 1 hour", "1h"}, {"For 4 hours", "4h"}, {"For 24 hours", "24h"}, {"For 3 days", "72h"},
	} {
		m.Options = append(m.Options, option{*plainText(choice.label), a.ID + " " + choice.value})
	}
	return m
}

// dated is an instant that Slack shows in the reader's time zone.
func dated(seconds int64, fallback string) string {
	return fmt.Sprintf("<!date^%d^{date_short_pretty} {time_secs}|%s>", seconds, fallback)
}

// WithState adds an alert's state and buttons to the author's body, if the body has blocks. If it
// has none, or the result would not be valid, the body is returned unchanged.
func WithState(body []byte, a *Alert) []byte {
	var fields map[string]json.RawMessage
	var blocks []json.RawMessage
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(fields["blocks"], &blocks) != nil || len(blocks) == 0 {
		return body
	}
	added := append(stateBlocks(a), handlingBlocks(a)...)
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
