package evaluator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"tocsin/cursor"
	"tocsin/rules"
)

// COUNT_IN_WINDOW rules count the matching exchanges that began within the
// window that ends at the horizon. ClickHouse counts; the decision is
// [alerts.Window.Next]; the database holds that at most one alert is open for
// each rule and group. What arrives late is counted for as long as the window
// reaches it, so such a rule needs no look-back; its cursor only tells how far
// it has come. A step is made in the transaction that advances the cursor, from
// the state that was read: what a person did meanwhile makes it void, and the
// next tick decides anew.
//
// Rules share their queries. Those of one tenant whose statuses are the same
// and whose windows are of similar length form a set:
//
//   - Where a condition looks at nothing but names, status and error type, one
//     query for all of them tallies the exchanges by these, and the process
//     sums up for each rule what it matches (see tally.go).
//
//   - The other conditions are sent to ClickHouse, many in one query, which
//     answers for each of them exactly as if it were asked alone.
//
// A query that fails is asked again for each half of its rules, and so on, so
// that only those fail which are at fault. Where the time is up before that is
// found out, all of them are suspects. For a while, suspects are asked one by
// one, after all others, and those that have failed last of all: a rule that
// takes all the time there is keeps nobody from being counted. A tally that takes
// it is not taken again for as long, and of the queries for a set those come first
// whose rules wait for longest.

// Counter counts.
type Counter interface {
	// CountWindows returns, for each of some windows of one tenant and end, the
	// groups that hold a matching exchange, the largest first, at most its Limit.
	CountWindows(ctx context.Context, windows []WindowQuery) ([][]GroupCount, error)
	// Tally returns how many exchanges there are of each kind; exact is false
	// where one exchange was counted in two of them, and sums would be wrong.
	Tally(ctx context.Context, q TallyQuery) (tallies []Tally, exact bool, err error)
	// Newest returns the newest exchange of each of some groups that a window counted,
	// the zero exchange for one that is no longer there.
	Newest(ctx context.Context, q WindowQuery, groups []GroupCount) ([]rules.Exchange, error)
}

// WindowQuery is a window of start times, and what counts in it.
type WindowQuery struct {
	TenantID string
	// FromNS is inclusive, ToNS exclusive.
	FromNS, ToNS int64
	// EndedSinceNS leaves out what ended before the rule was armed.
	EndedSinceNS int64
	GroupBy      rules.GroupBy
	Scope        rules.Scope
	Filter       rules.Filter
	// Limit is the most groups to return.
	Limit int
}

// GroupCount is how often a group matched, and when its newest exchange began.
type GroupCount struct {
	Group    string
	Observed int64
	NewestNS int64
}

const (
	// maxGroups bounds the groups of one rule, and the alerts that it has open.
	maxGroups = 1000
	// tooManyGroups is the problem of a rule whose groups are more than that.
	tooManyGroups = "more than 1000 groups reach the threshold: there are alerts of 1000 at most, and those of groups that were not counted stay as they are"
	// batchMost is how many conditions are sent in one query: what ClickHouse
	// spends on reading it grows faster than their number.
	batchMost = 50
	// changesMost bounds the steps of one transaction, but for those of one rule.
	changesMost = 500
	// suspectFor is how long a suspect is asked alone, and a set not tallied.
	suspectFor = 10 * time.Minute
)

// trust says how a rule is asked, and when: the most trusted first.
type trust int

const (
	trusted trust = iota
	// suspected rules were asked in a query that took too long.
	suspected
	// distrusted rules have failed alone.
	distrusted
)

// suspect is a rule that is not trusted.
type suspect struct {
	trust
	until time.Time
}

// window is a counting rule at work.
type window struct {
	*judge
	query WindowQuery
	// counted holds the groups once they are counted, one more than there may be where
	// they are more.
	counted []GroupCount
}

// windowSet is windows that are counted together.
type windowSet struct {
	windows []*window
	trust   trust
}

// setKey is what the windows of a set have in common.
type setKey struct {
	tenantID          string
	completed, failed bool
	// length is the same for windows that differ by less than a factor of four.
	length int
	trust  trust
}

