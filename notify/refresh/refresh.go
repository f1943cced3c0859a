// Package refresh updates posted messages when their alerts change.
//
// An update is not a notification. It establishes a state: a message in Slack shows the present
// state of its alert. So an update is level-triggered. It is one row per message. The row is
// inserted by the transaction that changes the alert (a trigger, so that no code path can forget
// it), or by the transaction that settles a post whose alert changed meanwhile. The body is
// rendered at each attempt, from the alert as it is once the claim holds the row. Any number of
// changes is one update, and the last one made shows the last state. A change during an attempt
// makes the row due at once, whatever became of the attempt.
//
//	alert changes ─▶ pending ──claim──▶ leased ──chat.update──▶ shown: the row leaves
//	                    ▲                  │
//	                    └── changed again, to be retried, lease expired, fenced
//
// Postgres is authoritative, and leases are compared only with its clock. At most one update of a
// message is under way under a valid lease. A claimant that has lost its claim may have reached
// Slack last, with an older state. It requests another update of the message, so what Slack shows
// in the end is right. The exception is an attempt that Slack carries out only after the pause of
// its retry.
//
// A process that dies leaves a claim that expires, and the update is made again. If it was made
// before, this changes nothing in Slack. An update that Slack refuses for good, because the message
// is deleted or too old to change, is dropped silently. So is an update that does not succeed
// within the schedule: the message has been delivered, and the inbox shows the present state.
// Updates never disable a webhook.
//
// Updates are less important than messages and never delay one. They have their own slots and their
// own rate, below Slack's limit for changes, which Slack counts separately from posts. If Slack
// asks for a pause after an update, only updates are held; after a message, both are. Of a
// webhook's pending updates, the newest [MaxPending] are kept, and the newest is made first: a
// person who presses a button during a storm, or after many alerts were acknowledged at once, sees
// the result.
package refresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"tocsin/internal/fault"
	"tocsin/notify"
)

// MaxPending bounds the pending updates of a webhook; at Slack's rate, they take
// about ten minutes.
const MaxPending = 500

// Limits of a webhook's updates in one process. Slack accepts at least 50 a minute.
const (
	perSecond = 0.8
	burst     = 5
)

// Update is a claimed update.
type Update struct {
	MessageID int64
	// Token is the token of this claim; Generation is that of the change to be shown.
	Token, Generation int64
	// Attempts is the number of attempts since the last change.
	Attempts int
	At       notify.Posted
	// Delivery is what the message is rendered from: its reason, its webhook, and the present
	// alert.
	Delivery notify.Delivery
}

// Store stores the pending updates.
type Store interface {
	// Claim takes the newest due update of each webhook that allow accepts.
	Claim(ctx context.Context, lease time.Duration, allow func(webhook uuid.UUID) bool) (Claimed, error)
	// Settle ends an update, or makes it due again.
	Settle(ctx context.Context, settlement Settlement) error
	// Trim deletes the oldest pending updates of each webhook, beyond most.
	Trim(ctx context.Context, most int) (forgotten int64, err error)
}

// Claimed is the result of a claim. It may contain updates even if there is an error.
type Claimed struct {
	Updates []Update
	// None says that there is no webhook whose messages could be changed.
	None bool
}

// Settlement is the consequence of an attempt.
type Settlement struct {
	Update *Update
	// Retry is the pause before the next attempt; 0 ends the update.
	Retry time.Duration
	// Counts says that the attempt counts against the schedule.
	Counts bool
	// Hold, if positive, holds the updates of the whole webhook.
	Hold time.Duration
}

// Sender makes one attempt to change a message.
type Sender interface {
	Update(ctx context.Context, w *notify.Webhook, at notify.Posted, body *notify.Body) notify.Outcome
}

