package simulate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/source"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/lease"
	"tocsin/internal/retention"
	"tocsin/internal/simulate/model"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// clickhouse, store and outbox are the world as a process sees it: each call waits until the
// simulation lets it happen.
type (
	clickhouse process
	store      process
	outbox     process
)

func result[T any](out *T, f func() (T, error)) func() error {
	return func() (err error) {
		*out, err = f()
		return err
	}
}

// ask makes a query.
func (s *clickhouse) ask(ctx context.Context, kind string, question func(pick func() int) error) error {
	return s.askFor(ctx, 0, kind, "", question)
}

// askFor makes a query that takes a while. The key distinguishes concurrent queries of one kind.
func (s *clickhouse) askFor(ctx context.Context, takes time.Duration, kind, key string, question func(pick func() int) error) error {
	p := (*process)(s)
	return p.w.do(ctx, p, kind, key, takes, func() error {
		if p.w.sourceFails {
			return errUnreadable
		}
		return question(func() int { return p.w.pickServer(p) })
	})
}

func (s *clickhouse) Observe(ctx context.Context, q source.ObserveQuery) (out source.Observation, err error) {
	err = s.ask(ctx, "observe", func(pick func() int) (err error) {
		out, err = s.w.ch.On(pick).Observe(ctx, q)
		return err
	})
	if err == nil && q.ToNS == 0 {
		s.w.truth.observedNS = max(s.w.truth.observedNS, out.NowNS)
		s.reading[s.w.db.PartitionOf(q.Tenants.Names[0])] = out.NowNS - q.SettleNS
	}
	return out, err
}

func (s *clickhouse) RowCounts(ctx context.Context, q source.RowCountQuery) (out source.RowCounts, err error) {
	err = s.ask(ctx, "row counts", func(pick func() int) (err error) {
		out, err = s.w.ch.On(pick).RowCounts(ctx, q)
		return err
	})
	return out, err
}

func (s *clickhouse) Scan(ctx context.Context, q source.Scan) (out source.Page, err error) {
	err = s.ask(ctx, "scan", func(pick func() int) (err error) {
		out, err = s.w.ch.On(pick).Scan(ctx, q)
		return err
	})
	return out, err
}

// CountWindows notes what was asked, by which the checker evaluates the steps that follow.
func (s *clickhouse) CountWindows(ctx context.Context, list []counting.Query) (out counting.Counted, err error) {
	takes, fails := s.w.countTakes(list)
	err = s.askFor(ctx, takes, "count", "", func(pick func() int) (err error) {
		if fails != nil {
			return fails
		}
		for _, q := range list {
			s.asksAbout(q.ToNS, q.Mode == rules.AbsentInWindow)
		}
		out, err = s.w.ch.On(pick).CountWindows(ctx, list)
		return err
	})
	return out, err
}

// asksAbout notes a query about windows with an end.
func (s *clickhouse) asksAbout(toNS int64, absent bool) {
	if one := (asked{toNS, s.w.Now().UnixNano(), absent}); !slices.Contains(s.asked, one) {
		s.asked = append(s.asked, one)
	}
}

func (s *clickhouse) Newest(ctx context.Context, list []counting.NewestQuery) (out [][]rules.Exchange, err error) {
	err = s.ask(ctx, "newest", func(pick func() int) (err error) {
		out, err = s.w.ch.On(pick).Newest(ctx, list)
		return err
	})
	return out, err
}

func (s *clickhouse) Tally(ctx context.Context, q counting.TallyQuery) (out counting.Tallies, err error) {
	takes, fails := s.w.tallyTakes(&q)
	err = s.askFor(ctx, takes, "tally", tallyKey(&q), func(pick func() int) (err error) {
		if fails != nil {
			return fails
		}
		if out, err = s.w.ch.On(pick).Tally(ctx, q); err == nil && q.FromNS[0] < q.ToNS {
			s.asksAbout(q.ToNS, q.NamesServer)
			s.w.stats.Tallies++
		}
		return err
	})
	switch {
	case err != nil && q.FromNS[0] < q.ToNS:
		s.w.stats.FailedTallies++
	case len(out.Inexact) > 0:
		s.w.stats.Inexact++
	}
	return out, err
}

// tallyKey distinguishes the tallies that one pass makes concurrently.
func tallyKey(q *counting.TallyQuery) string {
	return fmt.Sprint(q.Statuses, q.FromNS, q.ToNS, q.LeastNS, q.Attributes, q.NamesServer, q.Tenants.Names)
}

