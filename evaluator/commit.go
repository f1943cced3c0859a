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
	"tocsin/notify"
)

// step is how far a commit takes a partition.
type step struct {
	// cursor is nil for a partition without rules.
	cursor *cursor.Position
	// judged is the range that is judged as a server showed it, empty for none.
	judged Range
	server string
}

// commit writes what was found and how far the partition has come. Where the database
// refuses what is found, the rules at fault are found by halves: they fail, and the
// others go on.
func (p *pass) commit(ctx context.Context, f findings, next step) error {
	p.noteProblems(&f)
	err := p.write(ctx, Batch{Instances: f.instances, Notifications: f.notifications}, next)
	if !errors.Is(err, ErrRefused) || len(f.instances) == 0 {
		return err
	}
	if err := p.isolate(ctx, &f, f.finders(), err); err != nil {
		return err
	}
	return p.write(ctx, Batch{}, next)
}

// isolate commits the findings of rules half by half, without moving the cursor, and
// fails those of which the database refuses the findings alone.
func (p *pass) isolate(ctx context.Context, f *findings, ids []uuid.UUID, why error) error {
	if len(ids) == 1 {
		p.fail(p.rules.byID[ids[0]], why)
		return nil
	}
	for _, half := range [][]uuid.UUID{ids[:len(ids)/2], ids[len(ids)/2:]} {
		wanted := make(map[uuid.UUID]bool, len(half))
		for _, id := range half {
			wanted[id] = true
		}
		own := f.of(wanted)
		err := p.write(ctx, Batch{Instances: own.instances, Notifications: own.notifications}, step{cursor: p.at.Cursor})
		if errors.Is(err, ErrRefused) {
			err = p.isolate(ctx, f, half, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commitChanges writes the steps of window rules, a bounded number at once. Where the
// database refuses some, the rules at fault fail alone.
func (p *pass) commitChanges(ctx context.Context, changes []Change) error {
	const most = 500
	for chunk := range slices.Chunk(changes, most) {
		if err := p.writeChanges(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) writeChanges(ctx context.Context, changes []Change) error {
	err := p.write(ctx, Batch{Changes: changes}, step{cursor: p.at.Cursor})
	if !errors.Is(err, ErrRefused) {
		return err
	}
	if len(changes) == 1 {
		p.fail(p.rules.byID[changes[0].Instance.RuleID], err)
		return nil
	}
	middle := len(changes) / 2
	return errors.Join(p.writeChanges(ctx, changes[:middle]), p.writeChanges(ctx, changes[middle:]))
}

// write makes one transaction of a batch, with all that waits for the next commit, and
// takes over what it made final. After an error nothing is final: what is remembered of
// rules is read again, and the next pass does the same work.
func (p *pass) write(ctx context.Context, b Batch, next step) error {
	b.Partition, b.Token, b.Revision, b.RulesRevision = p.number, p.at.Token, p.at.Revision, p.at.RulesRevision
	b.LeaseFor, b.ClockOffset, b.Cursor = p.LeaseFor, p.clockOffset, next.cursor
	if p.memory != nil && next.cursor != nil {
		b.Backfill = p.memory.mark(next.judged, next.server)
	}
	p.extra.into(&b)
	began := p.Clock()
	done, err := p.Store.Commit(ctx, b)
	if err != nil {
		if !errors.Is(err, ErrRefused) {
			p.reload, p.extra = true, extra{}
		}
		if errors.Is(err, ErrStale) {
			p.result.Stale++
		}
		return fmt.Errorf("commit: %w", err)
	}
	p.at.Revision, p.at.Cursor, p.at.Backfill, p.confirmed = done.Revision, next.cursor, b.Backfill, b.RulesRevision
	p.extra.applied(p.rules)
	p.extra = extra{}
	if p.memory != nil {
		p.concluded(next)
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
		p.memory.raised[a.ID] = a.Exchange.StartTimeNS
		if !inserted[a.ID] {
			continue
		}
		t.DetectedNS = append(t.DetectedNS, max(0, now-a.Exchange.EndedNS()))
		if a.Late {
			p.result.Late++
		}
	}
	p.result.Alerts += len(done.Inserted)
	p.result.Failed += len(b.Failed)
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
		p.Logger.WarnContext(ctx, "wake-up not published", slog.Any("error", err))
	}
}

// noteProblems has the next commit record on rules what is wrong with their texts, or
// that nothing is any more.
func (p *pass) noteProblems(f *findings) {
	for _, id := range f.finders() {
		p.settle(p.rules.byID[id], f.problems[id])
	}
}
