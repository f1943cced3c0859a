// Package storetest is the law of Tocsin's store: what evaluators, dispatchers, retention and
// memberships rely on. The real store on Postgres and the model of the simulation obey the
// same one, or the simulation would prove nothing.
package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/alerts/silences"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/resolution"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/lease"
	"tocsin/internal/retention"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// Tenant is the tenant of all that the laws do, Partition its partition.
const Tenant = "acme"

// Store is a store under test, fresh, with eight partitions and a tenant's first rule still
// to be created.
type Store struct {
	Evaluation evaluator.Store
	Outbox     dispatch.Store
	Retention  retention.Store
	Replicas   lease.Store
	Resolution resolution.Store
	// What people do. They return an error where it cannot be done.
	CreateWebhook func(w notify.Webhook) (uuid.UUID, error)
	EnableWebhook func(id uuid.UUID, enabled bool) error
	CreateRule    func(d rules.Definition) (rules.Rule, error)
	UpdateRule    func(r rules.Rule) (rules.Rule, error)
	EnableRule    func(id uuid.UUID, enabled bool) (rules.Rule, error)
	Resolve       func(alert uuid.UUID) error
	Retry         func(notification uuid.UUID) error
	Discard       func(notification uuid.UUID) error
	CreateSilence func(d silences.Definition) (uuid.UUID, error)
	UpdateSilence func(id uuid.UUID, d silences.Definition) error
	EndSilence    func(id uuid.UUID) error
	// DigestSilences writes the digests of silences that are due, and returns how many are to be sent
	// to each webhook.
	DigestSilences func() (map[uuid.UUID]int, error)
	// Act acts on alerts as one act, and returns how many it has changed; Undo takes that back, and
	// returns how many it has restored.
	Act  func(act uuid.UUID, action alerts.Action, ids ...uuid.UUID) (changed int, err error)
	Undo func(act uuid.UUID) (restored int, err error)
	// Snooze lets an alert be quiet for a while.
	Snooze       func(alert uuid.UUID, d time.Duration) error
	CancelSnooze func(alert uuid.UUID) error
	// Escalate takes the steps that are due, and Remind ends the snoozes that are over. They return how
	// many messages are to be sent to each webhook.
	Escalate func() (map[uuid.UUID]int, error)
	Remind   func() (map[uuid.UUID]int, error)
	// ExpireHeld ends what has waited for so long for receivers that have asked for pauses for
	// as long, and returns how many it has ended.
	ExpireHeld func(after time.Duration) (int, error)
	// EndQuiet puts into the queue what quiet hours have held until now, and returns how much.
	EndQuiet       func() (int, error)
	EditQuietHours func(webhook uuid.UUID, hours notify.QuietHours) error
	// ReplacePolicy edits a version of the tenant's routing policy.
	ReplacePolicy func(version int64, p routing.Policy) error
	StartReplay   func(rule uuid.UUID, fromNS, toNS int64, messages ruleset.ReplayMessages) error
	CancelReplay  func(rule, id uuid.UUID) error
	// Replay returns what a replay has matched and raised, and its state.
	Replay func(id uuid.UUID) (matched, raised int, state string)
	// Advance has everything that is stored be so much older.
	Advance func(d time.Duration)
	// Partition is the number of the tenant's partition.
	Partition int
	// Alert returns the state of an alert; empty for none. Alerts counts all.
	Alert  func(id uuid.UUID) alerts.State
	Alerts func() int
	// Message returns the status of a message and the verdicts of its attempts in order,
	// "UNKNOWN" where none is stored.
	Message func(id uuid.UUID) (status notify.Status, verdicts []string)
	// SuppressedBy returns the silence that a message names, uuid.Nil for none.
	SuppressedBy func(id uuid.UUID) uuid.UUID
	// ListedIn returns the digest of a silence that lists a message, uuid.Nil for none.
	ListedIn func(id uuid.UUID) uuid.UUID
	// Routing returns how an alert was routed, nil where it was not.
	Routing func(alert uuid.UUID) *alerts.Routing
}