// count evaluates counting rules, and releases them. Once the budget is spent
// it only releases, and the next tick counts.
func (t *tick) count(ctx context.Context, judges []*judge) error {
	if len(judges) == 0 {
		return nil
	}
	conclusion := &conclusion{tick: t}
	for _, set := range t.windowSets(judges) {
		rest := set.windows
		if set.trust == trusted && !t.spent() {
			var tallied []*window
			tallied, rest = t.tally(ctx, set.windows)
			if err := conclusion.draw(ctx, tallied); err != nil {
				return err
			}
		}
		most := batchMost
		if set.trust != trusted {
			most = 1
		}
		sortByNames(rest)
		batches := slices.Collect(slices.Chunk(rest, most))
		slices.SortStableFunc(batches, func(a, b []*window) int { return oldest(a).Compare(oldest(b)) })
		for _, batch := range batches {
			if err := t.countBatch(ctx, batch, conclusion); err != nil {
				return err
			}
		}
	}
	return conclusion.commit(ctx)
}

// sortByNames brings together the windows that look at the same names, by
// which a query for several is narrowed; those without come last.
func sortByNames(windows []*window) {
	slices.SortStableFunc(windows, func(a, b *window) int {
		x, y := &a.query.Scope, &b.query.Scope
		return cmp.Or(byNames(x.Applications, y.Applications), byNames(x.Routes, y.Routes), byNames(x.Environments, y.Environments))
	})
}

func byNames(a, b []string) int {
	if (len(a) == 0) != (len(b) == 0) {
		return len(b) - len(a)
	}
	return slices.Compare(a, b)
}

// windowSets returns what is counted together, the most trusted first, and of
// these those that wait for longest.
func (t *tick) windowSets(judges []*judge) []windowSet {
	byKey := map[setKey]*windowSet{}
	now := t.Clock()
	for id, s := range t.suspects {
		if !now.Before(s.until) {
			delete(t.suspects, id)
		}
	}
	maps.DeleteFunc(t.untallied, func(_ setKey, until time.Time) bool { return !now.Before(until) })
	for _, j := range judges {
		w := t.window(j)
		key := w.key()
		key.trust = t.suspects[j.claim.Rule.ID].trust
		set := byKey[key]
		if set == nil {
			set = &windowSet{trust: key.trust}
			byKey[key] = set
		}
		set.windows = append(set.windows, w)
	}
	sets := make([]windowSet, 0, len(byKey))
	for _, set := range byKey {
		// In a fixed order, in which their index is known from tick to tick.
		slices.SortFunc(set.windows, func(a, b *window) int { return slices.Compare(a.claim.Rule.ID[:], b.claim.Rule.ID[:]) })
		sets = append(sets, *set)
	}
	slices.SortFunc(sets, func(a, b windowSet) int {
		return cmp.Or(cmp.Compare(a.trust, b.trust), oldest(a.windows).Compare(oldest(b.windows)), slices.Compare(a.windows[0].claim.Rule.ID[:], b.windows[0].claim.Rule.ID[:]))
	})
	return sets
}

// oldest returns how far the rule has come that waits for longest.
func oldest(windows []*window) cursor.Position {
	return slices.MinFunc(windows, func(a, b *window) int { return a.at.Compare(b.at) }).at
}

func (t *tick) window(j *judge) *window {
	rule := &j.claim.Rule
	return &window{judge: j, query: WindowQuery{
		TenantID: rule.TenantID, ToNS: t.horizon.StartTimeNS,
		FromNS:       t.horizon.StartTimeNS - int64(rule.WindowSeconds)*secondNS,
		EndedSinceNS: rule.ArmedSinceNS, GroupBy: rule.GroupBy, Scope: rule.Scope, Filter: rule.Filter, Limit: maxGroups + 1,
	}}
}

func (w *window) key() setKey {
	statuses := w.query.Filter.StatusesOrDefault()
	key := setKey{
		tenantID: w.query.TenantID, completed: slices.Contains(statuses, rules.Completed), failed: slices.Contains(statuses, rules.Failed),
	}
	for seconds := w.claim.Rule.WindowSeconds; seconds >= 40; seconds /= 4 {
		key.length++
	}
	return key
}

// countBatch counts windows in one query.
func (t *tick) countBatch(ctx context.Context, windows []*window, c *conclusion) error {
	if t.spent() {
		c.release(windows)
		return nil
	}
	queries := make([]WindowQuery, len(windows))
	for i, w := range windows {
		queries[i] = w.query
	}
	counted, err := t.Source.CountWindows(ctx, queries)
	switch {
	case err == nil:
		for i, w := range windows {
			w.counted = counted[i]
		}
		return c.draw(ctx, windows)
	case len(windows) == 1:
		t.suspect(windows, distrusted)
		return t.fail(ctx, []*judge{windows[0].judge}, fmt.Errorf("count exchanges: %w", err))
	case t.spent():
		// Who took the time is found out one by one.
		t.suspect(windows, suspected)
		c.release(windows)
		return nil
	}
	middle := len(windows) / 2
	if err := t.countBatch(ctx, windows[:middle], c); err != nil {
		return err
	}
	return t.countBatch(ctx, windows[middle:], c)
}

