package model

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/notify"
	"tocsin/rules"
)

// occupies reports whether an alert of a window rule is open, or holds its group back.
func (a *Alert) occupies() bool { return a.Window && (a.State != alerts.Resolved || a.Held) }

// OpenOrHeld returns the alerts of a window rule that are open or held, in order.
func (db *Postgres) OpenOrHeld(rule uuid.UUID) []Alert {
	ids, _ := db.openOrHeld.get(rule)
	list := make([]Alert, len(ids))
	for i, id := range ids {
		list[i] = db.alerts.rows[id]
	}
	return list
}

// putAlert writes an alert that has changed, keepAlert one of which that does not count.
func (db *Postgres) putAlert(a Alert) {
	a.Change = db.newChange()
	db.keepAlert(a)
}

func (db *Postgres) keepAlert(a Alert) {
	db.alerts.put(a.ID, a)
	db.index(&a, a.occupies())
}

// removeAlert deletes an alert.
func (db *Postgres) removeAlert(id uuid.UUID) {
	a := db.alerts.rows[id]
	db.alerts.remove(id)
	db.escalations.remove(id)
	db.snoozes.remove(id)
	db.index(&a, false)
}

// index keeps which alerts of a window rule are open or held.
func (db *Postgres) index(a *Alert, occupies bool) {
	if !a.Window {
		return
	}
	ids, _ := db.openOrHeld.get(a.RuleID)
	at, known := slices.BinarySearchFunc(ids, a.ID, compareIDs)
	switch {
	case occupies && !known:
		db.openOrHeld.put(a.RuleID, slices.Insert(slices.Clone(ids), at, a.ID))
	case !occupies && known:
		db.openOrHeld.put(a.RuleID, slices.Delete(slices.Clone(ids), at, at+1))
	}
}

// OpenAlerts returns the alerts of window rules that are open or held.
func (db *Postgres) OpenAlerts(_ context.Context, ruleIDs []uuid.UUID) ([]alerts.OpenAlert, error) {
	var open []alerts.OpenAlert
	for _, rule := range ruleIDs {
		for _, a := range db.OpenOrHeld(rule) {
			o := alerts.Open{State: a.State, Since: a.FiredAt, NotifiedAt: a.NotifiedAt, Reminders: a.Reminders, Held: a.Held, Snoozed: db.snoozes.has(a.ID)}
			if a.Held {
				o.Since = a.ResolvedAt
			}
			open = append(open, alerts.OpenAlert{
				ID: a.ID, RuleID: rule, Group: a.Group, NewestEndedNS: a.NewestEndedNS, NewestStartNS: a.StartNS, LeastNS: a.LeastNS, Routing: a.Routing, Open: o,
			})
		}
	}
	return open, nil
}

// applyChanges makes steps of window alerts, those first that end something. One whose alert
// is no longer in the state that it starts from is left out.
func (db *Postgres) applyChanges(changes []window.Change, now time.Time, done *evaluator.Committed) error {
	order := []alerts.Step{alerts.Drop, alerts.Release, alerts.Clear, alerts.Fire, alerts.Remind, alerts.Wait, alerts.Raise}
	made := map[uuid.UUID]bool{}
	for _, step := range order {
		for i := range changes {
			c := &changes[i]
			switch {
			case c.Step != step:
			case step == alerts.Wait || step == alerts.Raise:
				if made[c.Instance.ID] = db.raiseWindow(c, now); made[c.Instance.ID] {
					done.Inserted = append(done.Inserted, c.Instance.ID)
				}
			case db.stepWindow(c, now):
				made[c.Instance.ID] = true
				done.Changed = append(done.Changed, c.Instance.ID)
			}
		}
	}
	for i := range changes {
		if !made[changes[i].Instance.ID] {
			continue
		}
		if step := changes[i].Step; step == alerts.Fire || step == alerts.Raise {
			db.startEscalation(changes[i].Instance.ID)
		}
		for _, n := range changes[i].Notifications {
			generation := 0
			if n.Reason == notify.ReasonReminder {
				generation = db.alerts.rows[n.AlertID].Reminders - 1
			}
			if err := db.notify(Notification{
				ID: notify.ID(n.AlertID, n.WebhookID, n.Reason, generation), Generation: generation,
				AlertID: n.AlertID, RuleID: n.RuleID, WebhookID: n.WebhookID, TenantID: n.TenantID, Reason: n.Reason,
			}, now); err != nil {
				return err
			}
			id := notify.ID(n.AlertID, n.WebhookID, n.Reason, generation)
			a := db.alerts.rows[n.AlertID]
			if by, is := db.silencedAlert(&a, now); is {
				db.suppress(id, by, now)
				done.Suppressed++
				continue
			}
			held := db.quiet(id, now)
			if n.Reason == notify.ReasonReminder {
				db.expire(id, time.Duration(db.rules.rows[n.RuleID].ReNotifyMinutes)*time.Minute, now)
			}
			if !held {
				done.Notifications[n.WebhookID]++
			}
		}
		if err := db.notifyEnd(&changes[i], now, done); err != nil {
			return err
		}
	}
	return nil
}