// law is a store with what most laws begin with.
type law struct {
	*testing.T
	Store

	webhook, operators uuid.UUID
	rule               rules.Rule
	at                 evaluator.Checkpoint
	now                time.Time
	next               int
	// unknown has nobody know how to render a message.
	unknown bool
	// schedule is the schedule of the receiver.
	schedule notify.Schedule
	// broken is how many of the next messages cannot be rendered at all.
	broken int
	// meanwhile happens within each claim, before it commits; unwanted is what the last
	// claim returned of the webhook after its commit.
	meanwhile func()
	unwanted  bool
}

// Run holds a store to the law.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for name, holds := range laws() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &law{T: t, Store: open(t)}
			l.begin()
			holds(l)
		})
	}
}

const (
	leaseFor = 15 * time.Second
	claimFor = 30 * time.Second
)

func (l *law) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// begin creates webhooks and a rule, and takes all partitions as replica a.
func (l *law) begin() {
	l.Helper()
	var err error
	hook := notify.Webhook{Name: "hook", Kind: notify.KindGeneric, URL: "https://example.com", Enabled: true, Timeout: time.Second, MaxConcurrent: 8}
	l.webhook, err = l.CreateWebhook(hook)
	l.must(err)
	hook.Name, hook.Operators = "operators", true
	l.operators, err = l.CreateWebhook(hook)
	l.must(err)
	l.rule, err = l.CreateRule(definition("rule", l.webhook))
	l.must(err)
	l.beat("a")
	l.hold("a")
}

func definition(name string, hooks ...uuid.UUID) rules.Definition {
	return rules.Definition{
		Name: name, Enabled: true, FireMode: rules.PerExchange, Severity: rules.Warning, IntervalSeconds: 1, LookBackSeconds: 3600,
		Filter: rules.Filter{Statuses: []rules.Status{rules.Failed}}, WebhookIDs: hooks,
	}
}

func (l *law) beat(replicas ...string) {
	l.Helper()
	for _, id := range replicas {
		l.must(l.Replicas.Beat(l.Context(), lease.Replica{ID: id, Roles: []string{"evaluate"}}))
	}
}

// hold has a replica ask for partitions, returns how many it holds, and notes the tenant's.
func (l *law) hold(replica string) int {
	l.Helper()
	holding, err := l.Evaluation.Hold(l.Context(), evaluator.HoldRequest{Replica: replica, LeaseFor: leaseFor})
	l.must(err)
	l.now = holding.Now
	for _, c := range holding.Checkpoints {
		if c.Partition == l.Partition {
			l.at = c
		}
	}
	return len(holding.Checkpoints)
}

// batch is a commit from the checkpoint as it is known, with some new alerts.
func (l *law) batch(alertsOf ...rules.Rule) evaluator.Batch {
	at := cursor.Position{StartTimeNS: l.now.UnixNano()}
	b := evaluator.Batch{
		Partition: l.Partition, Token: l.at.Token, Revision: l.at.Revision, RulesRevision: l.at.RulesRevision, LeaseFor: leaseFor, Cursor: &at,
	}
	for i := range alertsOf {
		l.next++
		l.add(&b, &alertsOf[i], l.next, l.now.UnixNano())
	}
	return b
}

// caughtUp is the rule's own progress when it is done.
func (l *law) caughtUp() []ruleset.Backfill {
	at := cursor.Position{StartTimeNS: l.now.UnixNano()}
	return []ruleset.Backfill{{RuleID: l.rule.ID, At: at, Until: &at}}
}

// add adds the alert of a rule about an exchange of a number.
func (l *law) add(b *evaluator.Batch, r *rules.Rule, number int, startNS int64) uuid.UUID {
	end := startNS
	e := rules.Exchange{
		TenantID: Tenant, StartTimeNS: startNS, EndTimeNS: &end, ExecutionID: "e" + string(rune('a'+number)), Status: rules.Failed,
		Application: "orders", Attributes: map[string]string{},
	}
	id := alerts.ID(r.ID, &e)
	b.Instances = append(b.Instances, alerts.Instance{
		ID: id, TenantID: Tenant, RuleID: r.ID, RuleVersion: r.Version, Severity: r.Severity, State: alerts.Firing, Title: "title", Exchange: e.Clean(),
	})
	for _, hook := range r.WebhookIDs {
		b.Notifications = append(b.Notifications, notify.Notification{
			ID: notify.ID(id, hook, notify.ReasonFired, 0), TenantID: Tenant, AlertID: id, RuleID: r.ID, WebhookID: hook, Reason: notify.ReasonFired,
		})
	}
	return id
}

