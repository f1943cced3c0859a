package resolution

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/rules"
)

// place is the common part of rules whose evidence one query finds.
type place struct{ tenant, attribute string }

func (r *Rule) place() place {
	p := place{tenant: r.TenantID}
	if r.Resolution.Evidence == rules.EvidenceAttribute {
		p.attribute = r.Resolution.Attribute
	}
	return p
}

// byEvidence returns the rules that resolve by evidence, grouped by the query that finds their
// evidence, in the order in which they were taken.
func byEvidence(taken []*Rule) (together [][]*Rule) {
	at := map[place]int{}
	for _, rule := range taken {
		if rule.Resolution.Evidence == "" {
			continue
		}
		n, known := at[rule.place()]
		if !known {
			n = len(together)
			at[rule.place()], together = n, append(together, nil)
		}
		together[n] = append(together[n], rule)
	}
	return together
}

// searching is a rule whose alerts are being searched for.
type searching struct {
	*Rule
	page []Open
	seen int
	done bool
	// failed is why the search for the rule has ended.
	failed error
}

// next reads the next page of a rule's alerts.
func (s *searching) next(ctx context.Context, store Store) error {
	var after *Open
	if len(s.page) > 0 {
		after = &s.page[len(s.page)-1]
	}
	page, err := store.Open(ctx, s.Rule, after, pageSize)
	s.page, s.seen = page, s.seen+len(page)
	s.done = len(page) < pageSize || s.seen >= most
	return err
}

// search searches for evidence for the alerts of rules of one place, for one page of alerts by one
// query. After a failure it waits, longer each time.
func (r *Resolver) search(ctx context.Context, alike []*Rule, result *Result) error {
	at := alike[0].place()
	if time.Now().Before(r.waits[at].until) { //nolint:forbidigo // a duration alone
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ruleTimeout)
	defer cancel()
	failed, err := r.searchAll(ctx, alike, result)
	if r.waits == nil {
		r.waits = map[place]wait{}
	}
	if err == nil {
		delete(r.waits, at)
	}
	if failed {
		length := min(max(2*r.waits[at].length, r.Interval), longestWait)
		r.waits[at] = wait{time.Now().Add(length), length} //nolint:forbidigo // a duration alone
	}
	return err
}

// searchAll reports whether the search failed although the source answers.
func (r *Resolver) searchAll(ctx context.Context, alike []*Rule, result *Result) (failed bool, err error) {
	nowNS, err := r.Source.Now(ctx)
	if err != nil {
		return false, fmt.Errorf("look for evidence: %w", err)
	}
	open := make([]*searching, len(alike))
	for i, rule := range alike {
		open[i] = &searching{Rule: rule}
	}
	for len(open) > 0 {
		var together []*searching
		q := Query{TenantID: alike[0].TenantID, Attribute: alike[0].place().attribute, FromNS: nowNS, ToNS: nowNS}
		n, asked := 0, 0
		for ; asked < len(open) && n < pageSize; asked++ {
			s := open[asked]
			if s.failed = s.next(ctx, r.Store); s.failed == nil {
				together, n = append(together, s), n+len(s.page)
				q.add(s.Rule, s.page, nowNS)
			}
		}
		found, sourceErr := r.find(ctx, q)
		for _, s := range together {
			proven, err := r.Store.ResolveProven(ctx, s.Rule, Proofs(s.page, found))
			result.Proven += proven
			if err == nil && sourceErr == nil && s.done {
				err = r.Store.MarkSearched(ctx, s.Rule, Searched{ToNS: nowNS, At: s.TakenAt})
			}
			s.failed = err
		}
		for _, s := range open[:asked] {
			if s.failed != nil {
				err = errors.Join(err, fmt.Errorf("rule %s: %w", s.ID, s.failed))
			}
		}
		if sourceErr != nil {
			return true, errors.Join(err, fmt.Errorf("look for evidence: %w", sourceErr))
		}
		// Rules with more alerts follow after the others.
		open = slices.DeleteFunc(slices.Concat(open[asked:], open[:asked]), func(s *searching) bool { return s.done || s.failed != nil })
	}
	return false, err
}