// notifyEnd notifies each webhook that was notified of an alert of its end, if the rule wants that, also when the rule names others
// by now, or if the webhook chose that event.
func (db *Postgres) notifyEnd(c *window.Change, now time.Time, done *evaluator.Committed) error {
	rule, there := db.rules.get(c.Instance.RuleID)
	if c.Step != alerts.Clear || !there {
		return nil
	}
	a := db.alerts.rows[c.Instance.ID]
	if !rule.NotifyOnResolve {
		return db.notifyEvent(&a, notify.ReasonResolved, now, done.Notifications)
	}
	return db.follow(&a, db.recipients(c.Instance.ID), follower{reason: notify.ReasonResolved}, now, done.Notifications)
}

// raiseWindow opens an alert, unless one of its group is open or held.
func (db *Postgres) raiseWindow(c *window.Change, now time.Time) bool {
	a := &c.Instance
	for _, other := range db.OpenOrHeld(a.RuleID) {
		if other.Group == a.Count.Group && db.has(WindowOnce) {
			return false
		}
	}
	if db.alerts.has(a.ID) {
		return false
	}
	row := Alert{
		ID: a.ID, RuleID: a.RuleID, TenantID: a.TenantID, RuleVersion: a.RuleVersion, Window: true, Group: a.Count.Group, State: alerts.Pending, FiredAt: now,
		Severity: a.Severity,
	}
	if c.Step == alerts.Raise {
		row.State, row.NotifiedAt = alerts.Firing, now
	}
	row.about(a)
	db.putAlert(row)
	return true
}

// about takes over what an alert says of its window.
func (a *Alert) about(i *alerts.Instance) {
	a.Observed, a.StartNS, a.NewestEndedNS = i.Count.Observed, i.Exchange.StartTimeNS, i.Exchange.EndedNS()
	a.LeastNS = i.Count.DurationMS * 1e6
	if a.Routing == nil {
		a.Routing = i.Routing
	}
}

// stepWindow makes a step of an alert that is in the state that the step starts from.
func (db *Postgres) stepWindow(c *window.Change, now time.Time) bool {
	a, there := db.alerts.get(c.Instance.ID)
	from := map[alerts.Step]bool{
		alerts.Drop: a.State == alerts.Pending, alerts.Release: a.Held, alerts.Fire: a.State == alerts.Pending, alerts.Remind: a.State == alerts.Firing,
		alerts.Clear: a.State == alerts.Firing || a.State == alerts.Acknowledged,
	}
	if !there || !from[c.Step] && db.has(StepFrom) || c.Step == alerts.Remind && db.snoozes.has(a.ID) {
		return false
	}
	switch c.Step { //nolint:exhaustive // the others open an alert
	case alerts.Drop:
		db.removeAlert(a.ID)
		return true
	case alerts.Release:
		a.Held = false
		db.keepAlert(a) // what a person did can be undone as before
		return true
	case alerts.Clear:
		a.State, a.ResolvedAt, a.Observed = alerts.Resolved, now, c.Instance.Count.Observed
	case alerts.Fire:
		a.State, a.FiredAt, a.NotifiedAt = alerts.Firing, now, now
		a.about(&c.Instance)
	case alerts.Remind:
		a.NotifiedAt = now
		a.Reminders++
		a.about(&c.Instance)
	}
	db.putAlert(a)
	return true
}

// dropPending removes the alerts of a rule of which nobody was notified.
func (db *Postgres) dropPending(rule uuid.UUID) {
	for _, a := range db.OpenOrHeld(rule) {
		if a.State == alerts.Pending {
			db.removeAlert(a.ID)
		}
	}
}

// CountWindows counts what each window holds, as one server shows it.
func (s *Server) CountWindows(_ context.Context, windows []counting.Query) (counting.Counted, error) {
	server := s.pick()
	out := make([][]counting.Group, len(windows))
	for i := range windows {
		q := &windows[i]
		byName := map[string]*counting.Group{}
		var names []string
		s.within(server, q, func(e *rules.Exchange, observed, compared bool) {
			name := q.Grouping.Of(e)
			g := byName[name]
			if g == nil {
				g = &counting.Group{Group: name}
				byName[name], names = g, append(names, name)
			}
			if compared {
				g.Volume++
			}
			if !observed {
				return
			}
			if g.Observed == 0 || later(e, g) {
				g.NewestEndedNS, g.NewestStartNS = e.EndedNS(), e.StartTimeNS
			}
			g.Observed++
		})
		out[i] = chosen(q, names, byName)
	}
	return counting.Counted{Server: serverName(server), Groups: out}, nil
}

