package slack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

func fields(a *Alert) []text {
	return named([]field{
		{"Rule", Escape(line(a.Rule), boundField)},
		{"Application", Escape(line(a.Application), boundField)},
		{"Route", Escape(line(a.Route), boundField)},
		{"Environment", Escape(line(a.Environment), boundField)},
		{"Started", started(a)},
		{"Duration", Escape(line(a.Duration), boundField)},
		{"Owner", Escape(line(a.Owner), boundField)},
		{"Labels", Escape(labels(a), boundField)},
	})
}

func countFields(a *Alert) []text {
	c := a.Count
	return named([]field{
		{"Rule", Escape(line(a.Rule), boundField)},
		{Escape(line(c.GroupBy), boundField), Escape(line(c.Group), boundField)},
		{cmp.Or(c.Name, "Counted"), Escape(fmt.Sprintf("%s within %s", cmp.Or(c.Value, strconv.FormatInt(c.Observed, 10)), line(c.Window)), boundField)},
		{"Threshold", cmp.Or(Escape(line(c.Bound), boundField), strconv.Itoa(c.Threshold))},
		{"Owner", Escape(line(a.Owner), boundField)},
		{"Labels", Escape(labels(a), boundField)},
	})
}

// labels shows the labels on one line.
func labels(a *Alert) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(a.Labels)) {
		parts = append(parts, line(key)+"="+line(a.Labels[key]))
	}
	return strings.Join(parts, ", ")
}

// example says on one line where and when the example exchange of a count ran; empty if none is
// known.
func example(a *Alert) string {
	var parts []string
	for _, part := range []string{a.Application, a.Route, a.Environment} {
		if part = Escape(line(part), boundField); part != "" {
			parts = append(parts, part)
		}
	}
	if a.Start != "" {
		parts = append(parts, started(a))
	}
	if a.Duration != "" {
		parts = append(parts, Escape(line(a.Duration), boundField))
	}
	return strings.Join(parts, " · ")
}

// started is a time that Slack shows in the reader's time zone.
func started(a *Alert) string {
	exact := Escape(line(a.Start), boundField)
	if seconds := a.StartTimeNS / int64(time.Second); seconds > 0 {
		return dated(seconds, strings.ReplaceAll(exact, "|", "/"))
	}
	return exact
}
