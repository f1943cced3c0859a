package evaluator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/rules"
)

// A preview tells what a rule would have raised in a stretch of the past, had it
// been armed at its beginning. It writes nothing. It reads by the scan of the
// ticks, narrowed to what the rule matches; exchanges are judged, and alerts
// made, by the code of the ticks (preview of rules that count: preview_count.go).
//
// It reads the stretch from its end to its beginning, in slices, until it has
// read it all or as much as it may: what it tells is then complete for the part
// that was covered, and a lower bound for the whole. An exchange that ran for longer than the rule looks back is left
// out, as it would become visible behind everything that the rule reads.

// Narrowing is a condition that a scan may use to leave out what does not match.
type Narrowing struct {
	Scope  rules.Scope
	Filter rules.Filter
}

// PreviewSource is what previews read.
type PreviewSource interface {
	Now(ctx context.Context) (int64, error)
	Scan(ctx context.Context, scan Scan) ([]rules.Exchange, error)
	Newest(ctx context.Context, q WindowQuery, groups []GroupCount) ([]rules.Exchange, error)
}

// Previewer makes previews. Source and Texts are required. It is safe for
// concurrent use.
type Previewer struct {
	Source PreviewSource
	Texts  Texts
	// Settle is that of the evaluator.
	Settle time.Duration
	// Clock measures the budget.
	Clock func() time.Time
	// Budget bounds the time that a preview reads, 8 s by default.
	Budget time.Duration
	// MaxRows bounds the exchanges that a preview reads, 200,000 by default.
	MaxRows int
	// PageSize is the most exchanges read at once, 5,000 by default.
	PageSize int
}

// PreviewRequest asks for the preview of a definition.
type PreviewRequest struct {
	TenantID   string
	Definition rules.Definition
	// RuleID and Version name the rule in the alerts that are shown.
	RuleID  uuid.UUID
	Version int64
	// Last is the length of the stretch, which ends now.
	Last time.Duration
}

// Preview is what a rule would have raised.
type Preview struct {
	// FromNS and ToNS are the stretch, CoveredFromNS where the part begins that
	// was read: FromNS, unless Truncated.
	FromNS, ToNS, CoveredFromNS int64
	Truncated                   bool
	// Scanned is the number of exchanges read.
	Scanned int
	// Alerts is the number of alerts that would have fired.
	Alerts int64
	// Buckets hold the alerts over time, each WidthNS long, from FromNS on.
	WidthNS int64
	Buckets []int64
	// Shares tell where the alerts come from, the largest first, at most 20.
	Shares []PreviewShare
	// Newest are the newest alerts, the newest first, at most 20.
	Newest []alerts.Instance
	// Notifications is how many messages each bound webhook would have got, and
	// BusiestMinute the most of them within one minute.
	Notifications, BusiestMinute int64
	// Problem tells why a text is a fallback; empty when none is.
	Problem string
}

// PreviewShare is a part of the alerts.
type PreviewShare struct {
	Application, Route string
	Alerts             int64
}

const (
	previewBuckets = 48
	previewSlices  = 24
	previewNewest  = 20
	previewShares  = 20
)

// Preview makes a preview. A definition whose condition cannot be used is an
// error; one that is cancelled returns the context's.
func (p *Previewer) Preview(ctx context.Context, r PreviewRequest) (Preview, error) {
	now, err := p.Source.Now(ctx)
	if err != nil {
		return Preview{}, err
	}
	to := now - p.Settle.Nanoseconds()
	run := &preview{
		Previewer: p, deadline: p.Clock().Add(orDefault(p.Budget, 8*time.Second)), seen: map[string]bool{},
		shares: map[[2]string]int64{}, minutes: map[int64]int64{},
		out: Preview{FromNS: to - r.Last.Nanoseconds(), ToNS: to, CoveredFromNS: to - r.Last.Nanoseconds(), Buckets: make([]int64, previewBuckets)},
	}
	run.out.WidthNS = max(1, (r.Last.Nanoseconds()+previewBuckets-1)/previewBuckets)
	run.rule = rules.Rule{Definition: r.Definition, ID: r.RuleID, Version: r.Version, TenantID: r.TenantID, ArmedSinceNS: run.out.FromNS}
	if run.judge, err = rules.NewJudge(&run.rule); err != nil {
		return Preview{}, err
	}
	switch r.Definition.FireMode {
	case rules.PerExchange:
		err = run.perExchange(ctx)
	case rules.CountInWindow:
		err = run.counting(ctx)
	}
	if err != nil {
		return Preview{}, err
	}
	return run.result(), nil
}

// preview is one at work.
type preview struct {
	*Previewer
	rule     rules.Rule
	judge    *rules.Judge
	deadline time.Time
	out      Preview
	// seen holds the keys under which an alert stands already.
	seen    map[string]bool
	shares  map[[2]string]int64
	minutes map[int64]int64
}

