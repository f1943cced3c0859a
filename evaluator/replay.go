package evaluator

import (
	"context"
	"errors"
	"log/slog"

	"tocsin/cursor"
	"tocsin/evaluator/retry"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/source"
	"tocsin/rules"
)

// A replay evaluates a range of the past again by one rule, because a person asked for it. It
// is read like everything else, a page after the other, and each commit stores how far it
// has come. What differs:
//
//   - It evaluates by the present condition alone, whenever the rule was armed and however far
//     it looks back.
//
//   - What the rule may still raise by itself is raised as it would be then, with its
//     messages. Otherwise it would depend on who comes first whether there are any.
//
//   - It has no rule fail. What the database refuses ends the replay. Where the source
//     cannot be read, the replay is tried again later.
//
// Replays of several rules run round-robin, in the time that nothing else needs, and a page in
// each pass at the least. A page has an interval. If the source needs longer, however little is
// read, the page has as long as any query about the past, and all replays of the partition then
// pause: what is new waits for one such page in five seconds at most.

// replay reads what people asked to be evaluated again, as far as there is time.
func (p *pass) replay(ctx context.Context) error {
	for first := true; !p.replays.Waits(p.Clock()) && (first || !p.cut && !p.over()); first = false {
		r := p.rules.NextReplay(p.replayed, p.watermarkNS, p.Clock())
		if r == nil || p.ending() {
			return nil
		}
		p.replayed = r.ID
		if err := p.replayPage(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// replayPage reads and evaluates one page of a replay, and commits how far that takes it.
func (p *pass) replayPage(ctx context.Context, r *ruleset.Rule) error {
	at := r.Replay
	end := cursor.Position{StartTimeNS: min(at.ToNS, at.EndNS(at.At), p.watermarkNS)}
	n := ruleset.ExtentOf([]*ruleset.Rule{r})
	q := reading{Scan: n.Scan(p.at.Index, p.at.Of), end: end, server: p.server, within: p.Interval, spans: []*retry.Span{&at.Span}}
	q.Tenants.Of, q.Narrow = 0, &source.Narrowing{Scope: r.Scope, Filter: r.Filter}
	q.After, q.BeforeNS, q.Limit = at.At, end.StartTimeNS, p.pageSize*bulk
	began, failed := p.Clock(), at.Failed()
	if failed {
		q.within = max(q.within, p.queryTimeout())
	}
	page, reached, matched, err := p.page(ctx, q)
	slow := p.Clock().Sub(began) >= p.Interval
	if slow {
		p.replays.Pauses(p.Clock())
	}
	if err != nil {
		p.spent = p.spent || p.cut
		p.Logger.WarnContext(ctx, "replay waits; it is retried: narrow it, or run tocsin doctor, if this repeats", slog.Any("rule", r.ID), slog.Any("error", err))
		return p.replayWaits(ctx, r, err)
	}
	if slow && failed {
		at.Backoff.Fails(p.Clock()) // the next page needs as long
		if reached == end && len(page) < q.Limit/2 {
			at.Widen()
		}
	}
	if !matched {
		// Another server answers than the pass has observed: it may lag.
		at.Pauses(p.Clock())
		return nil
	}
	usual, again, found, err := p.judgeAgain(r, page)
	if err != nil {
		return p.replayFails(ctx, r, err)
	}
	if len(usual.instances) > 0 {
		if err := p.commit(ctx, usual, p.stay()); err != nil || r.Failing {
			return err
		}
	}
	if at.Messages == ruleset.ReplayNone {
		again.notifications = nil
	}
	next := p.stay()
	next.replay = &ruleset.ReplayStep{Replay: at.Replay, Matched: found}
	if reached.After(at.At) {
		next.replay.At = reached
	}
	err = p.write(ctx, again, next)
	if errors.Is(err, ErrRefused) && len(again.instances) > 0 {
		return p.replayFails(ctx, r, err)
	}
	return err
}

// replayWaits records, once, why a replay comes no further for now. It is tried again.
func (p *pass) replayWaits(ctx context.Context, r *ruleset.Rule, why error) error {
	if ruleset.ProblemOf(why.Error()) == r.Replay.Problem {
		return nil
	}
	return p.replayStays(ctx, r, why, false)
}

// replayFails ends a replay where it failed, and records why.
func (p *pass) replayFails(ctx context.Context, r *ruleset.Rule, why error) error {
	return p.replayStays(ctx, r, why, true)
}

// replayStays records why a replay comes no further. If it failed, it ends there; otherwise it is tried again.
func (p *pass) replayStays(ctx context.Context, r *ruleset.Rule, why error, failed bool) error {
	next := p.stay()
	next.replay = &ruleset.ReplayStep{Replay: r.Replay.Replay, Problem: ruleset.ProblemOf(why.Error()), Failed: failed}
	return p.write(ctx, findings{}, next)
}

// judgeAgain returns what a page raises by a rule, apart from what the rule may raise by
// itself all the same, and how much of the page matches.
func (p *pass) judgeAgain(r *ruleset.Rule, page []rules.Exchange) (usual, again findings, found int, err error) {
	usual, again = newFindings(), newFindings()
	for i := range page {
		e := &page[i]
		if e.TenantID != r.TenantID || i > 0 && e.Key() == page[i-1].Key() {
			continue
		}
		err := p.guarded(e, func() {
			switch {
			case !r.Matches(e):
				return
			case r.Wants(e) && (r.Reaches(e.StartTimeNS, p.backlog.BaseNS()) || r.Backfill != nil && e.Position().After(r.Backfill.At)):
				p.raise(&usual, r, e, e.StartTimeNS < p.backlog.BaseNS())
			default:
				p.raise(&again, r, e, false)
			}
			found++
		})
		if err != nil {
			return usual, again, found, err
		}
	}
	return usual, again, found, nil
}
