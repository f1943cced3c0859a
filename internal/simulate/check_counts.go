package simulate

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/evaluator/window"
	"tocsin/internal/simulate/model"
	"tocsin/notify"
	"tocsin/rules"
)

// asked is a question about windows that a process asked: where these end, and when it was
// answered, in nanoseconds since the Unix epoch.
type asked struct {
	toNS, atNS int64
	// absent says that the windows were those of rules on absence.
	absent bool
}

// window reports whether the rule counts in a window, absent whether it raises where that
// holds too few. No edit changes that.
func (r *ruleTruth) window() bool { return r.present().def.FireMode != rules.PerExchange }
func (r *ruleTruth) absent() bool { return r.present().def.FireMode == rules.AbsentInWindow }

// held returns how many exchanges a window held that ended at an instant: at least what
// every server showed before it was asked about first, at most what any of them showed when it
// was asked about last. What was written at the instant of a question may have come after it.
func (t *truth) held(r *ruleTruth, group string, questions []asked) (least, most int64) {
	first, last := questions[0], questions[len(questions)-1]
	e := r.present()
	from := max(last.toNS-int64(e.def.WindowSeconds)*int64(time.Second), e.armedNS)
	for _, x := range t.exchanges {
		if x.tenant != r.tenant || x.endNS < from || x.endNS >= last.toNS || groupOf(&e.def, x) != group || !matches(&e.def, x) {
			continue
		}
		// What took longer than an hour may count, and need not.
		if x.visibleNS < first.atNS && x.endNS-x.startNS <= time.Hour.Nanoseconds() {
			least++
		}
		if x.seenNS <= last.atNS {
			most++
		}
	}
	return least, most
}

func groupOf(d *rules.Definition, e *exchange) string {
	switch d.GroupBy { //nolint:exhaustive // no rule groups by anything else
	case rules.GroupByApplication:
		return e.app
	case rules.GroupByAttribute:
		if e.customer == longCustomer() {
			return fmt.Sprintf("sha-256 of a long value: %x", sha256.Sum256([]byte(e.customer)))
		}
		return e.customer
	}
	return ""
}

// stepped holds that each step which a commit made is one that the servers' answers allow, and
// follows the states of alerts. Questions are those that the committing process asked since it
// read the open alerts; before are the alerts as they were.
func (t *truth) stepped(p *process, b *evaluator.Batch, made []uuid.UUID, before map[uuid.UUID]model.Alert) {
	for i := range b.Changes {
		c := &b.Changes[i]
		a := &c.Instance
		r := t.rules[a.RuleID]
		if !slices.Contains(made, a.ID) || r == nil {
			continue
		}
		questions := slices.DeleteFunc(slices.Clone(p.asked), func(q asked) bool { return q.absent != r.absent() })
		if len(questions) == 0 {
			t.w.violate("P1", "%s makes the step %s of alert %s, and asked no server", p.name, c.Step, short(a.ID))
			continue
		}
		t.w.stats.Steps++
		if r.present().def.WindowSeconds < 60 {
			t.w.stats.Brief++
		}
		switch r.present().def.FireMode { //nolint:exhaustive // the others are measured
		case rules.AbsentInWindow:
			t.checkAbsence(b, c, r, questions, before[a.ID])
		case rules.CountInWindow:
			t.checkStep(c, r, questions, before[a.ID])
		default:
			t.w.stats.Measured++
			t.checkMeasured(c, r, questions, before[a.ID])
		}
		t.follow(c)
	}
}

func (t *truth) checkStep(c *window.Change, r *ruleTruth, questions []asked, was model.Alert) {
	a, e := &c.Instance, r.present()
	least, most := t.held(r, a.Count.Group, questions)
	threshold := int64(e.def.Threshold)
	switch {
	case !c.Step.Lessens() && (most < threshold || a.Count.Observed < threshold || a.Count.Observed > most):
		t.w.violate("P1", "rule %s makes the step %s for %q by a count of %d, and no server shows more than %d of %d", short(r.id), c.Step, a.Count.Group, a.Count.Observed, most, threshold)
	case c.Step.Lessens() && least >= threshold && !rearmed(c.Step, &was, e.armedNS):
		t.w.violate("P4", "rule %s makes the step %s for %q, although every server shows %d of %d", short(r.id), c.Step, a.Count.Group, least, threshold)
	case c.Step == alerts.Clear && was.FiredAt.UnixNano() < e.armedNS && questions[0].toNS-int64(e.def.WindowSeconds)*int64(time.Second) < e.armedNS:
		t.w.violate("P4", "rule %s resolves alert %s, which is older than its condition, by a window that began before that", short(r.id), short(a.ID))
	}
}

