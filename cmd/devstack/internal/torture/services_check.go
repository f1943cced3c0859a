//go:build unix

package torture

import "slices"

// aResolution is the reason of a notification that says that an alert is resolved.
const aResolution = "RESOLVED"

// checkServices tells alert by alert whether each service knows of it, by the key that the service goes by: no alert
// missing, none that there is not, what is resolved closed after it was opened, and one issue each at Jira.
func (w *world) checkServices(report *Report, t *tables) {
	if w.options.Form != Receivers {
		return
	}
	type place struct{ hook, alertID string }
	came := map[place][]request{}
	for _, r := range w.receiver.requests() {
		if r.accepted && isService(r.hook) {
			key := place{r.hook, r.alertID}
			came[key] = append(came[key], r)
		}
	}
	lives, sent := map[string]*life{}, map[place][]notification{}
	for _, l := range w.truth.lives {
		lives[l.id] = l
	}
	for _, n := range t.notifications {
		key := place{n.Hook, n.AlertID}
		sent[key] = append(sent[key], n)
	}
	report.Through = map[string]int{}
	for _, a := range t.alerts {
		if lives[a.RuleID] == nil {
			continue
		}
		for _, m := range lives[a.RuleID].messages(&a) {
			if !isService(m.hook) || m.reason == aResolution {
				continue
			}
			key := place{m.hook, a.ID}
			k := known{hook: m.hook, alert: &a, came: came[key], overlapped: slices.ContainsFunc(sent[key], func(n notification) bool { return overlapped(t.attempts[n.ID]) })}
			k.check(report)
			if m.hook == jiraIssues {
				k.checkIssues(report, w.receiver.jira.about(a.ID))
			}
			report.Through[m.hook]++
			delete(came, key)
		}
	}
	for key, requests := range came {
		report.find(wrongMessage, "%s knows of an alert %q that there is not, by %d messages", key.hook, key.alertID, len(requests))
	}
}

// known is what a service knows of an alert: what it took, in the order in which it came.
type known struct {
	hook  string
	alert *alert
	came  []request
	// overlapped says that an attempt at one of the messages began while the outcome of another was not stored.
	overlapped bool
}

func (k *known) check(report *Report) {
	opened := slices.IndexFunc(k.came, func(r request) bool { return !r.closes })
	closed := slices.IndexFunc(k.came, func(r request) bool { return r.closes })
	resolved := k.alert.About == aGroup && k.alert.State == aResolution
	if opened < 0 || resolved && closed < 0 {
		report.find(neverReceived, "%s, alert %s, %s: opened by none of %d messages, or not closed", k.hook, k.alert.ID, k.alert.State, len(k.came))
		return
	}
	if !resolved && closed >= 0 || closed >= 0 && closed < opened {
		report.find(wrongMessage, "%s, alert %s, %s: closed by the %d. message, opened by the %d.", k.hook, k.alert.ID, k.alert.State, closed+1, opened+1)
	}
	if resolved && !k.came[len(k.came)-1].closes && !k.overlapped {
		report.find(repeatedOutside, "%s, alert %s: opened again after it was closed", k.hook, k.alert.ID)
	}
}

// checkIssues holds an alert to one issue, which is done when the alert is resolved. Two there may be when a sender was
// stopped between its search and the issue, and another one took over meanwhile.
func (k *known) checkIssues(report *Report, issues []issue) {
	if len(issues) > 1 {
		if report.IssuesTwice++; !k.overlapped {
			report.find(repeatedOutside, "%d issues of alert %s", len(issues), k.alert.ID)
		}
	}
	resolved := k.alert.About == aGroup && k.alert.State == aResolution
	if !slices.ContainsFunc(issues, func(i issue) bool { return i.done == resolved }) {
		report.find(wrongMessage, "%d issues of alert %s, %s, are done: %v", len(issues), k.alert.ID, k.alert.State, !resolved)
	}
}

// overlapped says whether one attempt began before the outcome of the one before was stored.
func overlapped(attempts []attempt) bool {
	for i := range len(attempts) - 1 {
		if attempts[i].Verdict == "" || !attempts[i].StoredAt.Before(attempts[i+1].StartedAt) {
			return true
		}
	}
	return false
}
