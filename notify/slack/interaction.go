package slack

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

// Headers that prove that a request comes from Slack.
const (
	HeaderTimestamp = "X-Slack-Request-Timestamp"
	HeaderSignature = "X-Slack-Signature"
)

// SignatureWindow is how far a request's timestamp may be from the clock, in
// either direction.
const SignatureWindow = 5 * time.Minute

// ErrForged says that a request does not prove to come from Slack, or not in time.
var ErrForged = errors.New("not signed by the Slack app, or too old")

// Proof is the proof in a request that it comes from Slack.
type Proof struct{ Timestamp, Signature string }

// Verify returns [ErrForged] unless body was signed with the app's secret, at
// most [SignatureWindow] from now.
func Verify(secret string, proof Proof, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(proof.Timestamp, 10, 64)
	if err != nil || secret == "" {
		return ErrForged
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > SignatureWindow || age < -SignatureWindow {
		return ErrForged
	}
	if !hmac.Equal([]byte(Sign(secret, proof.Timestamp, body)), []byte(proof.Signature)) {
		return ErrForged
	}
	return nil
}

// Sign returns the signature of a request's body, as Slack makes it.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "v0:%s:", timestamp)
	_, _ = mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// The buttons and the menu of a message. Their values begin with the alert's id.
const (
	actionAcknowledge = "tocsin_acknowledge"
	actionResolve     = "tocsin_resolve"
	actionAssign      = "tocsin_assign"
	actionSnooze      = "tocsin_snooze"
	actionOpen        = "open_alert"
	actionExchange    = "open_exchange"
	actionRunbook     = "open_runbook"
)

// Press is a button press, or a choice from the menu.
type Press struct {
	AlertID uuid.UUID
	Action  Action
	// Was is who handled the alert according to the message, for [ActionAssign].
	Was string
	// For is how long to snooze, from At, for [ActionSnooze].
	For time.Duration
	// At is when the button was pressed, by Slack's clock.
	At   time.Time
	User User
	// Message is the place of the message, and Thread that of its thread; empty means none.
	Message notify.Posted
	Thread  string
}

// Action is the action that a press requests.
type Action string

// The actions.
const (
	ActionAcknowledge Action = "acknowledge"
	ActionResolve     Action = "resolve"
	ActionAssign      Action = "assign"
	ActionSnooze      Action = "snooze"
	ActionUnsnooze    Action = "unsnooze"
)

// User is who pressed the button.
type User struct {
	// ID is the user's id in Slack, and Team the workspace in which the button was pressed.
	ID, Team string
	// Name is the name that alerts show for a user whom Tocsin does not know: "slack:" and a name.
	Name string
}

const (
	// actorPrefix precedes the name of a person who acted in Slack. Messages in Slack leave it out.
	actorPrefix = "slack:"
	// maxActor bounds the length of a name, in the units of [Length].
	maxActor = 100
)

// pressed is the body of a request that follows an action on a message.
type pressed struct {
	Type string `json:"type"`
	User struct {
		ID       string `json:"id"`
		Username string `json:"username"`
		Name     string `json:"name"`
	} `json:"user"`
	Team    struct{ ID string }
	Channel struct{ ID string }
	Message struct {
		TS     string
		Thread string `json:"thread_ts"`
	}
	Container struct {
		ChannelID string `json:"channel_id"`
		MessageTS string `json:"message_ts"`
		Thread    string `json:"thread_ts"`
	} `json:"container"`
	Actions []pressedAction `json:"actions"`
}

type pressedAction struct {
	ActionID string `json:"action_id"`
	Value    string `json:"value"`
	At       string `json:"action_ts"`
	Selected struct {
		Value string `json:"value"`
	} `json:"selected_option"`
}

// ReadPress reads the body of a verified request. found is false if the action does not concern a
// button of Tocsin: links, and buttons of others in the same app.
func ReadPress(body []byte) (press Press, found bool, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return Press{}, false, errors.New("the form cannot be read")
	}
	var payload pressed
	if err := json.Unmarshal([]byte(form.Get("payload")), &payload); err != nil {
		return Press{}, false, errors.New("the form has no field payload that can be read")
	}
	if payload.Type != "block_actions" {
		return Press{}, false, nil
	}
	for _, action := range payload.Actions {
		if found, err = press.read(action); err != nil {
			return Press{}, false, err
		}
		if found {
			break
		}
	}
	press.Message = notify.Posted{
		Channel: cmp.Or(payload.Container.ChannelID, payload.Channel.ID),
		TS:      cmp.Or(payload.Container.MessageTS, payload.Message.TS),
	}
	press.Thread = cmp.Or(payload.Container.Thread, payload.Message.Thread)
	u := payload.User
	press.User = User{ID: u.ID, Team: payload.Team.ID, Name: actorPrefix + Plain(line(cmp.Or(u.Username, u.Name, u.ID, "unknown")), maxActor)}
	return press, found, nil
}

// read reads an action into p, and reports whether it concerns a button of Tocsin.
func (p *Press) read(action pressedAction) (bool, error) {
	value := action.Value
	switch action.ActionID {
	case actionAcknowledge:
		p.Action = ActionAcknowledge
	case actionResolve:
		p.Action = ActionResolve
	case actionAssign:
		p.Action = ActionAssign
		value, p.Was, _ = strings.Cut(value, " ")
	case actionSnooze:
		alert, chosen, _ := strings.Cut(action.Selected.Value, " ")
		value = alert
		if chosen == snoozeEnd {
			p.Action = ActionUnsnooze
			break
		}
		p.Action = ActionSnooze
		var err error
		if p.For, err = time.ParseDuration(chosen); err != nil || p.For <= 0 {
			return false, errors.New("the choice is not a duration of a snooze")
		}
		if p.At = instantOf(action.At); p.At.IsZero() {
			return false, errors.New("the choice does not say when it was made")
		}
	default:
		return false, nil
	}
	var err error
	if p.AlertID, err = uuid.Parse(value); err != nil {
		return false, errors.New("the button's value is not the ID of an alert")
	}
	return true, nil
}

// instantOf parses an instant of Slack, in seconds with a fraction; zero if it is not one.
func instantOf(ts string) time.Time {
	whole, fraction, _ := strings.Cut(ts, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds <= 0 {
		return time.Time{}
	}
	micros, err := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
	if err != nil || micros < 0 {
		return time.Time{}
	}
	return time.Unix(seconds, micros*1000).UTC()
}
