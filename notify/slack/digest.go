package slack

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tocsin/notify"
)

// Digest is the content of a message that sums up many. Its texts are plain and may contain
// anything. At most [notify.DigestTop] entries of each list are shown.
type Digest struct {
	// ID names the message.
	ID string
	// Size is the number of notifications; Reasons is their number for each reason.
	Size    int
	Reasons map[notify.Reason]int
	Rules   []DigestRule
	// AllRules, AllPlaces and AllErrors are the full numbers.
	AllRules  int
	Places    []DigestCount
	AllPlaces int
	Errors    []DigestCount
	AllErrors int
	// Silence is the silence that suppressed the notifications; nil if they are sent by this message.
	Silence *DigestSilence
	// First and Last are the exchanges that started first and last, of which place and time are
	// shown; nil if no alert is about an exchange.
	First, Last *Alert
	// From and To are when the alerts fired, in the form for people.
	From, To string
	// URL is where people find the alerts; empty means none.
	URL string
}

// DigestSilence is a silence that suppressed notifications, with times in the form for people.
type DigestSilence struct{ Name, From, Until string }

// DigestRule is a rule in a digest.
type DigestRule struct {
	Name, Severity string
	Count          int
}

// DigestCount is something that occurs Count times.
type DigestCount struct {
	What  string
	Count int
}

// Bounds of the layout of a digest. Their sum is below 9,000.
const (
	boundRule  = 200
	boundPlace = 200
	boundCause = 250
)

// DigestMessage returns the body that shows d. It is within every limit of Slack, whatever d
// contains.
func DigestMessage(d *Digest) ([]byte, error) {
	m := message{Text: digestNotice(d)}
	m.Blocks = append(m.Blocks, block{Type: "header", BlockID: Plain(line(d.ID), maxBlockID), Text: plainText(Plain(digestHeadline(d), boundHeader))})
	m.Blocks = append(m.Blocks, digestRules(d)...)
	m.Blocks = append(m.Blocks, digestList("By route", d.Places, d.AllPlaces, boundPlace, "routes")...)
	m.Blocks = append(m.Blocks, digestList("Most common errors", d.Errors, d.AllErrors, boundCause, "errors")...)
	if ends := digestEnds(d); len(ends) > 0 {
		m.Blocks = append(m.Blocks, block{Type: "section", Fields: ends})
	}
	m.Blocks = append(m.Blocks, block{Type: "context", Elements: []object{*mrkdwn(digestIdentity(d))}})
	if linkable(d.URL) {
		m.Blocks = append(m.Blocks, block{Type: "actions", Elements: []object{
			button{Type: "button", Text: *plainText("Open inbox"), URL: d.URL, ActionID: "open_inbox", Style: "primary"},
		}})
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("marshal slack digest: %w", err)
	}
	return body, nil
}

// PlainDigest returns a body with only text and the digest's identifier.
func PlainDigest(d *Digest) ([]byte, error) {
	body, err := json.Marshal(message{Text: digestNotice(d) + "\nDigest " + Escape(line(d.ID), boundID)})
	if err != nil {
		return nil, fmt.Errorf("marshal slack digest: %w", err)
	}
	return body, nil
}

