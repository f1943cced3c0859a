package counting

import (
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/rules"
)

// MaxGroups bounds the groups of one rule, and its open alerts.
const MaxGroups = 1000

// Compiled is a window rule with its compiled conditions.
type Compiled struct {
	*rules.Rule
	*rules.Judge
	// Router is the tenant's routing policy, where the rule uses it; else nil.
	Router *routing.Router
}

// Window is the window of a rule, and what was counted in it.
type Window struct {
	Compiled
	// Number is the index of the rule in the request. Rules with lower numbers wait for longer.
	Number int
	// Bound is what a group must reach. Groups in Open are counted whatever they reach.
	Bound alerts.Window
	Open  []alerts.OpenAlert
	// FromNS, ToNS, StartFromNS and Limit are those of the [Query] of the window.
	FromNS, ToNS, StartFromNS int64
	Limit                     int
	// Seconds is the length of the window.
	Seconds int
	// Learns says that groups are learned from the window.
	Learns bool

	// Groups are the counted groups: those with an open alert, and those that may reach the
	// threshold, the largest first. A rule on absence has all groups here. If there are more than
	// fit, it has one more than that.
	Groups []Group
	// Server is the server that counted the groups of a rule on absence.
	Server string
	// tallied says that a tally counted the groups.
	tallied bool
}

// learning identifies the window from which a rule learns its groups.
type learning struct{ rule uuid.UUID }

// key identifies a window from one pass to the next.
func (w *Window) key() any {
	if w.Learns {
		return learning{w.ID}
	}
	return w.ID
}

// WindowOf returns the window of a rule that ends at an instant.
func WindowOf(rule Compiled, open []alerts.OpenAlert, toNS int64) Window {
	w := Window{
		Compiled: rule, Bound: alerts.WindowOf(&rule.Definition), Open: open, Seconds: rule.WindowSeconds,
		ToNS: toNS, StartFromNS: StartFromNS(rule.WindowSeconds, toNS), Limit: MaxGroups + len(open) + 1,
	}
	w.FromNS = max(w.CutNS(), rule.ArmedSinceNS)
	return w
}

// CutNS is the beginning of the window, whenever the rule was armed.
func (w *Window) CutNS() int64 { return w.ToNS - int64(w.Seconds)*secondNS }

// Partial reports whether the window begins before the rule was armed.
func (w *Window) Partial() bool { return w.CutNS() < w.FromNS }

// Covers reports whether the window counts an exchange with these instants.
func (w *Window) Covers(endedNS, startNS int64) bool {
	return endedNS >= w.FromNS && endedNS < w.ToNS && startNS >= w.StartFromNS
}

// Absent reports whether the rule is on absence.
func (w *Window) Absent() bool { return w.FireMode == rules.AbsentInWindow }

// LeastNS is the duration from which an exchange is observed by a rule on durations.
func (w *Window) LeastNS() int64 { return w.DurationMS * 1e6 }

// Recount reports whether the groups of a counted window lack their percentiles, as those of a tally
// do. If so, they are counted once more, by the condition.
func (w *Window) Recount() bool {
	recount := w.tallied && w.FireMode == rules.DurationInWindow
	w.tallied = w.tallied && !recount
	return recount
}

// shortCutNS is the beginning of the short window; its end if there is none.
func (w *Window) shortCutNS() int64 { return w.ToNS - int64(w.ShortWindowSeconds)*secondNS }

// byErrorType reports whether the rule is on a ratio by error type. A completed exchange has none,
// so each group is compared with all exchanges of the scope.
func (w *Window) byErrorType() bool {
	return w.FireMode == rules.RatioInWindow && w.GroupBy == rules.GroupByErrorType
}

// query is what a window asks for.
func (w *Window) query() Query {
	q := Query{
		TenantID: w.TenantID, FromNS: w.FromNS, ToNS: w.ToNS, StartFromNS: w.StartFromNS, Grouping: w.Grouping(), Scope: w.Scope, Filter: w.Filter,
		Limit: w.Limit, Mode: w.FireMode, LeastNS: w.LeastNS(), Percentile: w.Percentile,
	}
	if w.ShortWindowSeconds > 0 {
		q.ShortFromNS = max(w.shortCutNS(), w.ArmedSinceNS)
	}
	if w.Absent() {
		return q
	}
	if q.Bound = &w.Bound; w.byErrorType() {
		// What the groups are compared with is not in this query.
		q.Bound = &alerts.Window{Threshold: w.Bound.Least()}
	}
	q.Open = make([]string, len(w.Open))
	for i := range w.Open {
		q.Open[i] = w.Open[i].Group
	}
	return q
}

// queries returns the query of a window and, for a ratio by error type, a query for everything that
// its groups are compared with.
func (w *Window) queries() []Query {
	if !w.byErrorType() {
		return []Query{w.query()}
	}
	whole := w.query()
	whole.Grouping, whole.Bound, whole.Open, whole.Whole = rules.Grouping{}, nil, nil, true
	return []Query{w.query(), whole}
}

// compareWith compares all groups with the volume of a group that contains everything.
func (w *Window) compareWith(whole []Group) {
	for i := range w.Groups {
		if g := &w.Groups[i]; len(whole) > 0 {
			g.Volume, g.ShortVolume = whole[0].Volume, whole[0].ShortVolume
		}
	}
}
