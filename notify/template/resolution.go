package template

import (
	"fmt"
	"strconv"
	"time"

	"tocsin/alerts"
	"tocsin/rules"
)

// Resolution says why an alert is resolved, without a full stop. It is empty if the alert is not
// resolved or the reason is unknown.
func Resolution(a *alerts.Instance) string {
	r, c := a.Resolution, a.Count
	switch {
	case a.State != alerts.Resolved:
		return ""
	case a.ResolvedBy != "":
		return "by " + rules.CleanText(a.ResolvedBy, maxNameBytes)
	case r != nil && r.Reason == alerts.ByEvidence:
		text := "a later exchange completed: " + rules.CleanText(r.ExecutionID, maxNameBytes)
		if r.StartTimeNS != nil {
			text += ", started at " + time.Unix(0, *r.StartTimeNS).UTC().Format(time.DateTime) + " UTC"
		}
		return text
	case r != nil && r.Reason == alerts.ByAge:
		return "open for longer than its rule allows"
	case r != nil && r.Reason == alerts.ByEdit:
		return "its rule was edited, and no longer counts the group of the alert"
	case c != nil && c.Fired != nil:
		return "the value is " + whole(c) + ", and was " + whole(c.Fired) + " when it fired; the threshold is " + CountThreshold(c)
	}
	return ""
}

// whole writes what a rule measured, and over how many exchanges.
func whole(c *alerts.Count) string {
	if c.Measured() {
		return fmt.Sprintf("%s of %s", CountValue(c), strconv.FormatInt(c.Volume, 10))
	}
	return CountValue(c)
}
