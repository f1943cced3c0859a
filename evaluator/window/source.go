package window

import (
	"context"

	"tocsin/evaluator"
	"tocsin/evaluator/watch"
	"tocsin/rules"
)

// Source measures windows.
type Source interface {
	watch.Source
	// Tally returns how many exchanges there are of each kind.
	Tally(ctx context.Context, q TallyQuery) (Tallies, error)
	// CountWindows returns, for each of some windows, the groups that hold a matching
	// exchange, the largest first, at most its Limit. Windows of one mode have one end.
	CountWindows(ctx context.Context, windows []Query) (Counted, error)
	// Newest returns the newest exchange of each group of some windows, the zero exchange
	// for one that is no longer there.
	Newest(ctx context.Context, windows []NewestQuery) ([][]rules.Exchange, error)
}

// Counted is the answer to some queries, in their order. Server is who answered those of
// rules on absence, as in [evaluator.Observation]; empty where it was not one alone.
type Counted struct {
	Server string
	Groups [][]Group
}

// Query is the window of a rule, and what counts in it. All instants are in nanoseconds
// since the Unix epoch.
type Query struct {
	TenantID string
	// FromNS, inclusive, and ToNS, exclusive, are when an exchange ended.
	FromNS, ToNS int64
	// StartFromNS, inclusive, is where the start times begin that are read; they end
	// at ToNS, exclusive. It is what [StartFromNS] returns.
	StartFromNS int64
	Grouping    rules.Grouping
	Scope       rules.Scope
	Filter      rules.Filter
	// Mode says what is observed, and what it is compared with. COUNT_IN_WINDOW and
	// ABSENT_IN_WINDOW observe what matches. RATIO_IN_WINDOW compares that with all exchanges of the scope.
	// DURATION_IN_WINDOW observes those of the exchanges that match which lasted for
	// LeastNS or longer, compares them with all that match, and wants a percentile.
	Mode       rules.FireMode
	LeastNS    int64
	Percentile int
	// ShortFromNS, inclusive, is where a short window with the same end begins, 0 where
	// there is none.
	ShortFromNS int64
	// Limit is the most groups to return.
	Limit int
}

// Statuses returns those of the exchanges that are observed or compared with.
func (q *Query) Statuses() []rules.Status {
	if q.Mode == rules.RatioInWindow {
		return []rules.Status{rules.Completed, rules.Failed}
	}
	return q.Filter.StatusesOrDefault()
}

// Group is what was observed of a group, and which of that is the newest: the exchange
// that ended last, of several the one that began last.
type Group struct {
	Group    string
	Observed int64
	// Volume is how many exchanges that is compared with, 0 for counts.
	Volume                     int64
	ShortObserved, ShortVolume int64
	// DurationNS is the percentile; a tally does not tell it.
	DurationNS                   int64
	NewestEndedNS, NewestStartNS int64
}

// observe adds exchanges to what is observed of a group.
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
	Tenants evaluator.Tenants
	// StartFromNS is as in [Query].
	StartFromNS int64
	// FromNS holds the instants at which exchanges ended from which stretches begin,
	// ascending and distinct, at least one; each lasts to the next, the last one to
	// ToNS, exclusive.
	FromNS   []int64
	ToNS     int64
	Statuses []rules.Status
	// The fields that tell kinds apart, beside tenant and status.
	Environment, Application, Route, ErrorType bool
	// Attributes holds keys of attributes whose values tell kinds apart as well, distinct.
	// Each exchange is then counted once for each key, and not at all without: the
	// tallies of one key make up the whole. Empty asks for none.
	Attributes []string
	// LeastNS holds the durations from which further kinds begin, ascending and distinct;
	// what is shorter than the first is a kind, too. Empty tells no durations apart.
	LeastNS []int64
	// Limit is the most tallies to return; more are an error.
	Limit int
	// NamesServer asks who answers.
	NamesServer bool
}

// Tallies is the answer to a [TallyQuery]. Inexact are tenants of which an exchange was
// counted in two tallies: sums of theirs would be wrong. Server is who answered, if that
// was asked.
type Tallies struct {
	Tallies []Tally
	Inexact []string
	Server  string
}

// Tally counts the exchanges of one kind that ended in one stretch. Fields that were not
// asked for are empty.
type Tally struct {
	TenantID                                   string
	Status                                     rules.Status
	Environment, Application, Route, ErrorType string
	// Attribute is the key of which Group is the value, as [rules.AttributeGroup] names it.
	Attribute, Group string
	// FromNS is where the stretch begins, LeastNS where the durations of the kind do.
	FromNS, LeastNS                        int64
	Observed, NewestEndedNS, NewestStartNS int64
}

const secondNS = int64(1e9)

// lengths are the classes of windows, in seconds. Windows of one class are tallied by one
// query.
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

// DefaultLookBackSeconds is how long an exchange may last at least and count all the
// same.
const DefaultLookBackSeconds = 3600

// StartFromNS returns from which start time on exchanges count in a window that ends at
// toNS. What lasted no longer than an hour, or than the window where that is longer,
// counts for as long as its end lies in the window. What lasted longer may count.
//
// ClickHouse prunes by start times; without a bound, each pass would read all of history
// for exchanges that began long ago. The bound is the same for all windows of a class, so
// that one tally serves them all.
func StartFromNS(windowSeconds int, toNS int64) int64 {
	length := lengthOf(windowSeconds)
	return toNS - int64(length+max(length, DefaultLookBackSeconds))*secondNS
}