// rearmed reports whether a step ends what began under another condition: a hold, or the wait of a
// pending alert.
func rearmed(step alerts.Step, was *model.Alert, armedNS int64) bool {
	return step == alerts.Release && was.ResolvedAt.UnixNano() < armedNS || step == alerts.Drop && was.FiredAt.UnixNano() < armedNS
}

// checkMeasured holds that the share or the percentile of a step is made up of exchanges that a
// server showed, of one that it was asked about, and that the step follows from it.
func (t *truth) checkMeasured(c *window.Change, r *ruleTruth, questions []asked, was model.Alert) {
	a, e := &c.Instance, r.present()
	shown := slices.ContainsFunc(questions, func(q asked) bool { return t.showed(r, a.Count, q.toNS, questions) })
	fires := reaches(&e.def, a.Count.Observed, a.Count.Volume)
	switch {
	case !shown:
		t.w.violate("P1", "rule %s makes the step %s for %q by %d of %d, which no server shows", short(r.id), c.Step, a.Count.Group, a.Count.Observed, a.Count.Volume)
	case !c.Step.Lessens() && !fires:
		t.w.violate("P1", "rule %s makes the step %s for %q by %d of %d, which is too few", short(r.id), c.Step, a.Count.Group, a.Count.Observed, a.Count.Volume)
	case c.Step.Lessens() && fires && !rearmed(c.Step, &was, e.armedNS):
		t.w.violate("P4", "rule %s makes the step %s for %q, although %d of %d are enough", short(r.id), c.Step, a.Count.Group, a.Count.Observed, a.Count.Volume)
	case c.Step == alerts.Clear && was.FiredAt.UnixNano() < e.armedNS && questions[0].toNS-int64(e.def.WindowSeconds)*int64(time.Second) < e.armedNS:
		t.w.violate("P4", "rule %s resolves alert %s, which is older than its condition, by a window that began before that", short(r.id), short(a.ID))
	}
}

// reaches is the checker's own account of what a share or a percentile has to reach.
func reaches(d *rules.Definition, observed, volume int64) bool {
	if volume < int64(d.MinVolume) {
		return false
	}
	if d.FireMode == rules.RatioInWindow {
		return 100*float64(observed) >= d.Percent*float64(volume)
	}
	// As many of a hundred last no longer than the percentile.
	return 100*(volume-observed) < int64(d.Percentile)*volume
}

// counts reports whether a rule on a share or a percentile counts an exchange, and whether it
// compares with it.
func counts(d *rules.Definition, x *exchange) (observed, compared bool) {
	if d.FireMode == rules.RatioInWindow {
		all := rules.Definition{Scope: d.Scope, Filter: rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}}}
		return matches(d, x), matches(&all, x)
	}
	return matches(d, x) && x.endNS-x.startNS >= d.DurationMS*1e6, matches(d, x)
}

// showed reports whether a window that ended at an instant held what a count says: no fewer
// than every server showed before it was asked about first, and no more than any of them showed when
// it was asked about last.
func (t *truth) showed(r *ruleTruth, count *alerts.Count, toNS int64, questions []asked) bool {
	var least, most, leastVolume, mostVolume int64
	e := r.present()
	from := max(toNS-int64(e.def.WindowSeconds)*int64(time.Second), e.armedNS)
	for _, x := range t.exchanges {
		if x.tenant != r.tenant || x.endNS < from || x.endNS >= toNS || groupOf(&e.def, x) != count.Group {
			continue
		}
		observed, compared := counts(&e.def, x)
		certain, possible := x.visibleNS < questions[0].atNS && x.endNS-x.startNS <= time.Hour.Nanoseconds(), x.seenNS <= questions[len(questions)-1].atNS
		for _, part := range []struct {
			is, shown bool
			sum       *int64
		}{{observed, certain, &least}, {observed, possible, &most}, {compared, certain, &leastVolume}, {compared, possible, &mostVolume}} {
			if part.is && part.shown {
				*part.sum++
			}
		}
	}
	return least <= count.Observed && count.Observed <= most && leastVolume <= count.Volume && count.Volume <= mostVolume
}

// follow notes what a step makes of an alert.
func (t *truth) follow(c *window.Change) {
	to := alerts.Firing
	switch c.Step { //nolint:exhaustive // the others leave the state as it is, or fire
	case alerts.Wait:
		to = alerts.Pending
	case alerts.Clear:
		to = alerts.Resolved
	case alerts.Release:
		return
	}
	known := t.alerts[c.Instance.ID]
	if known == nil {
		known = &alertTruth{}
		t.alerts[c.Instance.ID] = known
	}
	known.state, known.dropped = string(to), c.Step == alerts.Drop
	known.cleared = known.cleared || c.Step == alerts.Clear
	switch c.Step { //nolint:exhaustive // the others do not say that it fires
	case alerts.Raise, alerts.Fire:
		known.due = append(known.due, notify.ReasonFired)
	case alerts.Remind:
		known.reminders, known.due = known.reminders+1, append(known.due, notify.ReasonReminder)
	}
}

