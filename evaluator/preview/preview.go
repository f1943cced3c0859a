// Package preview computes what a rule would have raised in a range of the past, if it had been
// armed at its beginning. It writes nothing.
//
// It reads with the scans of the evaluator, narrowed to what the rule matches. Exchanges are evaluated
// by [rules.Judge], and alerts get the evaluator's texts. Window rules take the steps that they
// would have taken (windows.go).
//
// The range is read from its end to its beginning, in slices, until all of it or the maximum is
// read. If not all is read, the result is a lower bound for the whole range. For the part that was
// covered it is complete, except for exchanges that began before that part. An exchange that ran
// for longer than the look-back of a PER_EXCHANGE rule is left out, because it would become visible
// behind everything that the rule reads.
package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/source"
	"tocsin/evaluator/window"
	"tocsin/rules"
)

// Source is what previews read.
type Source interface {
	Observe(ctx context.Context, q source.ObserveQuery) (source.Observation, error)
	Scan(ctx context.Context, q source.Scan) (source.Page, error)
}

// Texts renders the texts of all alerts.
type Texts interface {
	evaluator.Texts
	window.Texts
}

// Previewer makes previews. Source, Texts and Clock are required. It is safe for
// concurrent use.
type Previewer struct {
	Source Source
	Texts  Texts
	// Settle is the settle time of the evaluator.
	Settle time.Duration
	// Clock measures the budget.
	Clock func() time.Time
	// Budget bounds the time for reading, 8 s by default.
	Budget time.Duration
	// MaxRows bounds how many exchanges a preview reads, 200,000 by default.
	MaxRows int
	// PageSize is how many exchanges are read at once, 5,000 by default.
	PageSize int
}

// Request asks for the preview of a definition.
type Request struct {
	TenantID   string
	Definition rules.Definition
	// RuleID and Version identify the rule in the alerts that are shown.
	RuleID  uuid.UUID
	Version int64
	// Router is the tenant's routing policy if the rule uses it; otherwise nil.
	Router *routing.Router
	// Last is the length of the range, which ends now.
	Last time.Duration
}

// Result is what a rule would have raised.
type Result struct {
	// FromNS and ToNS are the range. CoveredFromNS is the beginning of the part that was read:
	// FromNS, unless Truncated is set.
	FromNS, ToNS, CoveredFromNS int64
	Truncated                   bool
	// Scanned is the number of exchanges read.
	Scanned int
	// Alerts is the number of alerts that would have fired.
	Alerts int64
	// Buckets are the numbers of alerts over time, in buckets of WidthNS from FromNS on.
	WidthNS int64
	Buckets []int64
	// Shares say where the alerts come from, the largest first, at most 20.
	Shares []Share
	// Newest are the newest alerts, newest first, at most 20.
	Newest []alerts.Instance
	// Notifications is how many messages each webhook of the rule would have got, and BusiestMinute
	// the largest number within one minute.
	Notifications, BusiestMinute int64
	// Routed is the same for each webhook that the routing policy leads to, if the rule uses it.
	Routed map[uuid.UUID]Load
	// Problem says why a text is a fallback; empty if none is.
	Problem string
}

// Load is how many messages a webhook would have got, and the largest number within one minute.
type Load struct{ Notifications, BusiestMinute int64 }

// Share is a part of the alerts.
type Share struct {
	Application, Route string
	Alerts             int64
}

const (
	bucketCount = 48
	sliceCount  = 24
	newestMost  = 20
	sharesMost  = 20

	secondNS = int64(time.Second)
	minuteNS = int64(time.Minute)
)

// Preview makes a preview. A condition that is invalid is an error. If ctx is cancelled, its error
// is returned.
func (p *Previewer) Preview(ctx context.Context, r Request) (Result, error) {
	deadline := p.Clock().Add(p.budget())
	to, err := p.end(ctx, &r)
	if err != nil {
		return Result{}, err
	}
	run, err := p.begin(&r, to, deadline)
	if err != nil {
		return Result{}, err
	}
	if err := run.read(ctx); err != nil {
		return Result{}, err
	}
	return run.result(), nil
}

func (p *Previewer) budget() time.Duration { return cmp.Or(p.Budget, 8*time.Second) }

// end returns the end of a range that ends now.
func (p *Previewer) end(ctx context.Context, r *Request) (int64, error) {
	// For an empty range only the clock is returned.
	seen, err := p.Source.Observe(ctx, source.ObserveQuery{
		Tenants: source.Tenants{Names: []string{r.TenantID}}, Statuses: r.Definition.Filter.StatusesOrDefault(), FromNS: 1, ToNS: 1, WidthNS: secondNS,
	})
	if err != nil {
		return 0, fmt.Errorf("preview: %w", err)
	}
	return seen.NowNS - p.Settle.Nanoseconds(), nil
}

