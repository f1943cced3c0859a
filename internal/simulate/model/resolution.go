package model

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/resolution"
	"tocsin/notify"
	"tocsin/rules"
)

// resolving is the row of a rule whose alerts resolve by age or evidence: when a replica last took the
// rule, and how far which evidence was searched for.
type resolving struct {
	at       time.Time
	searched *resolution.Searched
	by       rules.Resolution
}

// Resolution is the store of the resolver. Notified is called after each commit with the number of
// messages that are due for each webhook; nil means nobody is.
type Resolution struct {
	DB       *Postgres
	Notified func(due map[uuid.UUID]int)
}

// evidenceOf returns a resolution without its age.
func evidenceOf(r rules.Resolution) rules.Resolution {
	return rules.Resolution{Evidence: r.Evidence, Attribute: r.Attribute}
}

// Take takes the rule that was taken the longest ago, if that is at least every ago.
func (s Resolution) Take(_ context.Context, every time.Duration) (taken *resolution.Rule, err error) {
	db := s.DB
	err = db.tx(func() error {
		now := db.now()
		id, at := uuid.Nil, time.Time{}
		for _, each := range byID(&db.rules) {
			r := db.rules.rows[each]
			row := db.resolving.rows[each]
			due := !row.at.After(now.Add(-every)) || row.at.After(now.Add(every))
			if r.Resolution != nil && !r.Deleted && due && (id == uuid.Nil || row.at.Before(at)) {
				id, at = each, row.at
			}
		}
		if id == uuid.Nil {
			return nil
		}
		r, row := db.rules.rows[id], db.resolving.rows[id]
		row.at = now
		db.resolving.put(id, row)
		taken = &resolution.Rule{
			ID: id, TenantID: r.TenantID, Resolution: *r.Resolution, LookBack: time.Duration(r.LookBackSeconds) * time.Second, TakenAt: now,
		}
		if row.searched != nil && (row.by == evidenceOf(*r.Resolution) || !db.has(MarkOfEvidence)) {
			taken.Searched = new(*row.searched)
		}
		return nil
	})
	return taken, err
}

// MarkSearched stores how far evidence was searched for.
func (s Resolution) MarkSearched(_ context.Context, r *resolution.Rule, searched resolution.Searched) error {
	return s.DB.tx(func() error {
		row := s.DB.resolving.rows[r.ID]
		row.searched, row.by = &searched, evidenceOf(r.Resolution)
		s.DB.resolving.put(r.ID, row)
		return nil
	})
}

// openAlerts returns the open alerts of a rule about exchanges, newest first.
func (db *Postgres) openAlerts(rule uuid.UUID) (list []Alert) {
	for _, id := range byID(&db.alerts) {
		if a := db.alerts.rows[id]; a.RuleID == rule && a.Key != "" && isOpen(a.State) {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b Alert) int {
		if c := b.FiredAt.Compare(a.FiredAt); c != 0 {
			return c
		}
		return compareIDs(b.ID, a.ID)
	})
	return list
}

func isOpen(s alerts.State) bool { return s == alerts.Firing || s == alerts.Acknowledged }

// Open returns open alerts of a rule, newest first, that come after one of them.
func (s Resolution) Open(_ context.Context, r *resolution.Rule, after *resolution.Open, most int) (list []resolution.Open, err error) {
	for _, a := range s.DB.openAlerts(r.ID) {
		if after != nil && (a.FiredAt.After(after.FiredAt) || a.FiredAt.Equal(after.FiredAt) && compareIDs(a.ID, after.ID) >= 0) {
			continue
		}
		e := a.Exchange
		open := resolution.Open{ID: a.ID, FiredAt: a.FiredAt, EndedNS: e.StartTimeNS, ExecutionID: a.Key, Key: resolution.Key{
			Environment: e.Environment, Application: e.Application, Route: e.Route, Value: e.CorrelationID,
		}}
		if e.EndTimeNS != nil {
			open.EndedNS = max(*e.EndTimeNS, e.StartTimeNS)
		}
		if r.Resolution.Attribute != "" {
			open.Key.Value = e.Attributes[r.Resolution.Attribute]
		}
		if list = append(list, open); len(list) == most {
			break
		}
	}
	return list, nil
}

