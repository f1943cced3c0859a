//go:build unix

package torture

import (
	"slices"
	"time"
)

// checkHealth checks that at most one alert about each rule, and about the source, is open at a
// time, and none at the end.
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

// checkApart checks that of alerts, in the order in which they fired, each ended before the next
// one began.
func (w *world) checkApart(report *Report, alerts []alert) {
	for i := 1; i < len(alerts); i++ {
		if before := alerts[i-1].ResolvedAt; before == nil || before.After(alerts[i].FiredAt) {
			report.find(overlapping, "alert %s fired while alert %s was open", alerts[i].ID, alerts[i-1].ID)
		}
	}
}

// touchedDuring reports whether the rule was edited between two instants, or shortly before or
// after.
func (l *life) touchedDuring(from, to time.Time) bool {
	const about = int64(time.Second)
	return slices.ContainsFunc(l.touched, func(s span) bool {
		return s.fromNS-about <= to.UnixNano() && s.toNS+about >= from.UnixNano()
	})
}