// begin prepares a preview of a range that ends at an instant.
func (p *Previewer) begin(r *Request, to int64, deadline time.Time) (*run, error) {
	from := to - r.Last.Nanoseconds()
	run := &run{
		Previewer: p, deadline: deadline, shares: map[Share]int64{}, minutes: map[int64]int64{},
		router: r.Router, routed: map[routedMinute]int64{},
		rule: rules.Rule{Definition: r.Definition, ID: r.RuleID, Version: r.Version, TenantID: r.TenantID, ArmedSinceNS: from},
		out:  Result{FromNS: from, ToNS: to, CoveredFromNS: from, Buckets: make([]int64, bucketCount), WidthNS: max(1, (to-from+bucketCount-1)/bucketCount)},
	}
	var err error
	if run.judge, err = rules.NewJudge(&run.rule); err != nil {
		return nil, fmt.Errorf("preview: %w", err)
	}
	run.reads = run.judge
	filter := r.Definition.Filter
	if run.rule.FireMode == rules.RatioInWindow {
		run.reads, filter = run.judge.Place(), rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}}
	}
	run.scan = source.Scan{
		Tenants: source.Tenants{Names: []string{r.TenantID}}, Statuses: filter.StatusesOrDefault(), EndedSinceNS: from,
		Limit: cmp.Or(p.PageSize, 5000), Narrow: &source.Narrowing{Scope: r.Definition.Scope, Filter: filter},
	}
	return run, nil
}

// read reads the range.
func (p *run) read(ctx context.Context) error {
	if p.rule.FireMode == rules.PerExchange {
		return p.perExchange(ctx)
	}
	return p.windows(ctx)
}

// run is one preview under way.
type run struct {
	*Previewer
	rule  rules.Rule
	judge *rules.Judge
	// reads decides which exchanges are read: a ratio compares with more exchanges than it matches.
	reads    *rules.Judge
	deadline time.Time
	// scan holds the common parts of all scans, without the range.
	scan    source.Scan
	out     Result
	shares  map[Share]int64
	minutes map[int64]int64
	router  *routing.Router
	routed  map[routedMinute]int64
	// replay says that the range is a range of start times, in which every match counts, whenever it
	// ended.
	replay bool
	// samples holds every alert if comparing is set.
	comparing bool
	samples   []sample
	// edges are the instants at which the hours of a calendar begin, and cease, to contain a whole
	// window.
	edges []int64
}

// routedMinute is a minute in which a webhook would have got messages.
type routedMinute struct {
	webhook uuid.UUID
	minute  int64
}

// perExchange evaluates the range, and as far before it as the rule looks back.
func (p *run) perExchange(ctx context.Context) error {
	reach := int64(p.rule.LookBackSeconds) * secondNS
	seen := map[string]bool{}
	return p.slices(ctx, p.out.FromNS-reach, func(e *rules.Exchange) {
		ended := e.EndedNS()
		visible := ended-e.StartTimeNS <= reach || reach == 0 && e.StartTimeNS >= p.out.FromNS
		if !visible || seen[e.Key()] {
			return
		}
		seen[e.Key()] = true
		if p.comparing {
			p.samples = append(p.samples, sample{newest: counted{startNS: e.StartTimeNS, endedNS: ended, key: e.Key()}, atNS: ended})
			return
		}
		a := p.alert(e, ended)
		a.ID = alerts.ID(p.rule.ID, e)
		var problem error
		a.Title, a.Message, problem = p.Texts.Texts(&p.rule, e)
		p.note(problem)
		p.raised(a)
		p.notified(ended, func() alerts.Instance { return a })
	})
}

// slices reads what the rule looks at from a start time on, newest slice first, and passes the
// exchanges of the range to wanted.
func (p *run) slices(ctx context.Context, fromNS int64, wanted func(e *rules.Exchange)) error {
	width := max(1, (p.out.ToNS-fromNS+sliceCount-1)/sliceCount)
	for end := p.out.ToNS; end > fromNS; end -= width {
		whole, err := p.slice(ctx, max(fromNS, end-width), end, wanted)
		if err != nil {
			return fmt.Errorf("preview: %w", err)
		}
		if !whole {
			p.out.Truncated, p.out.CoveredFromNS = true, max(p.out.FromNS, min(end, p.out.ToNS))
			return nil
		}
	}
	return nil
}