// commit writes a batch, and follows the checkpoint.
func (l *law) commit(b evaluator.Batch) evaluator.Committed {
	l.Helper()
	done, err := l.Evaluation.Commit(l.Context(), b)
	l.must(err)
	l.at.Revision, l.at.Cursor, l.at.Backfill = done.Revision, b.Cursor, b.Backfill
	return done
}

// raise raises alerts, and returns the ids of their notifications.
func (l *law) raise(n int) (messages []uuid.UUID) {
	l.Helper()
	for range n {
		b := l.batch(l.rule)
		l.commit(b)
		messages = append(messages, b.Notifications[0].ID)
	}
	return messages
}

// claim has a replica claim at most so many messages of the webhook.
func (l *law) claim(replica string, most int) []notify.Delivery {
	l.Helper()
	claimed, err := l.Outbox.Claim(l.Context(), dispatch.ClaimRequest{
		Replica: replica, Lease: claimFor, Schedule: func(*notify.Webhook) notify.Schedule { return l.schedule },
		Deal: func(due []dispatch.Due) (dealt []dispatch.Slots) {
			for _, d := range due {
				if d.WebhookID == l.webhook {
					dealt = append(dealt, dispatch.Slots{WebhookID: d.WebhookID, Slots: most})
				}
			}
			return dealt
		},
		Render: func(*notify.Delivery) (notify.Body, string, error) {
			l.next++
			if l.meanwhile != nil {
				l.meanwhile()
			}
			if l.broken > 0 {
				l.broken--
				return notify.Body{}, "", errors.New("it cannot be rendered")
			}
			if l.unknown {
				return notify.Body{}, "there is no such receiver", nil
			}
			return notify.Body{ContentType: "text/plain", Content: []byte{byte(l.next)}}, "", nil
		},
	})
	l.must(err)
	l.must(claimed.Unchecked)
	l.unwanted = slices.Contains(claimed.Unwanted, l.webhook)
	return claimed.Deliveries
}

// one claims one message, which there has to be.
func (l *law) one(replica string) notify.Delivery {
	l.Helper()
	list := l.claim(replica, 1)
	if len(list) != 1 {
		l.Fatalf("%s claims %d messages, want 1", replica, len(list))
	}
	return list[0]
}

// settle stores the outcome of an attempt, and reports whether its claim was still valid.
func (l *law) settle(replica string, d notify.Delivery, o notify.Outcome) (valid bool) {
	l.Helper()
	policy := notify.DefaultPolicy()
	policy.Jitter, policy.Breaker.Jitter = 0, 0
	decision := policy.Decide(o, &d, 0)
	settled, err := l.Outbox.Settle(l.Context(), []dispatch.Settlement{{
		TenantID: Tenant, NotificationID: d.NotificationID, WebhookID: d.Webhook.ID, WebhookVersion: d.Webhook.Version, Token: d.Token,
		Attempt: d.Attempt, Replica: replica, Outcome: o, Decision: decision, Reference: notify.ReferenceOf(&d, o),
		Breaker: func(was notify.Breaker, probe bool, now time.Time) notify.Breaker {
			return policy.Breaker.Next(was, notify.Evidence{Outcome: o, Hold: decision.Hold, Probe: probe, Now: now})
		},
	}})
	l.must(err)
	return !settled[0].Fenced
}

// is holds that a message has a status, and attempts with these verdicts.
func (l *law) is(message uuid.UUID, status notify.Status, verdicts ...string) {
	l.Helper()
	got, attempts := l.Message(message)
	if got != status || len(attempts) != len(verdicts) {
		l.Fatalf("the message is %s after %v, want %s after %v", got, attempts, status, verdicts)
	}
	for i := range verdicts {
		if attempts[i] != verdicts[i] {
			l.Fatalf("the message is %s after %v, want %s after %v", got, attempts, status, verdicts)
		}
	}
}

func (l *law) equal(what string, got, want any) {
	l.Helper()
	if got != want {
		l.Fatalf("%s: %v, want %v", what, got, want)
	}
}
