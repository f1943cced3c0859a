package simulate

import (
	"time"

	"github.com/google/uuid"

	"tocsin/internal/simulate/model"
	"tocsin/notify"
)

// alertTruth is what the checker expects of an alert.
type alertTruth struct {
	state  string
	pair   *pair
	exists bool
	// events is how many messages each webhook must have about what happened to it.
	events map[place]int
	// Of an alert that a replay without messages may have raised: whether it may have none, and
	// whether it may have any.
	mayBeQuiet, isQuiet bool
	// Of an alert of a window rule: that its count became too small while it was pending, that
	// it did once it had fired, and how often it reminded.
	dropped, cleared bool
	reminders        int
	// notified is how many messages each webhook must have that it fires, and due are the reasons of steps that were not added.
	notified map[place]int
	due      []notify.Reason
	// endNoted says that the webhooks that must be notified of its end are noted.
	endNoted bool
	// routed are the webhooks that the routing policy led to when the alert fired; nil where
	// it was not routed.
	routed []uuid.UUID
	// steps are those by which it escalates, next is after how many minutes the next one comes (0 is
	// none), and stepOf is of which step each message is; nil before the alert fires.
	steps  []stepTruth
	next   int
	stepOf map[uuid.UUID]int
	// resumedSince is since when something was done that a person has just undone; onlyReplays
	// says that nothing but replays raises the alert.
	resumedSince time.Time
	onlyReplays  bool
	// notifiedAt is when quiet hours ended for a webhook that was not notified of the alert before, or a person sent what they held.
	notifiedAt time.Time
	// snooze is that which a person set and which has not ended, reminderOf is when that was set of which
	// each message reminds.
	snooze     *model.Snooze
	reminderOf map[uuid.UUID]time.Time
}

// beginning names an attempt: a failover can take one back, and its number with it.
type beginning struct {
	attempt int
	at      int64
}

// messageTruth is what the checker knows of a message.
type messageTruth struct {
	exists, waiting bool
	// delivered is the generation that the store says was delivered, -1 for none.
	delivered, generation int
	// begun are the attempts that the store has recorded before their calls.
	begun map[beginning]time.Time
	// settled is how it ended, when that was last looked at; discarded says that a person gave it up.
	settled   notify.Status
	discarded bool
	// fresh says that it was written since the last look.
	fresh bool
}