// digestHeadline says how many there are of what. Problems of Tocsin itself come first.
func digestHeadline(d *Digest) string {
	var parts []string
	for _, p := range []struct {
		reason    notify.Reason
		one, many string
	}{
		{notify.ReasonSourceFailing, "source cannot be read", "sources cannot be read"},
		{notify.ReasonRuleFailing, "rule cannot be evaluated", "rules cannot be evaluated"},
		{notify.ReasonWebhookOff, "webhook is disabled", "webhooks are disabled"},
		{notify.ReasonWebhookFailing, "webhook is not responding", "webhooks are not responding"},
		{notify.ReasonUndelivered, "message was not delivered", "messages were not delivered"},
		{notify.ReasonFired, "alert", "alerts"},
		{notify.ReasonReminder, "reminder", "reminders"},
		{notify.ReasonEscalated, "escalated", "escalated"},
		{notify.ReasonSnoozeEnded, "snooze ended", "snoozes ended"},
		{notify.ReasonAcknowledged, "acknowledged", "acknowledged"},
		{notify.ReasonResolved, "resolved", "resolved"},
		{notify.ReasonReopened, "reopened", "reopened"},
		{notify.ReasonRuleRecovered, "rule recovered", "rules recovered"},
		{notify.ReasonSourceRecovered, "source recovered", "sources recovered"},
	} {
		switch n := d.Reasons[p.reason]; n {
		case 0:
		case 1:
			parts = append(parts, "1 "+p.one)
		default:
			parts = append(parts, grouped(n)+" "+p.many)
		}
	}
	summary := strings.Join(parts, ", ")
	if summary == "" {
		summary = grouped(d.Size) + " notifications"
	}
	trouble := d.Reasons[notify.ReasonSourceFailing] + d.Reasons[notify.ReasonRuleFailing] + d.Reasons[notify.ReasonWebhookOff] +
		d.Reasons[notify.ReasonWebhookFailing] + d.Reasons[notify.ReasonUndelivered]
	if d.AllRules == 1 && len(d.Rules) == 1 && trouble == 0 {
		summary += " of rule " + line(d.Rules[0].Name)
	}
	if d.Silence != nil {
		return "🔕 " + summary + " suppressed by silence " + line(d.Silence.Name)
	}
	if d.Reasons[notify.ReasonFired]+d.Reasons[notify.ReasonReminder]+d.Reasons[notify.ReasonSnoozeEnded]+d.Reasons[notify.ReasonEscalated]+trouble == 0 {
		return "🟢 " + summary
	}
	if len(d.Rules) == 0 {
		return summary
	}
	return badge(d.Rules[0].Severity) + " " + summary
}

// digestNotice is the text on lock screens.
func digestNotice(d *Digest) string {
	text := digestHeadline(d)
	if len(d.Errors) > 0 {
		text += "\n" + line(d.Errors[0].What)
	}
	return Escape(text, boundText)
}

func digestRules(d *Digest) []block {
	var lines []string
	for _, r := range d.Rules[:min(len(d.Rules), notify.DigestTop)] {
		lines = append(lines, fmt.Sprintf("%s · *%s* · %s", Escape(badge(r.Severity), boundField), grouped(r.Count), Escape(line(r.Name), boundRule)))
	}
	return listed("Rules", lines, d.AllRules, "rules")
}

func digestList(title string, counts []DigestCount, all, bound int, of string) []block {
	var lines []string
	for _, c := range counts[:min(len(counts), notify.DigestTop)] {
		lines = append(lines, fmt.Sprintf("*%s* · %s", grouped(c.Count), Escape(line(c.What), bound)))
	}
	return listed(title, lines, all, of)
}

// listed is a section with a title and lines, and the number of further ones.
func listed(title string, lines []string, all int, of string) []block {
	if len(lines) == 0 {
		return nil
	}
	if more := all - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("… and %s more %s", grouped(more), of))
	}
	return []block{{Type: "section", Text: mrkdwn("*" + title + "*\n" + strings.Join(lines, "\n"))}}
}

func digestEnds(d *Digest) []text {
	var ends []field
	if d.First != nil {
		ends = append(ends, field{"First exchange", example(d.First)})
	}
	if d.Last != nil {
		ends = append(ends, field{"Last exchange", example(d.Last)})
	}
	return named(ends)
}

func digestIdentity(d *Digest) string {
	parts := []string{"Digest `" + Code(line(d.ID), boundID) + "`"}
	if d.Silence != nil {
		parts = append(parts, grouped(d.Size)+" notifications were not sent because of a silence from "+Escape(line(d.Silence.From), boundField)+" to "+Escape(line(d.Silence.Until), boundField))
	} else {
		parts = append(parts, grouped(d.Size)+" notifications in one message")
	}
	if d.From != "" {
		parts = append(parts, "fired from "+Escape(line(d.From), boundField)+" to "+Escape(line(d.To), boundField))
	}
	return strings.Join(parts, "  ·  ")
}

// grouped writes a number with separated thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
