package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
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
var ErrForged = errors.New("not signed by the Slack app, or not in time")

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

// The buttons of a message. The value of each is the alert's id.
const (
	actionAcknowledge = "tocsin_acknowledge"
	actionResolve     = "tocsin_resolve"
	actionOpen        = "open_alert"
	actionExchange    = "open_exchange"
	actionRunbook     = "open_runbook"
)

// Press is a button that somebody pressed.
type Press struct {
	AlertID uuid.UUID
	Action  alerts.Action
	// Actor is who did, as alerts show it: "slack:" and a name.
	Actor string
	At    notify.Posted
}

const (
	// actorPrefix precedes the name of who acted in Slack; there it goes without saying.
	actorPrefix = "slack:"
	// maxActor bounds a name, in the units of [Length].
	maxActor = 100
)

// ReadPress reads the body of a request that was verified. Pressed is false for
// what is none of Tocsin's buttons: links, and those of others in the same app.
func ReadPress(body []byte) (press Press, pressed bool, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return Press{}, false, errors.New("the form cannot be read")
	}
	var payload struct {
		Type string `json:"type"`
		User struct {
			ID       string `json:"id"`
			Username string `json:"username"`
			Name     string `json:"name"`
		} `json:"user"`
		Channel   struct{ ID string }
		Message   struct{ TS string }
		Container struct {
			ChannelID string `json:"channel_id"`
			MessageTS string `json:"message_ts"`
		} `json:"container"`
		Actions []struct {
			ActionID string `json:"action_id"`
			Value    string `json:"value"`
		} `json:"actions"`
	}
	if err := json.Unmarshal([]byte(form.Get("payload")), &payload); err != nil {
		return Press{}, false, errors.New("the form has no field payload that can be read")
	}
	if payload.Type != "block_actions" {
		return Press{}, false, nil
	}
	for _, action := range payload.Actions {
		switch action.ActionID {
		case actionAcknowledge:
			press.Action = alerts.Acknowledge
		case actionResolve:
			press.Action = alerts.Resolve
		default:
			continue
		}
		if press.AlertID, err = uuid.Parse(action.Value); err != nil {
			return Press{}, false, errors.New("the button's value is no alert's id")
		}
		pressed = true
		break
	}
	press.At = notify.Posted{
		Channel: firstOf(payload.Container.ChannelID, payload.Channel.ID),
		TS:      firstOf(payload.Container.MessageTS, payload.Message.TS),
	}
	press.Actor = actorPrefix + Plain(line(firstOf(payload.User.Username, payload.User.Name, payload.User.ID, "unknown")), maxActor)
	return press, pressed, nil
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
