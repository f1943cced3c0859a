package counting

import (
	"context"

	"tocsin/alerts"
	"tocsin/evaluator/source"
	"tocsin/rules"
)

// Source counts the exchanges of windows.
type Source interface {
	// Tally returns how many exchanges there are of each kind.
	Tally(ctx context.Context, q TallyQuery) (Tallies, error)
	// CountWindows returns, for each window, the groups that its Bound and Open choose: those in
	// Open first, then the largest, at most its Limit. It may return further groups with an exchange
	// that counts. Windows of one mode have the same end.
	CountWindows(ctx context.Context, windows []Query) (Counted, error)
	// Newest returns the newest exchange of each group of some windows, the zero exchange
	// for one that is no longer there.
	Newest(ctx context.Context, windows []NewestQuery) ([][]rules.Exchange, error)
}

// Counted is the answer to some queries, in their order. Server is the server that answered those
// of rules on absence, as in [source.Observation]; empty if there were several.
type Counted struct {
	Server string
	Groups [][]Group
}

// Query is the window of a rule, and what counts in it. All instants are in nanoseconds
// since the Unix epoch.
type Query struct {
	TenantID string
	// FromNS, inclusive, and ToNS, exclusive, bound the ends of exchanges.
	FromNS, ToNS int64
	// StartFromNS, inclusive, is the first start time that is read; the last one is before ToNS. It
	// is the result of [StartFromNS].
	StartFromNS int64
	Grouping    rules.Grouping
	Scope       rules.Scope
	Filter      rules.Filter
	// Mode says what is observed, and what it is compared with:
	//
	//   - COUNT_IN_WINDOW and ABSENT_IN_WINDOW observe the matching exchanges.
	//   - RATIO_IN_WINDOW compares these with all exchanges of the scope.
	//   - DURATION_IN_WINDOW observes the matching exchanges that lasted at least LeastNS, compares them with all matching ones, and needs a percentile.
	Mode       rules.FireMode
	LeastNS    int64
	Percentile int
	// ShortFromNS, inclusive, is the beginning of a short window with the same end; 0 if there is
	// none.
	ShortFromNS int64
	// Bound is what a group must reach to be returned; nil if every group with an exchange that
	// counts is wanted. Rules on absence have none. Groups in Open, which are the keys of groups
	// with an open alert, are returned even if they do not reach it.
	Bound *alerts.Window
	Open  []string
	// Limit is how many groups to return at most.
	Limit int
	// Whole says that the groups of the query before are compared with what this one counts: one server
	// must answer both.
	Whole bool
}

// Statuses returns the statuses of the exchanges that are observed or compared with.
func (q *Query) Statuses() []rules.Status { return statusesOf(q.Mode, &q.Filter) }

func statusesOf(mode rules.FireMode, filter *rules.Filter) []rules.Status {
	if mode == rules.RatioInWindow {
		return []rules.Status{rules.Completed, rules.Failed}
	}
	return filter.StatusesOrDefault()
}

// Group is what was observed of a group, and the newest observed exchange: the one that ended last,
// or of several the one that began last.
type Group struct {
	Group    string
	Observed int64
	// Volume is how many exchanges the observed ones are compared with; 0 for counts.
	Volume                     int64
	ShortObserved, ShortVolume int64
	// DurationNS is the percentile. A tally does not contain it.
	DurationNS                   int64
	NewestEndedNS, NewestStartNS int64
}

// Value returns what was measured of the group.
func (g *Group) Value() alerts.Value {
	return alerts.Value{Observed: g.Observed, Volume: g.Volume, ShortObserved: g.ShortObserved, ShortVolume: g.ShortVolume}
}

// observe adds exchanges to the observed ones of a group.
func (g *Group) observe(t *Tally) {
	// Instants before 1970 are negative.
	if g.Observed == 0 || t.NewestEndedNS > g.NewestEndedNS || t.NewestEndedNS == g.NewestEndedNS && t.NewestStartNS > g.NewestStartNS {
		g.NewestEndedNS, g.NewestStartNS = t.NewestEndedNS, t.NewestStartNS
	}
	g.Observed += t.Observed
}

// NewestQuery asks for the newest exchanges of groups that a window counted.
type NewestQuery struct {
	Query
	Groups []Group
}

// TallyQuery asks for the tallies of some tenants.
type TallyQuery struct {
	Tenants source.Tenants
	// StartFromNS is as in [Query].
	StartFromNS int64
	// FromNS holds the beginnings of intervals of ends, ascending and distinct, at least one. Each
	// interval lasts to the next beginning, the last one to ToNS, exclusive.
	FromNS   []int64
	ToNS     int64
	Statuses []rules.Status
	// The fields by which kinds are distinguished, in addition to tenant and status.
	Environment, Application, Route, ErrorType bool
	// Attributes holds keys of attributes by whose values kinds are also distinguished; the keys
	// are distinct. Then each exchange is counted once for each key, and not without a key: the
	// tallies of one key add up to the whole. Empty means that no attribute is used.
	Attributes []string
	// LeastNS holds the durations at which further kinds begin, ascending and distinct. Durations
	// below the first one are a kind, too. Empty means that durations are not distinguished.
	LeastNS []int64
	// Limit is how many tallies to return at most; more are an error.
	Limit int
	// NamesServer asks for the name of the server.
	NamesServer bool
}

// Tallies is the answer to a [TallyQuery]. Inexact are tenants with an exchange that was counted in
// two tallies, so that their sums would be wrong. Server is the server that answered, if that was
// asked for.
type Tallies struct {
	Tallies []Tally
	Inexact []string
	Server  string
}

// Tally counts the exchanges of one kind that ended in one interval. Fields that were not asked for
// are empty.
type Tally struct {
	TenantID                                   string
	Status                                     rules.Status
	Environment, Application, Route, ErrorType string
	// Attribute is the key of the attribute, and Group its value in the form of
	// [rules.AttributeGroup].
	Attribute, Group string
	// FromNS is the beginning of the interval, LeastNS that of the durations of the kind.
	FromNS, LeastNS                        int64
	Observed, NewestEndedNS, NewestStartNS int64
}

const secondNS = int64(1e9)

// lengths are the classes of windows, in seconds. Windows of one class are tallied by one query.
func lengths() []int { return []int{60, 300, 900, 3600, 14_400, 86_400} }

// lengthOf returns the length of the class of a window.
func lengthOf(windowSeconds int) int {
	for _, length := range lengths() {
		if windowSeconds <= length {
			return length
		}
	}
	return windowSeconds
}

// DefaultLookBackSeconds is how long an exchange may at least last and still count.
const DefaultLookBackSeconds = 3600

// StartFromNS returns the start time from which exchanges count in a window that ends at toNS. An
// exchange that lasted no longer than an hour, or than a longer window, counts while its end is in
// the window. A longer exchange may count.
//
// ClickHouse prunes by start times. Without a bound, each pass would read all of history for
// exchanges that began long ago. The bound is the same for all windows of a class, so that one
// tally serves all of them.
func StartFromNS(windowSeconds int, toNS int64) int64 {
	length := lengthOf(windowSeconds)
	return toNS - int64(length+max(length, DefaultLookBackSeconds))*secondNS
}