func (t *tick) suspect(windows []*window, how trust) {
	until := t.Clock().Add(suspectFor)
	for _, w := range windows {
		t.suspects[w.claim.Rule.ID] = suspect{how, until}
	}
}

// conclusion gathers what follows for rules that were counted, and commits it.
// Rules that change nothing wait for the last commit; a step waits for nothing.
type conclusion struct {
	*tick
	judges  []*judge
	changes []Change
}

// draw decides on windows that were counted.
func (c *conclusion) draw(ctx context.Context, windows []*window) error {
	for _, w := range windows {
		changes, err := c.steps(ctx, w)
		if err != nil {
			if err := c.fail(ctx, []*judge{w.judge}, err); err != nil {
				return err
			}
			continue
		}
		if c.horizon.After(w.at) {
			w.at = c.horizon
		}
		c.judges = append(c.judges, w.judge)
		c.changes = append(c.changes, changes...)
		if len(c.changes) >= changesMost {
			if err := c.commit(ctx); err != nil {
				return err
			}
		}
	}
	if len(c.changes) > 0 {
		return c.commit(ctx)
	}
	return nil
}

// release gives up windows that were not counted, for this tick.
func (c *conclusion) release(windows []*window) {
	for _, w := range windows {
		w.unjudged = true
		c.judges = append(c.judges, w.judge)
	}
}

// commit writes what was gathered, and releases its rules.
func (c *conclusion) commit(ctx context.Context) error {
	judges, changes := c.judges, c.changes
	c.judges, c.changes = nil, nil
	if len(judges) == 0 {
		return nil
	}
	return c.commitSteps(ctx, judges, changes)
}

// commitSteps writes the steps of some rules. Where the database refuses them,
// each half is tried alone, and so on, so that only those fail which are at fault.
func (t *tick) commitSteps(ctx context.Context, judges []*judge, changes []Change) error {
	g := group{judges: judges}
	batch := t.batch(g.advances(findings{}, true))
	batch.Changes = changes
	done, err := t.Store.Commit(ctx, batch)
	if err != nil {
		if ctx.Err() != nil || len(judges) == 1 {
			return t.fail(ctx, judges, err)
		}
		middle := len(judges) / 2
		for _, half := range [][]*judge{judges[:middle], judges[middle:]} {
			if err := t.commitSteps(ctx, half, changesOf(half, changes)); err != nil {
				return err
			}
		}
		return nil
	}
	t.result.Stale += len(judges) - len(done.Advanced)
	advanced := NewIDs(done.Advanced)
	for _, j := range judges {
		if id := j.claim.Rule.ID; advanced[id] && !j.unjudged {
			delete(t.told, id)
		}
	}
	t.result.Alerts += len(done.Inserted)
	t.result.Notifications += done.Notifications
	return nil
}

// changesOf returns the changes of some judges' rules.
func changesOf(judges []*judge, changes []Change) []Change {
	wanted := idsOf(judges)
	var own []Change
	for i := range changes {
		if wanted[changes[i].Instance.RuleID] {
			own = append(own, changes[i])
		}
	}
	return own
}

// steps decides on the groups of one window.
//
// Of the groups that were not counted, because too many hold more, it is known how much
// they hold at most. Where that is below the threshold, they clear; else their alerts stay
// as they are, and of the others only so many are raised as make up the most there may be.
func (t *tick) steps(ctx context.Context, w *window) ([]Change, error) {
	atWork, room := withOpen(w.counted[:min(len(w.counted), maxGroups)], w.claim.Open), maxGroups
	if len(w.counted) > maxGroups && w.counted[maxGroups].Observed >= int64(w.claim.Rule.Threshold) {
		atWork, room = atWork[:maxGroups], maxGroups-len(w.claim.Open)
		w.problem = tooManyGroups
	}
	var changes []Change
	var held []int
	var groups []GroupCount
	for _, g := range atWork {
		change := t.change(w.judge, g)
		if change == nil {
			continue
		}
		if g.open == nil {
			if room--; room < 0 {
				continue
			}
		}
		if g.Observed > 0 {
			held, groups = append(held, len(changes)), append(groups, g.GroupCount)
		}
		changes = append(changes, *change)
	}
	if len(groups) == 0 {
		return changes, nil
	}
	newest, err := t.Source.Newest(ctx, w.query, groups)
	if err != nil {
		return nil, err
	}
	for i := range newest {
		t.describe(ctx, w.judge, &changes[held[i]].Instance, &newest[i])
	}
	return changes, nil
}
