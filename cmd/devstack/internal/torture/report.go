//go:build unix

package torture

import (
	"fmt"
	"slices"
	"strings"
)

// finding is something that must not be.
type finding string

// What the checker finds.
const (
	missed              finding = "missed"
	duplicated          finding = "duplicated"
	unexpected          finding = "unexpected"
	altered             finding = "wrong state"
	overlapping         finding = "open twice"
	miscounted          finding = "wrong count"
	notificationMissing finding = "notifications missing"
	notificationTwice   finding = "notifications duplicated"
	notificationStray   finding = "notifications unexpected"
	undelivered         finding = "notifications undelivered"
	neverReceived       finding = "never received"
	wrongMessage        finding = "wrong message"
	repeatedOutside     finding = "repeated outside the window"
	renamed             finding = "raised again with another id"
	notHeld             finding = "sent within quiet hours"
	notSuppressed       finding = "sent within a silence"
	wronglySuppressed   finding = "suppressed without a silence"
	wrongDigest         finding = "wrong digest of a silence"
)

func findings() []finding {
	return []finding{
		missed, duplicated, unexpected, altered, overlapping, miscounted, notificationMissing, notificationTwice, notificationStray, undelivered,
		neverReceived, wrongMessage, repeatedOutside, renamed, notHeld, notSuppressed, wronglySuppressed, wrongDigest,
	}
}

// examples is how many of a kind are shown.
const examples = 5

// Report is what the checker found.
type Report struct {
	Seed      uint64
	Form      Form
	Exchanges int
	// Must alerts had to be there, Perhaps could be or not, and Alerts were there.
	Must, Perhaps, Alerts int
	// Counts are alerts of groups, HealthAlerts those about rules that could not be evaluated, or a source that could not
	// be read.
	Counts, HealthAlerts int
	// Unevaluated counts groups without an alert of which no records prove that they were evaluated while above a threshold.
	Unevaluated int
	// Notifications are those of alerts and digests; Gathered of them were sent in Digests.
	Notifications, Gathered, Digests int
	Requests                         int
	// RepeatedOnRequest counts messages that came again because the receiver had not accepted them, RepeatedInWindow those
	// whose acceptance the sender did not live, or was not reached, to learn.
	RepeatedOnRequest, RepeatedInWindow int
	// Failovers are those of Postgres. Lost counts confirmed alerts that they took away, and RepeatedByFailover messages that
	// came again because their delivery was forgotten, or that nobody knows of any more.
	Failovers, Lost, RepeatedByFailover int
	// Held are messages that quiet hours held, Passed critical ones that arrived within them.
	Held, Passed int
	// Suppressed are messages that a silence suppressed, Listed those of them that its digests list, Routed alerts that a routing policy led to somebody or nobody.
	Suppressed, Listed, Routed int
	// RoutedSuppressed are messages of routed alerts that the silence suppressed, RoutedHeld those that quiet hours held.
	RoutedSuppressed, RoutedHeld int
	// Aged and Proven are alerts that age and evidence resolved, Escalated messages of steps, Replayed alerts of rules that
	// a person replayed.
	Aged, Proven, Escalated, Replayed int
	// NoRoom is how often Postgres found the disk full.
	NoRoom int
	// Kills counts what was killed or crashed: replicas, and engines.
	Kills int
	// Through counts the alerts that each service of the form [Receivers] had to know of, IssuesTwice those of which Jira has
	// more than one issue.
	Through     map[string]int
	IssuesTwice int

	found map[finding]int
	shown map[finding][]string
}

func (r *Report) find(f finding, format string, args ...any) {
	if r.found == nil {
		r.found, r.shown = map[finding]int{}, map[finding][]string{}
	}
	r.found[f]++
	if len(r.shown[f]) < examples {
		r.shown[f] = append(r.shown[f], fmt.Sprintf(format, args...))
	}
}

// OK says that nothing was found.
func (r *Report) OK() bool { return len(r.found) == 0 }

// Found returns how often something was found.
func (r *Report) Found(f string) int { return r.found[finding(f)] }

// String is one line, and one more for each example of what must not be.
func (r *Report) String() string {
	var text strings.Builder
	verdict := "ok"
	if !r.OK() {
		verdict = "FAILED"
	}
	fmt.Fprintf(&text, "%s seed %d: %s: %d exchanges, %d alerts of %d to %d, %d of counts, %d of health, %d notifications, %d of them in %d digests, %d requests",
		r.Form, r.Seed, verdict, r.Exchanges, r.Alerts, r.Must, r.Must+r.Perhaps, r.Counts, r.HealthAlerts, r.Notifications, r.Gathered, r.Digests, r.Requests)
	if r.Unevaluated > 0 {
		fmt.Fprintf(&text, "; groups never evaluated above a threshold %d", r.Unevaluated)
	}
	fmt.Fprintf(&text, "; repeated on request %d, in the window %d", r.RepeatedOnRequest, r.RepeatedInWindow)
	if r.Held+r.Passed > 0 {
		fmt.Fprintf(&text, "; held by quiet hours %d, passed %d", r.Held, r.Passed)
	}
	if r.Suppressed+r.Routed > 0 {
		fmt.Fprintf(&text, "; suppressed by a silence %d, listed in its digests %d, alerts routed %d, of their messages suppressed %d, held by quiet hours %d",
			r.Suppressed, r.Listed, r.Routed, r.RoutedSuppressed, r.RoutedHeld)
	}
	if r.Aged+r.Proven > 0 {
		fmt.Fprintf(&text, "; resolved by age %d, by evidence %d", r.Aged, r.Proven)
	}
	if r.Replayed+r.Escalated > 0 {
		fmt.Fprintf(&text, "; alerts of replayed rules %d, escalated %d", r.Replayed, r.Escalated)
	}
	fmt.Fprintf(&text, "; kills %d", r.Kills)
	if r.Failovers > 0 {
		fmt.Fprintf(&text, ", failovers %d, which lost %d alerts and repeated %d messages", r.Failovers, r.Lost, r.RepeatedByFailover)
	}
	if r.NoRoom > 0 {
		fmt.Fprintf(&text, ", no room %d times", r.NoRoom)
	}
	for i, service := range services() {
		if r.Through != nil {
			fmt.Fprintf(&text, "%s %s %d", [...]string{", alerts at", ","}[min(i, 1)], service, r.Through[service])
		}
	}
	if r.IssuesTwice > 0 {
		fmt.Fprintf(&text, ", with two issues %d", r.IssuesTwice)
	}
	for _, f := range findings() {
		if slices.Contains([]finding{missed, duplicated, notificationMissing, notificationTwice, repeatedOutside}, f) || r.found[f] > 0 {
			fmt.Fprintf(&text, ", %s %d", f, r.found[f])
		}
	}
	for _, f := range findings() {
		for _, example := range r.shown[f] {
			fmt.Fprintf(&text, "\n  %s: %s", f, example)
		}
	}
	return text.String()
}
