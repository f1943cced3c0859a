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

// Headers by which a request proves to come from Slack.
const (
	HeaderTimestamp = "X-Slack-Request-Timestamp"
	HeaderSignature = "X-Slack-Signature"
)

// SignatureWindow is how far a request's timestamp may be from the clock, in
// either direction.
const SignatureWindow = 5 * time.Minute

// ErrForged says that a request does not prove to come from Slack, or not in time.
var ErrForged = errors.New("not signed by the Slack app, or too old")

// Proof is what a request says about where it comes from.
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

// Press is a button that somebody pressed, or what they chose from the menu.
type Press struct {
	AlertID uuid.UUID
	Deed    Deed
	// Was is who handled the alert as the message showed it, of [DeedAssign].
	Was string
	// For is how long to snooze from At on, of [DeedSnooze].
	For time.Duration
	// At is when it was pressed, by Slack's clock.
	At   time.Time
	User User
	// Message is the position of the message, Thread that of its thread; empty is none.
	Message notify.Posted
	Thread  string
}

// Deed is what a press asks for.
type Deed string

// The deeds.
const (
	DeedAcknowledge Deed = "acknowledge"
	DeedResolve     Deed = "resolve"
	DeedAssign      Deed = "assign"
	DeedSnooze      Deed = "snooze"
	DeedUnsnooze    Deed = "unsnooze"
)

// User is who pressed.
type User struct {
	// ID is Slack's, Team the workspace in which it was pressed.
	ID, Team string
	// Name is the user's name as alerts show somebody whom Tocsin does not know: "slack:" and a name.
	Name string
}

const (
	// actorPrefix precedes the name of who acted in Slack; there it goes without saying.
	actorPrefix = "slack:"
	// maxActor bounds a name, in the units of [Length].
	maxActor = 100
)

// pressed is what a request tells that follows from what somebody did to a message.
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

// ReadPress reads the body of a request that was verified. Found is false for
// what is none of Tocsin's buttons: links, and those of others in the same app.
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

// read takes over what an action asks for, and reports whether it is Tocsin's.
func (p *Press) read(action pressedAction) (bool, error) {
	value := action.Value
	switch action.ActionID {
	case actionAcknowledge:
		p.Deed = DeedAcknowledge
	case actionResolve:
		p.Deed = DeedResolve
	case actionAssign:
		p.Deed = DeedAssign
		value, p.Was, _ = strings.Cut(value, " ")
	case actionSnooze:
		alert, chosen, _ := strings.Cut(action.Selected.Value, " ")
		value = alert
		if chosen == snoozeEnd {
			p.Deed = DeedUnsnooze
			break
		}
		p.Deed = DeedSnooze
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
		return false, errors.New("the button's value is not the id of an alert")
	}
	return true, nil
}

// instantOf reads an instant of Slack's, seconds with a fraction; zero where it is none.
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