func (s *clickhouse) Arrivals(ctx context.Context, q watch.ArrivalsQuery) (out watch.Arrivals, err error) {
	err = s.ask(ctx, "arrivals", func(pick func() int) (err error) {
		out, err = s.w.ch.On(pick).Arrivals(ctx, q)
		if err == nil {
			s.w.truth.watched((*process)(s), &q)
		}
		return err
	})
	return out, err
}

// transact makes a call to Postgres.
func transact[T any](ctx context.Context, p *process, kind, key string, f func() (T, error)) (out T, err error) {
	err = p.w.do(ctx, p, kind, key, 0, result(&out, f))
	if err != nil {
		var none T
		if !isAnswer(err) {
			return none, err
		}
	}
	return out, err
}

// isAnswer reports whether an error was given by the database itself.
func isAnswer(err error) bool { return err != errDead && err != errAway && err != errLost } //nolint:errorlint // the very values

func (s *store) Hold(ctx context.Context, r evaluator.HoldRequest) (evaluator.Holding, error) {
	return transact(ctx, (*process)(s), "hold", "", func() (evaluator.Holding, error) { return s.w.db.Hold(ctx, r) })
}

func (s *store) Rules(ctx context.Context, partition int, after int64) (ruleset.Changed, error) {
	return transact(ctx, (*process)(s), "rules", "", func() (ruleset.Changed, error) { return s.w.db.Rules(ctx, partition, after) })
}

func (s *store) OpenAlerts(ctx context.Context, ids []uuid.UUID) ([]alerts.OpenAlert, error) {
	return transact(ctx, (*process)(s), "open alerts", "", func() ([]alerts.OpenAlert, error) {
		s.asked = nil
		return s.w.db.OpenAlerts(ctx, ids)
	})
}

func (s *store) Commit(ctx context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	return transact(ctx, (*process)(s), "commit", fmt.Sprint(b.Partition), func() (evaluator.Committed, error) {
		before := map[uuid.UUID]model.Alert{}
		for i := range b.Changes {
			id := b.Changes[i].Instance.ID
			before[id], _ = s.w.db.Alert(id)
		}
		done, err := s.w.db.Commit(ctx, b)
		if err != nil {
			delete(s.reading, b.Partition)
		} else {
			s.w.truth.committed(&b)
			s.w.truth.watchCommitted((*process)(s), &b)
			s.w.truth.stepped((*process)(s), &b, slices.Concat(done.Inserted, done.Changed), before)
		}
		for i := range b.Changes {
			c := &b.Changes[i]
			s.w.note("%s: the step %s of alert %s, for %q of rule %s, which counted %d", s.name, c.Step, short(c.Instance.ID), c.Instance.Count.Group, short(c.Instance.RuleID), c.Instance.Count.Observed)
		}
		if len(done.Inserted) > 0 || err != nil {
			s.w.note("%s: commit of partition %d, revision %d: %d alerts, error %v", s.name, b.Partition, b.Revision, len(done.Inserted), err)
		}
		return done, err
	})
}

func (s *store) Release(ctx context.Context, replica string, partitions []int) error {
	p := (*process)(s)
	return p.w.do(ctx, p, "release", "", 0, func() error { return s.w.db.Release(ctx, replica, partitions) })
}

func (s *store) SourceFailed(ctx context.Context, replica string, partition int, problem string) (int, error) {
	return transact(ctx, (*process)(s), "source failed", "", func() (int, error) { return s.w.db.SourceFailed(ctx, replica, partition, problem) })
}

func (s *store) SourceRecovered(ctx context.Context, partition int) (int, error) {
	return transact(ctx, (*process)(s), "source recovered", "", func() (int, error) { return s.w.db.SourceRecovered(ctx, partition) })
}

func (s *store) Bodies(ctx context.Context, keep, width time.Duration, most int) (bool, error) {
	return transact(ctx, (*process)(s), "delete bodies", "", func() (bool, error) { return s.w.db.Bodies(ctx, keep, width, most) })
}

func (s *store) Responses(ctx context.Context, keep time.Duration, most int) (int, error) {
	return transact(ctx, (*process)(s), "delete responses", "", func() (int, error) { return s.w.db.Responses(ctx, keep, most) })
}

func (s *store) Alerts(ctx context.Context, b retention.Batch) (retention.BatchResult, error) {
	return transact(ctx, (*process)(s), "delete alerts", "", func() (retention.BatchResult, error) {
		result, err := s.w.db.Alerts(ctx, b)
		if result.Deleted > 0 {
			s.w.stats.Deleted += result.Deleted
			s.w.note("%s: retention deletes %d alerts", s.name, result.Deleted)
		}
		return result, err
	})
}

