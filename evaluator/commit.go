package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/ruleset"
	"tocsin/notify"
)

// step is how far a commit takes a partition.
type step struct {
	// cursor is nil for a partition without rules.
	cursor *cursor.Position
	// judged is the range that is evaluated as a server showed it, empty for none.
	judged cursor.Range
	server string
	// behind are rules with progress of their own, which come to a position. Own is the range
	// that was read for them.
	behind []*ruleset.Rule
	to     cursor.Position
	own    cursor.Range
	// replay is how far a replay comes; nil for none.
	replay *ruleset.ReplayStep
}

// stay is the step of a commit that takes the partition no further.
func (p *pass) stay() step { return step{cursor: p.at.Cursor} }

// commit writes what was found and how far the partition has come. Where the database
// refuses what is found, the rules at fault are found by halves: they fail, and the
// others go on.
func (p *pass) commit(ctx context.Context, f findings, next step) error {
	ids := f.finders()
	next.behind = slices.DeleteFunc(slices.Clone(next.behind), func(r *ruleset.Rule) bool { return f.panicked[r.ID] })
	err := p.write(ctx, f, next)
	if !errors.Is(err, ErrRefused) || len(ids) == 0 {
		return err
	}
	failed := map[uuid.UUID]bool{}
	if err := p.isolate(ctx, &f, ids, err, failed); err != nil {
		return err
	}
	next.behind = slices.DeleteFunc(slices.Clone(next.behind), func(r *ruleset.Rule) bool { return failed[r.ID] })
	return p.write(ctx, findings{}, next)
}

// isolate commits the findings of rules half by half, without moving any cursor, and
// fails those of which the database refuses the findings alone.
func (p *pass) isolate(ctx context.Context, f *findings, ids []uuid.UUID, why error, failed map[uuid.UUID]bool) error {
	if len(ids) == 1 {
		r := p.rules.Rule(ids[0])
		p.fail(r, why, f.rangeOf(r.ID))
		failed[r.ID] = true
		return nil
	}
	for _, half := range [][]uuid.UUID{ids[:len(ids)/2], ids[len(ids)/2:]} {
		err := p.write(ctx, f.of(half), p.stay())
		if errors.Is(err, ErrRefused) {
			err = p.isolate(ctx, f, half, err, failed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write makes one transaction of a batch, with all that waits for the next commit, and
// takes over what it made final. After an error nothing is final: what is remembered of
// rules is read again, and the next pass does the same work.
func (p *pass) write(ctx context.Context, f findings, next step) error {
	b := Batch{
		Partition: p.number, Token: p.at.Token, Revision: p.at.Revision, RulesRevision: p.at.RulesRevision,
		LeaseFor: p.LeaseFor, ClockOffset: p.at.ClockOffset, Cursor: next.cursor, Watch: p.at.Watch,
		Instances: f.instances, Notifications: f.notifications, Changes: f.changes, Replay: next.replay,
	}
	if p.backlog != nil && next.cursor != nil {
		b.Backfill = p.backlog.Mark(next.judged, next.server)
	}
	written := p.pending.With(next.behind, next.to, next.cursor)
	for _, id := range f.finders() {
		if !f.panicked[id] {
			written.Settles(p.rules.Rule(id), f.problems[id])
		}
	}
	b.Backfills, b.Health, b.Evaluated = written.Sorted(), written.Health, written.Evaluated
	began := p.Clock()
	done, err := p.Store.Commit(ctx, b)
	if err != nil {
		if !errors.Is(err, ErrRefused) {
			p.reload, p.pending = true, ruleset.Pending{}
		}
		if errors.Is(err, ErrStale) {
			p.result.Stale++
		}
		if errors.Is(err, context.DeadlineExceeded) && len(b.Instances) > 1 {
			p.pageSize = max(1, p.pageSize/2) // a slow database takes fewer alerts in time
		}
		return fmt.Errorf("commit: %w", err)
	}
	p.at.Revision, p.at.Cursor, p.at.Backfill, p.confirmed = done.Revision, next.cursor, b.Backfill, b.RulesRevision
	p.rules.Written(&written)
	p.pending = ruleset.Pending{}
	if p.backlog != nil {
		p.backlog.Conclude(next.judged, next.server)
		if len(next.behind) > 0 && p.backlog.Several() {
			// What one server showed was evaluated without these rules, and they may have read by
			// another one that lags: the one that this pass has observed.
			p.backlog.Forget(next.own)
		}
	}
	if next.replay != nil {
		p.rules.Replayed(next.replay)
	}
	p.committed(ctx, &b, &done, Timing{Commit: p.Clock().Sub(began)})
	return nil
}

// committed counts what a transaction wrote, and wakes the dispatchers.
func (p *pass) committed(ctx context.Context, b *Batch, done *Committed, t Timing) {
	inserted := make(map[uuid.UUID]bool, len(done.Inserted))
	for _, id := range done.Inserted {
		inserted[id] = true
	}
	now := p.Clock().UnixNano()
	for i := range b.Instances {
		a := &b.Instances[i]
		p.backlog.Raised(a.ID, a.Exchange.StartTimeNS)
		if !inserted[a.ID] || b.Replay != nil {
			continue // what is replayed was not detected late
		}
		t.DetectedNS = append(t.DetectedNS, max(0, now-a.Exchange.EndedNS()))
		if a.Late {
			p.result.Late++
		}
	}
	for i := range b.Changes {
		c := &b.Changes[i]
		if !slices.Contains(done.Locked, c.Instance.ID) {
			continue
		}
		p.rules.Rule(c.Instance.RuleID).EvaluatedNS = 0 // the next pass decides again
		if p.says("locked") {
			p.Logger.WarnContext(ctx, "alert not changed, because another session of Postgres has locked its row; it is retried: if this repeats, find the session "+
				"(pg_blocking_pids, pg_stat_activity) and end its transaction", slog.String("alert_id", c.Instance.ID.String()))
		}
	}
	p.result.Alerts += len(done.Inserted)
	p.result.Suppressed += done.Suppressed
	for _, h := range b.Health {
		if h.Failed {
			p.result.Failed++
		}
	}
	if p.Observer != nil {
		p.Observer.Committed(t)
	}
	wake := notify.WakeUp{Webhooks: slices.Collect(maps.Keys(done.Notifications))}
	for _, n := range done.Notifications {
		wake.Notifications += n
	}
	p.result.Notifications += wake.Notifications
	if wake.Notifications == 0 {
		return
	}
	if err := p.Publisher.Publish(context.WithoutCancel(ctx), wake); err != nil {
		p.Logger.WarnContext(ctx, "wake-up not published; dispatchers find the messages by polling: run tocsin doctor if this repeats", slog.Any("error", err))
	}
}