// find finds, for each key, the completed exchange that began last. It reads time slice by slice,
// newest first. A slice that fails is read in halves. If the halves fail as well, or the source
// cannot be read, find returns an error together with the results of newer slices.
func (r *Resolver) find(ctx context.Context, q Query) ([]Completed, error) {
	if len(q.Values) == 0 {
		return nil, nil
	}
	last := map[Key]Completed{}
	if r.sliceNS == 0 {
		r.sliceNS = longestSliceNS
	}
	for failures, toNS := 0, q.ToNS; toNS > q.FromNS; {
		slice := q
		slice.FromNS, slice.ToNS = max(q.FromNS, toNS-r.sliceNS), toNS
		found, err := r.Source.LastCompleted(ctx, slice)
		if err != nil {
			if failures++; failures == failuresMost || ctx.Err() != nil {
				return slices.Collect(maps.Values(last)), err
			}
			r.sliceNS = max(min(r.sliceNS, toNS-slice.FromNS)/2, shortestSliceNS)
			continue
		}
		for _, c := range found {
			if known, ok := last[c.Key]; !ok || c.StartTimeNS > known.StartTimeNS {
				last[c.Key] = c
			}
		}
		failures, toNS = 0, slice.FromNS
		r.sliceNS = min(r.sliceNS*5/4, longestSliceNS)
	}
	return slices.Collect(maps.Values(last)), nil
}

// QueryOf returns the query for alerts of a rule at an instant of the source's clock.
func QueryOf(rule *Rule, page []Open, nowNS int64) Query {
	q := Query{TenantID: rule.TenantID, Attribute: rule.place().attribute, FromNS: nowNS, ToNS: nowNS}
	q.add(rule, page, nowNS)
	return q
}

// add adds alerts of a rule to the query.
func (q *Query) add(rule *Rule, page []Open, nowNS int64) {
	byRoute := rule.Resolution.Evidence == rules.EvidenceAttribute
	for i := range page {
		if !page[i].Key.comparable(byRoute) {
			continue
		}
		q.FromNS = min(q.FromNS, max(rule.fromNS(&page[i]), nowNS-longest.Nanoseconds()))
		q.Values = append(q.Values, page[i].Key.Value)
		q.Routes = append(q.Routes, page[i].Key.Route)
	}
	slices.Sort(q.Values)
	slices.Sort(q.Routes)
	q.Values, q.Routes = slices.Compact(q.Values), slices.Compact(q.Routes)
}

// fromNS returns the start time from which evidence for an alert is searched for.
func (r *Rule) fromNS(a *Open) int64 {
	if r.Searched == nil || !a.FiredAt.Before(r.Searched.At.Add(-commitWithin)) {
		return a.EndedNS
	}
	return max(a.EndedNS, r.Searched.ToNS-min(max(r.LookBack, leastBehind), mostBehind).Nanoseconds())
}

// comparable reports whether a key is complete, as in the source.
func (k *Key) comparable(byRoute bool) bool {
	odd := func(text string) bool { return strings.ContainsRune(text, '\uFFFD') || strings.HasSuffix(text, "…") }
	if k.Value == "" || len(k.Value) > valueBytes || odd(k.Value) {
		return false
	}
	return (k.Route != "" || !byRoute) && !odd(k.Environment) && !odd(k.Application) && !odd(k.Route)
}

// Proofs returns which alerts the found exchanges resolve.
func Proofs(page []Open, found []Completed) []Proof {
	last := make(map[Key]*Completed, len(found))
	for i := range found {
		last[found[i].Key] = &found[i]
	}
	var proofs []Proof
	for i := range page {
		a := &page[i]
		c := last[a.Key]
		if c == nil || c.StartTimeNS <= a.EndedNS || cursor.Key(c.ExecutionID) == a.ExecutionID {
			continue
		}
		proofs = append(proofs, Proof{a.ID, alerts.Resolution{
			Reason: alerts.ByEvidence, ExecutionID: cursor.Key(c.ExecutionID), StartTimeNS: new(c.StartTimeNS),
		}})
	}
	return proofs
}
