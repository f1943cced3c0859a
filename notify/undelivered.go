package notify

import (
	"strings"

	"tocsin/alerts"
)

// Undelivered is a message that was refused or exhausted, of which operators are notified.
type Undelivered struct {
	// Webhook is the name of the webhook that did not accept the message. Status is empty while the
	// message is sent again.
	Webhook string
	Status  Status
	Error   string
}

// Tell returns the alert of the message, with texts that say that the message was not delivered,
// and why. So every layout and template shows this.
func (u Undelivered) Tell(a alerts.Instance) alerts.Instance {
	what := "The message to " + u.Webhook + " was not delivered"
	switch u.Status {
	case "", Delivered:
		what = "The message to " + u.Webhook + " was not delivered at first, and has been sent again since"
	case Failed:
		what = "The receiver of " + u.Webhook + " refused the message"
	case Exhausted:
		what = "All attempts to deliver the message to " + u.Webhook + " have failed"
	case Pending, Retrying, Discarded, Suppressed:
	}
	if u.Error != "" {
		what += ": " + u.Error
	}
	a.Title, a.Message = "Not delivered: "+a.Title, strings.TrimSpace(what+"\n"+a.Message)
	return a
}
