package model

import (
	"cmp"
	"context"
	"slices"

	"tocsin/evaluator/source"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// Tally returns how many exchanges there are of each kind, as one server shows them. An exchange whose rows are of
// different kinds counts in each of them, and the tenant's tallies are inexact.
func (s *Server) Tally(_ context.Context, q counting.TallyQuery) (counting.Tallies, error) {
	server := s.pick()
	var out counting.Tallies
	if q.NamesServer {
		out.Server = serverName(server)
	}
	type key struct{ tenant, attribute, id string }
	byKind, kinds := map[counting.Tally]int{}, map[key][]counting.Tally{}
	s.ch.seen(server, q.Tenants.Names, q.StartFromNS, q.ToNS, func(r *Row) {
		e := &r.Exchange
		if e.EndTimeNS == nil || e.EndedNS() < q.FromNS[0] || e.EndedNS() >= q.ToNS || !slices.Contains(q.Statuses, e.Status) {
			return
		}
		for _, kind := range kindsOf(&q, e) {
			this := key{e.TenantID, kind.Attribute, e.ExecutionID}
			if slices.Contains(kinds[this], kind) {
				continue
			}
			if kinds[this] = append(kinds[this], kind); len(kinds[this]) == 2 && !slices.Contains(out.Inexact, e.TenantID) {
				out.Inexact = append(out.Inexact, e.TenantID)
			}
			at, known := byKind[kind]
			if !known {
				at = len(out.Tallies)
				byKind[kind], out.Tallies = at, append(out.Tallies, kind)
			}
			t := &out.Tallies[at]
			if t.Observed++; t.Observed == 1 || cmp.Or(cmp.Compare(e.EndedNS(), t.NewestEndedNS), cmp.Compare(e.StartTimeNS, t.NewestStartNS)) > 0 {
				t.NewestEndedNS, t.NewestStartNS = e.EndedNS(), e.StartTimeNS
			}
		}
	})
	if n := len(out.Tallies); n > q.Limit || s.ch.MostTallies > 0 && n > s.ch.MostTallies {
		return counting.Tallies{}, source.ErrTooMuch
	}
	return out, nil
}

// kindsOf returns the kinds of an exchange: one for each attribute, or one.
func kindsOf(q *counting.TallyQuery, e *rules.Exchange) []counting.Tally {
	wanted := func(asked bool, name string) string {
		if asked {
			return name
		}
		return ""
	}
	kind := counting.Tally{
		TenantID: e.TenantID, Status: e.Status, Environment: wanted(q.Environment, e.Environment), Application: wanted(q.Application, e.Application),
		Route: wanted(q.Route, e.Route), ErrorType: wanted(q.ErrorType, e.ErrorType),
	}
	for _, ns := range q.FromNS {
		if e.EndedNS() >= ns {
			kind.FromNS = ns
		}
	}
	for _, ns := range q.LeastNS {
		if e.DurationNS >= ns {
			kind.LeastNS = ns
		}
	}
	if len(q.Attributes) == 0 {
		return []counting.Tally{kind}
	}
	kinds := make([]counting.Tally, len(q.Attributes))
	for i, name := range q.Attributes {
		kinds[i] = kind
		kinds[i].Attribute, kinds[i].Group = name, rules.AttributeGroup(e.Attributes[name])
	}
	return kinds
}
