package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/resolution"
	"tocsin/internal/simulate/model"
	"tocsin/rules"
)

// resolveEvery is how often a process looks for alerts that age or evidence resolves.
const resolveEvery = 30 * time.Second

// resolve begins a pass of the resolver.
func (p *process) resolve() {
	p.resolving.Store(true)
	p.nextResolve = p.w.Now().Add(resolveEvery)
	go func() {
		_, _ = p.resolver.Tick(p.ctx)
		p.resolving.Store(false)
	}()
}

// resolver is what a process resolves alerts by: the source and the store as it sees them.
type resolver process

func (r *resolver) store() model.Resolution { return model.Resolution{DB: r.w.db} }

func (r *resolver) Now(ctx context.Context) (now int64, err error) {
	err = (*clickhouse)(r).ask(ctx, "source clock", func(pick func() int) (err error) {
		now, err = r.w.ch.On(pick).Now(ctx)
		return err
	})
	return now, err
}

func (r *resolver) LastCompleted(ctx context.Context, q resolution.Query) (found []resolution.Completed, err error) {
	err = (*clickhouse)(r).ask(ctx, "evidence", func(pick func() int) (err error) {
		found, err = r.w.ch.On(pick).LastCompleted(ctx, q)
		return err
	})
	return found, err
}

func (r *resolver) Take(ctx context.Context, every time.Duration) (*resolution.Rule, error) {
	return transact(ctx, (*process)(r), "take rule", "", func() (*resolution.Rule, error) { return r.store().Take(ctx, every) })
}

func (r *resolver) Open(ctx context.Context, rule *resolution.Rule, after *resolution.Open, most int) ([]resolution.Open, error) {
	return transact(ctx, (*process)(r), "list open", short(rule.ID), func() ([]resolution.Open, error) { return r.store().Open(ctx, rule, after, most) })
}

func (r *resolver) ResolveAged(ctx context.Context, rule *resolution.Rule, most int) (int, error) {
	return r.commit(ctx, "resolve aged", rule, func(s model.Resolution) (int, error) { return s.ResolveAged(ctx, rule, most) })
}

func (r *resolver) ResolveProven(ctx context.Context, rule *resolution.Rule, proofs []resolution.Proof) (int, error) {
	return r.commit(ctx, "resolve proven", rule, func(s model.Resolution) (int, error) { return s.ResolveProven(ctx, rule, proofs) })
}

func (r *resolver) commit(ctx context.Context, kind string, rule *resolution.Rule, f func(s model.Resolution) (int, error)) (int, error) {
	p := (*process)(r)
	var due map[uuid.UUID]int
	s := model.Resolution{DB: r.w.db, Notified: func(list map[uuid.UUID]int) { due = list }}
	n, err := transact(ctx, p, kind, short(rule.ID), func() (int, error) {
		n, err := f(s)
		if n > 0 {
			r.w.note("%s: %s of rule %s: %d alerts", r.name, kind, short(rule.ID), n)
		}
		return n, err
	})
	p.wake(due)
	return n, err
}

func (r *resolver) MarkSearched(ctx context.Context, rule *resolution.Rule, s resolution.Searched) error {
	p := (*process)(r)
	return p.w.do(ctx, p, "mark searched", short(rule.ID), 0, func() error { return r.store().MarkSearched(ctx, rule, s) })
}

// drawResolution has a rule about exchanges resolve its alerts by age, by evidence, by both or not at all.
func (w *world) drawResolution(d *rules.Definition) {
	if d.FireMode != rules.PerExchange {
		return
	}
	var by rules.Resolution
	if w.rand.IntN(2) == 0 {
		by.AfterSeconds = []int{60, 600, 7200}[w.rand.IntN(3)]
	}
	if evidence := w.rand.IntN(3); evidence > 0 && !slices.Contains(d.Filter.Statuses, rules.Completed) {
		// The correlation id of an exchange is its customer, too.
		if by.Evidence = rules.EvidenceCorrelation; evidence == 1 {
			by.Evidence, by.Attribute = rules.EvidenceAttribute, "customer"
		}
	}
	d.Resolution, d.NotifyOnResolve = &by, w.rand.IntN(3) > 0
	if by == (rules.Resolution{}) {
		d.Resolution = nil
	}
}

// saysResolution is a resolution in words, for the history.
func saysResolution(r *rules.Resolution) string {
	if r == nil {
		return "none"
	}
	return fmt.Sprintf("after %d s, by %q %q", r.AfterSeconds, r.Evidence, r.Attribute)
}

// mend writes completed exchanges of the same place and customer as failed ones: some began after these had ended,
// some beside them. Most are about open alerts that evidence resolves.
func (w *world) mend() {
	const quantum = int64(250 * time.Millisecond)
	now := w.Now().Add(w.makerSkew).UnixNano()
	failures := slices.Clone(w.truth.exchanges[max(0, len(w.truth.exchanges)-5):])
	for _, id := range w.db.AlertIDs() {
		a, _ := w.db.Alert(id)
		r, e := w.truth.rules[a.RuleID], w.truth.byKey[exchangeKey{a.TenantID, a.Key}]
		if a.State != alerts.Resolved && e != nil && r != nil && r.present().def.Resolution != nil && r.present().def.Resolution.Evidence != "" {
			failures = append(failures, e)
		}
	}
	for n := range min(len(failures), 1+w.rand.IntN(6)) {
		failed := failures[len(failures)-1-w.rand.IntN(min(len(failures), 20))]
		start := max(failed.endNS+[]int64{quantum, quantum, 0, -quantum}[w.rand.IntN(4)], now-w.rand.Int64N(400)*quantum)
		w.write(&exchange{
			tenant: failed.tenant, app: failed.app, customer: failed.customer, startNS: start, endNS: max(start, now), status: rules.Completed,
		}, w.rand.Int64N(int64(3+60*(n%2)))*int64(time.Second))
	}
}
