//go:build unix

package torture

import (
	"fmt"
	"slices"
	"time"
)

// The counting rule counts failures by environment, with so low a threshold that no fault keeps the count below it while
// exchanges come. So each environment has exactly one alert from the time when its count reaches the threshold until
// the exchanges end, however often evaluation is interrupted. Then the window slides past them, and a straggler may
// lift a count once more: what fires after the end of the exchanges is held to the messages and the states alone.
const (
	// enoughToCount is how many exchanges there must be for that.
	enoughToCount = 2000
	windowSeconds = 10
)

func environments() []string { return []string{"production", "staging", "test"} }

func countingRule(o *Options) rule {
	perWindow := float64(o.Exchanges) * min(1, windowSeconds/o.Length.Seconds())
	return rule{
		// Failures are 12 in 100, those of the rarest environment a fifth of them; the threshold is a tenth of that.
		name: ruleCounting, hooks: []string{"b"}, intervalSeconds: 1, threshold: max(1, int(perWindow*0.12/5/10)), windowSeconds: windowSeconds,
	}
}

func (w *world) checkCounts(report *Report, t *tables) {
	end := w.began.Add(w.options.Length)
	for _, l := range w.truth.lives {
		if !l.rule.counts() {
			continue
		}
		fired := map[string][]alert{}
		for _, a := range t.alerts {
			if a.About != aGroup || a.RuleID != l.id {
				continue
			}
			report.Counts++
			fired[a.Group] = append(fired[a.Group], a)
			if a.State != "RESOLVED" {
				report.find(altered, "count alert %s of %s is %s, and nothing has come for long", a.ID, a.Group, a.State)
			}
		}
		for _, group := range environments() {
			first := 0
			for _, a := range fired[group] {
				if a.FiredAt.Before(end) {
					first++
				}
			}
			what := fmt.Sprintf("counts of %s: %d alerts while exchanges came", group, first)
			if first == 0 {
				report.find(missed, "%s", what)
			}
			if first > 1 {
				report.find(duplicated, "%s", what)
			}
			w.checkApart(report, fired[group])
		}
		for group := range fired {
			if !slices.Contains(environments(), group) {
				report.find(unexpected, "count alerts of the group %q", group)
			}
		}
	}
}

// checkHealth holds the alerts about each rule, and those about the source, to one at a time, and to none at the end.
func (w *world) checkHealth(report *Report, t *tables) {
	bySubject := map[string][]alert{}
	for _, a := range t.alerts {
		what := a.RuleID
		switch a.About {
		case theSource:
			what = string(theSource)
		case aRule:
		case anExchange, aGroup:
			continue
		}
		report.HealthAlerts++
		bySubject[what] = append(bySubject[what], a)
		if a.State != "RESOLVED" {
			report.find(altered, "alert %s says that %s still fails", a.ID, what)
		}
	}
	for _, alerts := range bySubject {
		w.checkApart(report, alerts)
	}
}

// checkApart makes sure that of alerts, in the order in which they fired, each ended before the next one began.
func (w *world) checkApart(report *Report, alerts []alert) {
	for i := 1; i < len(alerts); i++ {
		if before := alerts[i-1].ResolvedAt; before == nil || before.After(alerts[i].FiredAt) {
			report.find(overlapping, "alert %s fired while alert %s was open", alerts[i].ID, alerts[i-1].ID)
		}
	}
}

// touchedDuring says whether the rule was edited between two instants, or just about then.
func (l *life) touchedDuring(from, to time.Time) bool {
	const about = int64(time.Second)
	return slices.ContainsFunc(l.touched, func(s span) bool {
		return s.fromNS-about <= to.UnixNano() && s.toNS+about >= from.UnixNano()
	})
}