// Options configure a [Refresher]. Poll and Lease have defaults.
type Options struct {
	Store    Store
	Renderer notify.Renderer
	Sender   Sender
	Logger   *slog.Logger
	// Clock limits the rate of updates. No lease is compared with it.
	Clock func() time.Time
	// Poll is the pause between looks for a while after an update was claimed, 1 s by default. The end of an update ends it.
	// Later the pause is four times as long, and 15 times while no webhook posts messages that can
	// be changed.
	Poll time.Duration
	// Lease is how long a claim lasts, 30 s by default. An attempt takes at most 10 s.
	Lease time.Duration
}

// Refresher makes updates.
type Refresher struct {
	Options

	// trimmed is when updates beyond the bound were last deleted. quiet counts the looks without an
	// update since the last claim. none says that the last look found no webhook at all.
	trimmed time.Time
	quiet   int
	none    bool

	underWay sync.WaitGroup
	// ended holds a signal if an update has ended since the last look: its webhook may have another one.
	ended chan struct{}

	mu       sync.Mutex
	limiters map[uuid.UUID]*rate.Limiter
	// busy are the webhooks with an update under way.
	busy map[uuid.UUID]bool
}

// New returns a refresher. Its error names the missing option.
func New(o Options) (*Refresher, error) {
	if o.Store == nil || o.Renderer == nil || o.Sender == nil || o.Logger == nil || o.Clock == nil {
		return nil, errors.New("refresher: Store, Renderer, Sender, Logger and Clock are required")
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	if o.Poll < 0 || o.Lease < 0 {
		return nil, errors.New("refresher: Poll and Lease must be positive")
	}
	return &Refresher{Options: o, limiters: map[uuid.UUID]*rate.Limiter{}, busy: map[uuid.UUID]bool{}, ended: make(chan struct{}, 1), trimmed: o.Clock(), quiet: quietPolls}, nil
}

const (
	// quietPolls is the number of looks without an update after which looks become rarer.
	quietPolls = 60
	// trimEvery is how often updates beyond the bound are deleted; trimQuiet is how often while
	// none is made.
	trimEvery, trimQuiet = 10 * time.Second, time.Minute
)

// Run updates messages until ctx ends, and then waits for the attempts under way. A receiver that
// hangs delays only its own updates.
func (r *Refresher) Run(ctx context.Context) {
	defer r.underWay.Wait()
	pause := time.NewTimer(r.Poll)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		case <-r.ended:
		}
		_, err := r.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.Logger.WarnContext(ctx, "messages not updated; it is retried: run tocsin doctor if this repeats", slog.Any("error", err), fault.Stack(err))
		}
		pause.Reset(r.pause(err))
	}
}

// pause returns how long to wait after a look, if no update ends before.
func (r *Refresher) pause(err error) time.Duration {
	switch {
	case err == nil && r.none:
		return 15 * r.Poll
	case err == nil && r.quiet > quietPolls:
		return 4 * r.Poll
	default:
		return r.Poll
	}
}

// Tick is one pass: at most one update of each webhook. It returns when they are settled, with the
// number of attempts.
func (r *Refresher) Tick(ctx context.Context) (attempted int, err error) {
	attempted, err = r.pass(ctx)
	r.underWay.Wait()
	return attempted, err
}

// pass begins at most one update of each webhook that has none under way.
func (r *Refresher) pass(ctx context.Context) (attempted int, err error) {
	every := trimEvery
	if r.quiet > quietPolls {
		every = trimQuiet
	}
	if now := r.Clock(); now.Sub(r.trimmed) >= every {
		forgotten, err := r.Store.Trim(ctx, MaxPending)
		if err != nil {
			return 0, fmt.Errorf("trim updates: %w", err)
		}
		if forgotten > 0 {
			r.Logger.InfoContext(ctx, "old Slack messages are no longer updated", slog.Int64("messages", forgotten))
		}
		r.trimmed = now
	}
	claimed, err := r.Store.Claim(ctx, r.Lease, r.admit)
	if err != nil {
		err = fmt.Errorf("claim updates: %w", err)
	}
	r.none = claimed.None
	if r.quiet++; len(claimed.Updates) > 0 {
		r.quiet = 0
	}
	for i := range claimed.Updates {
		u := &claimed.Updates[i]
		r.setBusy(u.Delivery.Webhook.ID, true)
		r.underWay.Go(func() {
			r.update(context.WithoutCancel(ctx), u)
			r.setBusy(u.Delivery.Webhook.ID, false)
			select {
			case r.ended <- struct{}{}:
			default:
			}
		})
	}
	return len(claimed.Updates), err
}

