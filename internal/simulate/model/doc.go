// Package model is Postgres and ClickHouse as Tocsin relies on them, in memory.
//
// [Postgres] keeps what the store of package internal/postgres keeps, and each of its
// methods is one transaction: all of it or nothing. Transactions follow one another, and
// [Postgres.Failover] takes the last ones back, as the promotion of an asynchronous standby
// does. Package internal/storetest holds that it obeys the same laws as the real store.
//
// [ClickHouse] is a table on several servers, each of which shows a row from an instant of
// its own.
//
// What guards the promises inside Postgres (its constraints, its conditions) can be taken
// away by [Guard], so that a test shows that the simulation notices.
package model

// Guard is what keeps a promise inside Postgres. Without it, the model breaks the promise, and the
// checker has to notice.
type Guard string

// The guards.
const (
	// AlertOnce is the unique constraint of alerts by rule and exchange.
	AlertOnce Guard = "alert-once"
	// CommitToken, CommitRevision and CommitRules are the parts of the compare-and-set that
	// fences a commit.
	CommitToken    Guard = "commit-token"
	CommitRevision Guard = "commit-revision"
	CommitRules    Guard = "commit-rules-revision"
	// CommitAtomic has a commit write all or nothing.
	CommitAtomic Guard = "commit-atomic"
	// FreshToken gives a partition another token with each holder.
	FreshToken Guard = "fresh-token"
	// LeaseExclusive leaves a partition to its holder until the lease has ended.
	LeaseExclusive Guard = "lease-exclusive"
	// KnownNotNotified writes notifications for new alerts alone.
	KnownNotNotified Guard = "known-not-notified"
	// ClaimExclusive leaves a claimed message to its claimant until the lease has ended.
	ClaimExclusive Guard = "claim-exclusive"
	// ClaimBegins records an attempt with the claim.
	ClaimBegins Guard = "claim-begins"
	// SettleToken demands the token of a settlement.
	SettleToken Guard = "settle-token"
	// ClaimToken gives each claim a token of its own.
	ClaimToken Guard = "claim-token"
	// LateSuccess ends a message that has arrived, though its claim has passed on.
	LateSuccess Guard = "late-success"
	// UnknownRecorded keeps an attempt whose outcome is unknown.
	UnknownRecorded Guard = "unknown-recorded"
	// BodyFrozen has every attempt send the bytes of the first.
	BodyFrozen Guard = "body-frozen"
	// DigestMoves takes what a digest contains out of the outbox.
	DigestMoves Guard = "digest-moves"
	// ArmedBySource arms rules by the source's clock where it is behind.
	ArmedBySource Guard = "armed-by-source"
	// FormerConditions keeps the condition before an edit.
	FormerConditions Guard = "former-conditions"
	// OwnBeginning has a rule that is armed read what is behind its partition's cursor.
	OwnBeginning Guard = "own-beginning"
	// LongerLookBack has a rule read what a longer look-back reaches.
	LongerLookBack Guard = "longer-look-back"
	// RetentionRaises raises a rule's floor before its alerts are deleted, and RetentionObeyed
	// has commits obey it.
	RetentionRaises Guard = "retention-floor"
	RetentionObeyed Guard = "retention-obeyed"
	// RetentionReach leaves alerts alone whose exchanges a rule can still read.
	RetentionReach Guard = "retention-reach"
	// RetentionWaiting leaves alerts alone with a message that is still to be delivered.
	RetentionWaiting Guard = "retention-waiting"
	// RetryLeavesClaims leaves a message alone that is being attempted when a person
	// retries it.
	RetryLeavesClaims Guard = "retry-leaves-claims"
	// MessagesInOrder keeps a message out of the queue while an earlier one of its alert for
	// its webhook is open.
	MessagesInOrder Guard = "messages-in-order"
	// WindowOnce has one alert at most be open or held for each rule and group.
	WindowOnce Guard = "window-alert-once"
	// StepFrom makes a step of a window alert only from the state that it leads from.
	StepFrom Guard = "step-from-state"
	// SilencesObeyed has a commit ask which messages silences suppress, and SilencesTenant
	// has it ask those of the alert's tenant alone.
	SilencesObeyed Guard = "silences-obeyed"
	SilencesTenant Guard = "silences-of-the-tenant"
	// SilencesEnd has it leave out what is over.
	SilencesEnd Guard = "silences-end"
	// SilenceDigestsPlanned plans the digests of a silence again where it is changed or ended, and
	// SilenceDigestsRecur plans the next ones where some are written.
	SilenceDigestsPlanned Guard = "silence-digests-planned"
	SilenceDigestsRecur   Guard = "silence-digests-recur"
	// SilenceDigestsEnd has a digest list only what was suppressed before its end.
	SilenceDigestsEnd Guard = "silence-digests-end"
	// PolicyChangesRules has an edit of a routing policy change the rules that use it.
	PolicyChangesRules Guard = "policy-changes-rules"
	// ReplayOver refuses a step of a replay that is over.
	ReplayOver Guard = "replay-over"
	// EscalationLocked has a step be looked at again under a lock on its alert, and
	// EscalationMoves has its row move on in the transaction that writes its messages.
	EscalationLocked Guard = "escalation-locked"
	EscalationMoves  Guard = "escalation-moves"
	// EscalationSkips takes no step of an alert that somebody looks after, EscalationSnoozed
	// none of one that is snoozed.
	EscalationSkips   Guard = "escalation-skips"
	EscalationSnoozed Guard = "escalation-snoozed"
	// EscalationResumes has what is undone end no escalation.
	EscalationResumes Guard = "escalation-resumes"
	// EscalationDiscarded gives up what waits about an alert that was looked after long before.
	EscalationDiscarded Guard = "escalation-discarded"
	// EscalationByStep derives the id of a step's message from the step, and EscalationWaits has a step
	// wait while quiet hours hold a message about its alert.
	EscalationByStep Guard = "escalation-by-step"
	EscalationWaits  Guard = "escalation-waits"
	// EscalationCounts has the minutes of steps count from when somebody was notified of the alert.
	EscalationCounts Guard = "escalation-counts"
	// QuietHeld has every writer of messages look at quiet hours, QuietCritical lets what is critical pass, and
	// QuietHealth what is about Tocsin itself.
	QuietHeld     Guard = "quiet-held"
	QuietCritical Guard = "quiet-critical"
	QuietHealth   Guard = "quiet-health"
	// QuietLocked has what was found to be over be looked at again under a lock on its alert.
	QuietLocked Guard = "quiet-locked"
	// QuietMoved moves the end of what is held where quiet hours are edited.
	QuietMoved Guard = "quiet-moved"
	// QuietTogether decides about all messages of an alert that quiet hours hold for a webhook at once.
	QuietTogether Guard = "quiet-together"
	// ReplaysEscalateNothing starts no escalation of what a replay raises.
	ReplaysEscalateNothing Guard = "replays-escalate-nothing"
	// SnoozeLocked has a snooze be looked at again under a lock on its alert, SnoozeEnds has it
	// end in the transaction that writes its reminder, and SnoozeVoid writes none of what is
	// resolved.
	SnoozeLocked Guard = "snooze-locked"
	SnoozeEnds   Guard = "snooze-ends"
	SnoozeVoid   Guard = "snooze-void"
	// ResolvedOnce resolves by evidence only what is still open, EditVoidsProof nothing of a rule that says
	// something else by now, and MarkOfEvidence goes by a mark only for the evidence for which it was set.
	ResolvedOnce   Guard = "resolved-once"
	EditVoidsProof Guard = "edit-voids-proof"
	MarkOfEvidence Guard = "mark-of-evidence"
	// EventsNotified notifies of what people do with alerts, and EventsExpire gives up what is too old by the time it is claimed.
	EventsNotified Guard = "events-notified"
	EventsExpire   Guard = "events-expire"
	// EndsHeard notifies no webhook of the end of an alert that has not heard of it, because of silences or of quiet
	// hours, or because the messages before it were given up while it waited.
	EndsHeard Guard = "ends-heard"
	// ProbeFirst lets one message go to a receiver that did not answer.
	ProbeFirst Guard = "probe-first"
)