// ResolveAged resolves at most most alerts that are older than their rule now allows, oldest first.
func (s Resolution) ResolveAged(_ context.Context, r *resolution.Rule, most int) (int, error) {
	return s.resolve(r, func(rule *Rule, now time.Time) (list []resolved) {
		if rule.Resolution == nil || rule.Resolution.AfterSeconds == 0 {
			return nil
		}
		oldest := now.Add(-time.Duration(rule.Resolution.AfterSeconds) * time.Second)
		for _, a := range slices.Backward(s.DB.openAlerts(r.ID)) {
			if !a.FiredAt.After(oldest) && len(list) < most {
				list = append(list, resolved{a.ID, alerts.Resolution{Reason: alerts.ByAge}})
			}
		}
		return list
	})
}

// ResolveProven resolves those of the proven alerts that are still open, unless the rule was changed.
func (s Resolution) ResolveProven(_ context.Context, r *resolution.Rule, proofs []resolution.Proof) (int, error) {
	return s.resolve(r, func(rule *Rule, _ time.Time) (list []resolved) {
		if same := rule.Resolution != nil && reflect.DeepEqual(*rule.Resolution, r.Resolution); !same && s.DB.has(EditVoidsProof) {
			return nil
		}
		for _, p := range proofs {
			if a := s.DB.alerts.rows[p.AlertID]; a.Key != "" && (isOpen(a.State) || a.State == alerts.Resolved && !s.DB.has(ResolvedOnce)) {
				list = append(list, resolved{p.AlertID, p.Evidence})
			}
		}
		return list
	})
}

type resolved struct {
	alert uuid.UUID
	by    alerts.Resolution
}

// resolve resolves alerts of a rule and writes their messages, in one transaction.
func (s Resolution) resolve(r *resolution.Rule, list func(rule *Rule, now time.Time) []resolved) (n int, err error) {
	db, due := s.DB, map[uuid.UUID]int{}
	err = db.tx(func() error {
		now := db.now()
		rule, there := db.rules.get(r.ID)
		if !there || rule.Deleted {
			return nil
		}
		for _, each := range list(&rule, now) {
			a := db.alerts.rows[each.alert]
			a.State, a.ResolvedAt, a.Resolution = alerts.Resolved, now, &each.by
			db.putAlert(a)
			if n++; !rule.NotifyOnResolve {
				continue
			}
			if err := db.follow(&a, db.recipients(a.ID), follower{reason: notify.ReasonResolved}, now, due); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if s.Notified != nil && len(due) > 0 {
		s.Notified(due)
	}
	return n, nil
}

// Now returns the clock of the server that answers.
func (s *Server) Now(context.Context) (int64, error) { return s.ch.Clock(s.pick()), nil }

// LastCompleted returns, for each key with one of the values, the completed exchange that began last.
func (s *Server) LastCompleted(_ context.Context, q resolution.Query) ([]resolution.Completed, error) {
	last := map[resolution.Key]int{}
	var list []resolution.Completed
	s.ch.seen(s.pick(), []string{q.TenantID}, q.FromNS, q.ToNS, func(r *Row) {
		key := resolution.Key{Environment: r.Environment, Application: r.Application, Route: r.Route, Value: r.CorrelationID}
		if q.Attribute != "" {
			key.Value = r.Attributes[q.Attribute]
		}
		if r.Status != rules.Completed || !slices.Contains(q.Values, key.Value) || len(q.Routes) > 0 && !slices.Contains(q.Routes, key.Route) {
			return
		}
		at, known := last[key]
		if !known {
			at, list = len(list), append(list, resolution.Completed{})
			last[key] = at
		}
		// Rows come in the order of their starts.
		list[at] = resolution.Completed{Key: key, Position: r.Position()}
	})
	return list, nil
}