func (s *store) Done(ctx context.Context, keep time.Duration) error {
	p := (*process)(s)
	return p.w.do(ctx, p, "retention done", "", 0, func() error { return s.w.db.Done(ctx, keep) })
}

func (s *store) Beat(ctx context.Context, r lease.Replica) error {
	p := (*process)(s)
	return p.w.do(ctx, p, "beat", "", 0, func() error { return s.w.db.Beat(ctx, r) })
}

func (s *store) ReleaseDead(ctx context.Context, r lease.DeadRequest) (lease.DeadResult, error) {
	return transact(ctx, (*process)(s), "release dead", "", func() (lease.DeadResult, error) {
		result, err := s.w.db.ReleaseDead(ctx, r)
		for _, of := range result.Released {
			s.w.truth.released(of.Replica)
			s.w.note("%s: what %s held is released: %d partitions, %d messages", s.name, of.Replica, of.Partitions, of.Notifications)
		}
		return result, err
	})
}

func (s *store) Leave(ctx context.Context, id string) (lease.Released, error) {
	return transact(ctx, (*process)(s), "leave", "", func() (lease.Released, error) { return s.w.db.Leave(ctx, id) })
}

// Claim claims, and checks after the commit: much may happen in between.
func (o *outbox) Claim(ctx context.Context, r dispatch.ClaimRequest) (dispatch.Claimed, error) {
	claimed, err := transact(ctx, (*process)(o), "claim", "", func() (dispatch.Claimed, error) {
		claimed, err := o.w.db.Claim(ctx, r)
		for i := range claimed.Deliveries {
			d := &claimed.Deliveries[i]
			o.w.receiver.last = o.w.Now()
			o.w.checkNeeded(d)
			o.w.note("%s: claims %s, attempt %d, token %d", o.name, short(d.NotificationID), d.Attempt, d.Token)
		}
		return claimed, err
	})
	if err != nil || len(claimed.Deliveries) == 0 {
		return claimed, err
	}
	claimed.Unwanted, claimed.Unchecked = transact(ctx, (*process)(o), "check", "", func() ([]uuid.UUID, error) {
		for i := range claimed.Deliveries {
			o.w.truth.checked[claimed.Deliveries[i].Token] = o.w.Now()
		}
		return o.w.db.Unwanted(claimed.Deliveries), nil
	})
	return claimed, nil
}

func (o *outbox) Renew(ctx context.Context, held []dispatch.Held, lease time.Duration) (map[dispatch.Held]time.Duration, error) {
	slices.SortFunc(held, func(a, b dispatch.Held) int {
		return cmp.Or(slices.Compare(a.NotificationID[:], b.NotificationID[:]), cmp.Compare(a.Token, b.Token))
	})
	return transact(ctx, (*process)(o), "renew", fmt.Sprint(len(held), held[0].NotificationID, held[0].Token), func() (map[dispatch.Held]time.Duration, error) {
		return o.w.db.Renew(ctx, held, lease)
	})
}

// Settle stores outcomes. Their order says nothing: that of a batch is left to chance.
func (o *outbox) Settle(ctx context.Context, list []dispatch.Settlement) ([]dispatch.Settled, error) {
	order := make([]int, len(list))
	keys := make([]string, len(list))
	for i := range list {
		order[i] = i
		keys[i] = fmt.Sprintf("%s %d", short(list[i].NotificationID), list[i].Token)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	inOrder := make([]dispatch.Settlement, len(list))
	for i, at := range order {
		inOrder[i] = list[at]
	}
	slices.Sort(keys)
	settled, err := transact(ctx, (*process)(o), "settle", strings.Join(keys, ", "), func() ([]dispatch.Settled, error) {
		before := o.w.claimsOf(inOrder)
		settled, err := o.w.db.Settle(ctx, inOrder)
		o.w.checkFenced(inOrder, before)
		for i := range settled {
			s := &inOrder[i]
			o.w.note("%s: settles %s, attempt %d: %v, %v, fenced %v", o.name, short(s.NotificationID), s.Attempt, s.Outcome.Verdict, s.Decision.Status, settled[i].Fenced)
		}
		return settled, err
	})
	if err != nil {
		return nil, err
	}
	back := make([]dispatch.Settled, len(list))
	for i, at := range order {
		back[at] = settled[i]
	}
	return back, nil
}