func (r *Refresher) setBusy(webhook uuid.UUID, busy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[webhook] = busy; !busy {
		delete(r.busy, webhook)
	}
}

// admit takes one update from a webhook's rate, unless one is under way.
func (r *Refresher) admit(webhook uuid.UUID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[webhook] {
		return false
	}
	limiter := r.limiters[webhook]
	if limiter == nil {
		limiter = rate.NewLimiter(perSecond, burst)
		r.limiters[webhook] = limiter
	}
	return limiter.AllowN(r.Clock(), 1)
}

// update makes an update and settles it. One that panics is dropped.
func (r *Refresher) update(ctx context.Context, u *Update) {
	logger := r.Logger.With(slog.String("webhook_id", u.Delivery.Webhook.ID.String()), slog.String("alert_id", u.Delivery.Alert.ID.String()))
	settlement := Settlement{Update: u}
	if err := fault.Guard(func() error { settlement = r.attempt(ctx, logger, u); return nil }); err != nil {
		logger.ErrorContext(ctx, "update panicked and is dropped; the message may show an earlier state of its alert", slog.Any("error", err), fault.Stack(err))
	}
	// If this is not stored, the update is made again when the lease expires, which changes
	// nothing.
	if err := fault.Guard(func() error { return r.Store.Settle(ctx, settlement) }); err != nil {
		logger.WarnContext(ctx, "update not settled; it is made again: run tocsin doctor if this repeats", slog.Any("error", err), fault.Stack(err))
	}
}

// attempt makes an update, and decides what follows.
func (r *Refresher) attempt(ctx context.Context, logger *slog.Logger, u *Update) Settlement {
	body, problem := r.Renderer.Render(&u.Delivery)
	if problem != nil {
		logger.WarnContext(ctx, "the template cannot be rendered, so a default body is sent; the error says what to correct, or to report", slog.Any("error", problem), fault.Stack(problem))
	}
	outcome := r.Sender.Update(ctx, &u.Delivery.Webhook, u.At, &body)
	settlement := decide(u, outcome)
	if outcome.Verdict != notify.VerdictDelivered {
		logger.InfoContext(ctx, "message not updated", slog.String("verdict", outcome.Verdict.String()),
			slog.Bool("again", settlement.Retry > 0), slog.String("error", outcome.Error))
	}
	return settlement
}

// Pauses after failed attempts, and after a limit without a time.
func schedule() []time.Duration {
	return []time.Duration{15 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute}
}

const (
	defaultHold = 30 * time.Second
	maxHold     = 10 * time.Minute
)

func decide(u *Update, o notify.Outcome) Settlement {
	s := Settlement{Update: u}
	switch o.Verdict {
	case notify.VerdictDelivered, notify.VerdictRefused, notify.VerdictGone, notify.VerdictNotMade:
	case notify.VerdictThrottled:
		s.Hold = o.RetryAfter
		if s.Hold <= 0 {
			s.Hold = defaultHold
		}
		s.Hold = min(s.Hold, maxHold)
		s.Retry = s.Hold
	case notify.VerdictRetry, notify.VerdictUnknown:
		if pauses := schedule(); u.Attempts < len(pauses) {
			s.Retry, s.Counts = pauses[u.Attempts], true
		}
	}
	return s
}
