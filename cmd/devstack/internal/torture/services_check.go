//go:build unix

package torture

import "slices"

// checkServices checks alert by alert what each service knows of it, by the service's own key: no
// alert is missing, none is invented, what is resolved was closed after it was opened, and Jira has
// one issue each.
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
		wanted := map[string][]string{}
		for _, m := range w.messages(lives[a.RuleID], &a) {
			if isService(m.hook) {
				wanted[m.hook] = append(wanted[m.hook], m.reason)
			}
		}
		for hook, events := range wanted {
			key := place{hook, a.ID}
			k := known{hook: hook, alert: &a, events: events, came: came[key], overlapped: slices.ContainsFunc(sent[key], func(n notification) bool { return overlapped(t.attempts[n.ID]) })}
			k.check(report)
			if hook == jiraIssues {
				k.checkIssues(report, w.receiver.jira.about(a.ID))
			}
			report.Through[hook]++
			delete(came, key)
		}
	}
	for key, requests := range came {
		report.find(wrongMessage, "%s knows of an alert %q that there is not, by %d messages", key.hook, key.alertID, len(requests))
	}
}

// known is what a service knows of an alert.
type known struct {
	hook  string
	alert *alert
	// events are those that it should have been sent, in order, and came those that it accepted, in
	// the order of arrival.
	events []string
	came   []request
	// overlapped says that an attempt at one of the messages began before the outcome of another
	// was stored.
	overlapped bool
}

// check compares what arrived with the order of events. A repetition adds nothing new; but a sender
// that was paused may repeat an event that has been overtaken.
func (k *known) check(report *Report) {
	var first []string
	var raising, event string
	for _, r := range k.came {
		event = r.event
		if r.whole && (len(first) == 0 || r.webhookID == raising) {
			event, raising = aRaising, r.webhookID
		}
		if !slices.Contains(first, event) {
			first = append(first, event)
		}
	}
	switch {
	case slices.ContainsFunc(k.events, func(event string) bool { return !slices.Contains(first, event) }):
		report.find(neverReceived, "%s, alert %s: %v, and not %v", k.hook, k.alert.ID, first, k.events)
	case !slices.Equal(first, k.events):
		report.find(wrongMessage, "%s, alert %s: %v, and not %v", k.hook, k.alert.ID, first, k.events)
	case event != k.events[len(k.events)-1] && !k.overlapped:
		report.find(repeatedOutside, "%s, alert %s: %s came after %s", k.hook, k.alert.ID, event, k.events[len(k.events)-1])
	}
}

// checkIssues checks that an alert has one issue, which is done when the alert is resolved. Two are
// possible if a sender was paused between its search and the creation of the issue, and another one
// took over meanwhile.
func (k *known) checkIssues(report *Report, issues []issue) {
	if len(issues) > 1 {
		if report.IssuesTwice++; !k.overlapped {
			report.find(repeatedOutside, "%d issues of alert %s", len(issues), k.alert.ID)
		}
	}
	resolved := slices.Contains(k.events, aResolution)
	if !slices.ContainsFunc(issues, func(i issue) bool { return i.done == resolved }) {
		report.find(wrongMessage, "%d issues of alert %s, %s, are done: %v", len(issues), k.alert.ID, k.alert.State, !resolved)
	}
}

// overlapped reports whether an attempt began before the outcome of the previous one was stored.
func overlapped(attempts []attempt) bool {
	for i := range len(attempts) - 1 {
		if attempts[i].Verdict == "" || !attempts[i].StoredAt.Before(attempts[i+1].StartedAt) {
			return true
		}
	}
	return false
}