// chosen returns the groups that a window wants: those with an open alert first, then the largest of those that
// reach its bound.
func chosen(q *counting.Query, names []string, byName map[string]*counting.Group) []counting.Group {
	open := func(g *counting.Group) int {
		if q.Bound != nil && slices.Contains(q.Open, cursor.Key(g.Group)) {
			return 1
		}
		return 0
	}
	var list []counting.Group
	for _, name := range names {
		g := byName[name]
		if q.Bound == nil || open(g) == 1 || q.Bound.Reached(alerts.Value{Observed: g.Observed, Volume: g.Volume}) {
			list = append(list, *g)
		}
	}
	slices.SortFunc(list, func(a, b counting.Group) int {
		return cmp.Or(cmp.Compare(open(&b), open(&a)), cmp.Compare(b.Observed, a.Observed), strings.Compare(a.Group, b.Group))
	})
	return list[:min(len(list), q.Limit)]
}

// Arrivals counts what ended in each bucket, as one server shows it.
func (s *Server) Arrivals(_ context.Context, q watch.ArrivalsQuery) (watch.Arrivals, error) {
	server := s.pick()
	out := watch.Arrivals{Server: serverName(server), Counts: map[int64]int64{}, Before: map[int64]int64{}}
	type once struct {
		tenant, id string
		bucket     int64
		before     bool
	}
	counted := map[once]bool{}
	s.ch.seen(server, q.Tenants.Names, q.StartFromNS, q.ToNS, func(r *Row) {
		e := &r.Exchange
		if e.EndTimeNS == nil || e.Status == rules.Running || e.EndedNS() < q.FromNS || e.EndedNS() >= q.ToNS || e.EndedNS()-e.StartTimeNS > q.LongestNS {
			return
		}
		this := once{e.TenantID, e.ExecutionID, e.EndedNS() - e.EndedNS()%q.WidthNS, false}
		if !counted[this] {
			counted[this] = true
			out.Counts[this.bucket]++
		}
		if this.before = true; e.EndedNS() < q.CutNS && !counted[this] {
			counted[this] = true
			out.Before[this.bucket]++
		}
	})
	return out, nil
}

// later reports whether an exchange is newer than what is known of a group.
func later(e *rules.Exchange, g *counting.Group) bool {
	return cmp.Or(cmp.Compare(e.EndedNS(), g.NewestEndedNS), cmp.Compare(e.StartTimeNS, g.NewestStartNS)) > 0
}

// within yields each exchange that ended within a window and is observed, or compared with what
// is, once.
func (s *Server) within(server int, q *counting.Query, yield func(e *rules.Exchange, observed, compared bool)) {
	matcher, err := rules.Compile(q.Scope, q.Filter)
	if err != nil {
		return
	}
	scope, err := rules.Compile(q.Scope, rules.Filter{Statuses: q.Statuses()})
	if err != nil {
		return
	}
	yielded := map[string]bool{}
	s.ch.seen(server, []string{q.TenantID}, q.StartFromNS, q.ToNS, func(r *Row) {
		e := &r.Exchange
		if e.EndTimeNS == nil || e.EndedNS() < q.FromNS || e.EndedNS() >= q.ToNS || yielded[e.ExecutionID] {
			return
		}
		observed, compared := matcher.Match(e), false
		switch q.Mode { //nolint:exhaustive // counts compare with nothing
		case rules.RatioInWindow:
			compared = scope.Match(e)
		case rules.DurationInWindow:
			compared, observed = observed, observed && e.DurationNS >= q.LeastNS
		}
		if observed || compared {
			yielded[e.ExecutionID] = true
			yield(e, observed, compared)
		}
	})
}

// Newest returns the newest exchange of each group, if the server that answers shows it.
func (s *Server) Newest(_ context.Context, windows []counting.NewestQuery) ([][]rules.Exchange, error) {
	server := s.pick()
	out := make([][]rules.Exchange, len(windows))
	for i := range windows {
		q := &windows[i]
		for _, group := range q.Groups {
			newest := rules.Exchange{}
			s.within(server, &q.Query, func(e *rules.Exchange, observed, _ bool) {
				if observed && q.Grouping.Of(e) == group.Group && e.EndedNS() == group.NewestEndedNS && e.StartTimeNS == group.NewestStartNS {
					newest = *e
				}
			})
			out[i] = append(out[i], newest)
		}
	}
	return out, nil
}