// slice reads one slice and reports whether it was read completely.
func (p *run) slice(ctx context.Context, fromNS, toNS int64, wanted func(e *rules.Exchange)) (whole bool, err error) {
	scan := p.scan
	// A scan begins strictly after its position, so one nanosecond before covers the whole slice.
	scan.After, scan.BeforeNS = cursor.Position{StartTimeNS: fromNS - 1}, toNS
	for {
		left := p.deadline.Sub(p.Clock())
		if left <= 0 || p.out.Scanned >= cmp.Or(p.MaxRows, 200_000) {
			return false, nil
		}
		page, spent, err := p.page(ctx, scan, left)
		switch {
		case errors.Is(err, source.ErrTooMuch) && scan.Limit > 1:
			scan.Limit /= 2
			continue
		case spent:
			return false, nil
		case err != nil:
			return false, err
		}
		p.out.Scanned += len(page.Exchanges)
		for i := range page.Exchanges {
			if e := &page.Exchanges[i]; e.StartTimeNS >= fromNS && p.counts(e) {
				wanted(e)
			}
		}
		if !page.More || len(page.Exchanges) == 0 {
			return true, nil
		}
		scan.After = page.Exchanges[len(page.Exchanges)-1].Position()
	}
}

// counts reports whether an exchange that was read is one of the range.
func (p *run) counts(e *rules.Exchange) bool {
	if p.replay {
		return p.reads.Matches(e)
	}
	return p.reads.Wants(e) && e.EndedNS() < p.out.ToNS
}

// page makes a scan within the rest of the budget. spent says that the rest was too little.
func (p *run) page(ctx context.Context, scan source.Scan, left time.Duration) (page source.Page, spent bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	page, err = p.Source.Scan(bounded, scan)
	if err != nil {
		return page, bounded.Err() != nil && ctx.Err() == nil, errors.Join(ctx.Err(), err)
	}
	return page, false, nil
}

// alert returns an alert that fired at an instant, without id and texts.
func (p *run) alert(e *rules.Exchange, atNS int64) alerts.Instance {
	return alerts.Instance{
		TenantID: p.rule.TenantID, RuleID: p.rule.ID, RuleVersion: p.rule.Version, RuleName: p.rule.Name, About: p.rule.About(),
		Severity: p.rule.Severity, State: alerts.Firing, FiredAt: time.Unix(0, atNS).UTC(), Exchange: e.Clean(),
	}
}

// note keeps the first problem.
func (p *run) note(problem error) {
	if problem != nil && p.out.Problem == "" {
		p.out.Problem = problem.Error()
	}
}

// raised counts an alert, and keeps it if it is among the newest.
func (p *run) raised(a alerts.Instance) {
	p.out.Alerts++
	if bucket := (a.FiredAt.UnixNano() - p.out.FromNS) / p.out.WidthNS; bucket >= 0 && bucket < bucketCount {
		p.out.Buckets[bucket]++
	}
	p.shares[Share{Application: a.Exchange.Application, Route: a.Exchange.Route}]++
	if len(p.out.Newest) == newestMost && !a.FiredAt.After(p.out.Newest[newestMost-1].FiredAt) {
		return
	}
	place, _ := slices.BinarySearchFunc(p.out.Newest, a, func(x, y alerts.Instance) int { return y.FiredAt.Compare(x.FiredAt) })
	p.out.Newest = slices.Insert(p.out.Newest, place, a)
	p.out.Newest = p.out.Newest[:min(len(p.out.Newest), newestMost)]
}

// notified counts a message about an alert for each webhook.
func (p *run) notified(atNS int64, about func() alerts.Instance) {
	p.out.Notifications++
	p.minutes[atNS/minuteNS]++
	if p.router == nil {
		return
	}
	a := about()
	for _, webhook := range routing.Recipients(&p.rule, p.router, &a) {
		p.routed[routedMinute{webhook, atNS / minuteNS}]++
	}
}

// result returns the totals.
func (p *run) result() Result {
	for share, n := range p.shares {
		share.Alerts = n
		p.out.Shares = append(p.out.Shares, share)
	}
	slices.SortFunc(p.out.Shares, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Alerts, a.Alerts), strings.Compare(a.Application, b.Application), strings.Compare(a.Route, b.Route))
	})
	p.out.Shares = p.out.Shares[:min(len(p.out.Shares), sharesMost)]
	for _, n := range p.minutes {
		p.out.BusiestMinute = max(p.out.BusiestMinute, n)
	}
	if p.router != nil {
		p.out.Routed = map[uuid.UUID]Load{}
	}
	for at, n := range p.routed {
		load := p.out.Routed[at.webhook]
		p.out.Routed[at.webhook] = Load{load.Notifications + n, max(load.BusiestMinute, n)}
	}
	if len(p.rule.WebhookIDs) == 0 {
		p.out.Notifications, p.out.BusiestMinute = 0, 0
	}
	return p.out
}