// perExchange judges the stretch, and as far before it as the rule looks back.
func (p *preview) perExchange(ctx context.Context) error {
	reach := int64(p.rule.LookBackSeconds) * secondNS
	return p.slices(ctx, p.out.FromNS-reach, func(g *group, page []rules.Exchange, end cursor.Position) {
		found := g.forward(page, end, raiser{newID: uuid.New, texts: p.Texts}, &known{})
		for i := range found.instances {
			e := &found.instances[i].Exchange
			ran := e.EndedNS() - e.StartTimeNS
			if ended := e.EndedNS(); ended < p.out.ToNS && (ran <= reach || e.StartTimeNS >= p.out.FromNS && reach == 0) && !p.seen[e.ExecutionID] {
				p.seen[e.ExecutionID] = true
				p.raised(found.instances[i], ended)
				p.notified(ended)
			}
		}
		p.out.Problem = orDefault(p.out.Problem, g.judges[0].problem)
	})
}

// slices reads what the rule can match from a start time on, the newest slice
// first, and has each page judged by a group of the rule alone.
func (p *preview) slices(ctx context.Context, fromNS int64, page func(g *group, page []rules.Exchange, end cursor.Position)) error {
	width := max(1, (p.out.ToNS-fromNS+previewSlices-1)/previewSlices)
	for end := p.out.ToNS; end > fromNS; end -= width {
		begin := max(fromNS, end-width)
		// A scan begins strictly after its position; one nanosecond early is all of the slice.
		at := cursor.Position{StartTimeNS: begin - 1}
		g := &group{tenantID: p.rule.TenantID, judges: []*judge{{claim: Claim{Rule: p.rule}, Judge: p.judge, stand: &stand{at: at, start: at}}}, index: rules.NewIndex([]*rules.Judge{p.judge})}
		whole, err := p.slice(ctx, g, end, page)
		if err != nil {
			return err
		}
		if !whole {
			p.out.Truncated, p.out.CoveredFromNS = true, max(p.out.FromNS, min(end, p.out.ToNS))
			return nil
		}
	}
	return nil
}

// slice reads one slice and reports whether it was read to its end.
func (p *preview) slice(ctx context.Context, g *group, endNS int64, judge func(g *group, page []rules.Exchange, end cursor.Position)) (whole bool, err error) {
	size := orDefault(p.PageSize, 5000)
	scan := Scan{
		TenantID: g.tenantID, BeforeNS: endNS, Statuses: g.statuses(), Limit: size,
		Narrow: &Narrowing{Scope: p.rule.Scope, Filter: p.rule.Filter},
	}
	for at := g.start(); ; {
		left := p.deadline.Sub(p.Clock())
		if left <= 0 || p.out.Scanned >= orDefault(p.MaxRows, 200_000) {
			return false, nil
		}
		scan.After = at
		bounded, cancel := context.WithTimeout(ctx, left)
		page, err := p.Source.Scan(bounded, scan)
		spent := bounded.Err() != nil && ctx.Err() == nil
		cancel()
		if errors.Is(err, ErrTooMuch) && size > 1 {
			size /= 2
			scan.Limit = size
			continue
		}
		if err != nil {
			if spent {
				return false, nil
			}
			return false, errors.Join(ctx.Err(), err)
		}
		p.out.Scanned += len(page)
		at = cursor.Position{StartTimeNS: endNS}
		if len(page) == size {
			at = page[len(page)-1].Position()
		}
		judge(g, page, at)
		if len(page) < size {
			return true, nil
		}
	}
}

// raised counts an alert that fired at an instant, and keeps it if it is among
// the newest.
func (p *preview) raised(a alerts.Instance, atNS int64) {
	a.FiredAt = time.Unix(0, atNS).UTC()
	p.out.Alerts++
	if bucket := (atNS - p.out.FromNS) / p.out.WidthNS; bucket >= 0 && bucket < previewBuckets {
		p.out.Buckets[bucket]++
	}
	p.shares[[2]string{a.Exchange.Application, a.Exchange.Route}]++
	if len(p.out.Newest) == previewNewest && !a.FiredAt.After(p.out.Newest[previewNewest-1].FiredAt) {
		return
	}
	place, _ := slices.BinarySearchFunc(p.out.Newest, a, func(x, y alerts.Instance) int { return y.FiredAt.Compare(x.FiredAt) })
	p.out.Newest = slices.Insert(p.out.Newest, place, a)
	p.out.Newest = p.out.Newest[:min(len(p.out.Newest), previewNewest)]
}

// notified counts a message to each webhook.
func (p *preview) notified(atNS int64) {
	p.out.Notifications++
	p.minutes[floor(atNS, minuteNS)]++
}

// result sums up.
func (p *preview) result() Preview {
	for key, n := range p.shares {
		p.out.Shares = append(p.out.Shares, PreviewShare{Application: key[0], Route: key[1], Alerts: n})
	}
	slices.SortFunc(p.out.Shares, func(a, b PreviewShare) int {
		if a.Alerts != b.Alerts {
			return int(b.Alerts - a.Alerts)
		}
		return strings.Compare(a.Application+"\x00"+a.Route, b.Application+"\x00"+b.Route)
	})
	p.out.Shares = p.out.Shares[:min(len(p.out.Shares), previewShares)]
	for _, n := range p.minutes {
		p.out.BusiestMinute = max(p.out.BusiestMinute, n)
	}
	if len(p.rule.WebhookIDs) == 0 {
		p.out.Notifications, p.out.BusiestMinute = 0, 0
	}
	return p.out
}