// checkWindow holds P1, P2 and P4 for an alert of a window rule: it is the only one of its
// group that is open or held, and each time that it had to, it notified every webhook once.
func (w *world) checkWindow(a *model.Alert, known *alertTruth) {
	t := &w.truth
	r := t.rules[a.RuleID]
	if r == nil {
		return
	}
	list := w.db.OpenOrHeld(a.RuleID)
	for i := range list {
		for j := range list[:i] {
			if list[i].Group == list[j].Group {
				w.violate("P1", "rule %s has two alerts of %q that are open or held: %s and %s", short(r.id), list[i].Group, short(list[j].ID), short(list[i].ID))
			}
		}
	}
	if string(a.State) != known.state {
		w.violate("P4", "alert %s is %s, and what people and counts did leaves it %s", short(a.ID), a.State, known.state)
	}
	w.checkWindowNotified(a, known, &r.present().def)
}

func (w *world) checkWindowNotified(a *model.Alert, known *alertTruth, d *rules.Definition) {
	if ended := known.cleared && !w.truth.inFailover; ended && !known.endNoted && d.NotifyOnResolve {
		w.expectEnd(a.ID)
	} else if ended && !known.endNoted {
		w.expectEvent(a.ID, notify.ReasonResolved)
	}
	known.endNoted = known.cleared
	got := map[place]int{}
	for _, n := range w.db.NotificationsOf(a.ID) {
		got[place{n.WebhookID, n.Reason}]++
	}
	webhooks := w.routedTo(a, known, d, len(known.due) > 0)
	known.expect(webhooks, got, w.truth.inFailover)
	for at, n := range got {
		if want := known.notified[at]; n != want && (at.reason == notify.ReasonFired || at.reason == notify.ReasonReminder) { // other reasons are for operators
			w.violate("P2", "alert %s, which is %s, has %d notifications %s for webhook %s, want %d", short(a.ID), a.State, n, at.reason, short(at.webhook), want)
		}
	}
	for at, want := range known.notified {
		if want > 0 && got[at] == 0 {
			w.violate("P2", "alert %s, which is %s, has no notification %s for webhook %s, want %d", short(a.ID), a.State, at.reason, short(at.webhook), want)
		}
	}
	if !w.truth.inFailover && a.Reminders != known.reminders {
		w.violate("P2", "alert %s reminded %d times, want %d", short(a.ID), a.Reminders, known.reminders)
	}
}

// place is a kind of message for a webhook.
type place struct {
	webhook uuid.UUID
	reason  notify.Reason
}

// expect notes which messages the steps of an alert require for the webhooks that its rule or its route names now. What a failover
// left is what it left.
func (a *alertTruth) expect(webhooks []uuid.UUID, got map[place]int, inFailover bool) {
	if a.notified == nil {
		a.notified = map[place]int{}
	}
	for _, reason := range a.due {
		for _, webhook := range webhooks {
			a.notified[place{webhook, reason}]++
		}
	}
	if a.due = nil; inFailover {
		a.notified = maps.Clone(got)
		maps.DeleteFunc(a.notified, func(at place, _ int) bool {
			return at.reason != notify.ReasonFired && at.reason != notify.ReasonReminder
		})
	}
}

// windowRules returns the window rules that evaluate.
func (w *world) windowRules() (list []*ruleTruth) {
	for _, id := range w.truth.order {
		if r := w.truth.rules[id]; r.window() && r.present().def.Enabled {
			list = append(list, r)
		}
	}
	return list
}

// checkQuiet holds, when nothing has happened for longer than any window, that no alert of a
// window rule is open, but for absences, and no group held.
func (w *world) checkQuiet() {
	for _, r := range w.windowRules() {
		if r.absent() {
			continue // it fires
		}
		for _, a := range w.db.OpenOrHeld(r.id) {
			w.violate("P4", "alert %s of rule %s for %q is %s, held %v, long after its window became empty", short(a.ID), short(r.id), a.Group, a.State, a.Held)
		}
	}
}

// appOf returns an application in the scope of a rule.
func appOf(d *rules.Definition) string {
	if len(d.Scope.Applications) == 0 || d.Scope.Applications[0] == "bill*" {
		return "billing"
	}
	return d.Scope.Applications[0]
}
