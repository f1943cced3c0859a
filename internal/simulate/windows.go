package simulate

import (
	"strings"

	"tocsin/rules"
)

// drawWindow makes a rule one over a window.
func (w *world) drawWindow(d *rules.Definition) {
	d.FireMode, d.Threshold, d.WindowSeconds = rules.CountInWindow, 2+w.rand.IntN(2), []int{60, 300}[w.rand.IntN(2)]
	d.GroupBy = []rules.GroupBy{rules.GroupByNothing, rules.GroupByApplication, rules.GroupByAttribute}[w.rand.IntN(3)]
	if d.GroupBy == rules.GroupByAttribute {
		d.GroupByAttribute = "customer"
	}
	d.ForDurationSeconds, d.ReNotifyMinutes = []int{0, 0, 20}[w.rand.IntN(3)], w.rand.IntN(2)
	d.NotifyOnResolve = w.rand.IntN(2) == 0
	if w.conf.brief {
		d.WindowSeconds, d.ForDurationSeconds = []int{10, 20, 45}[w.rand.IntN(3)], 0
	}
	n := len(w.people.rules) % 5
	if w.conf.brief && n%2 == 0 {
		n, d.Filter.Statuses = 0, nil // one tally counts windows of several lengths
	}
	switch n {
	case 1:
		expect(d)
	case 4:
		expect(d)
		if d.GroupBy != rules.GroupByNothing {
			d.Expected, d.LearnDays = nil, 1
		}
	case 2:
		measure(d, rules.RatioInWindow)
	case 3:
		measure(d, rules.DurationInWindow)
	}
}

// longCustomer is a value of which the hash names the group.
func longCustomer() string { return strings.Repeat("c", rules.MaxGroupBytes+1) }

// customers are the values of an attribute; without the first one it is not there.
func customers() []string { return []string{"", "7", "8", longCustomer()} }

// expect makes a window rule one that raises where fewer exchanges are seen.
func expect(d *rules.Definition) {
	d.FireMode, d.Filter = rules.AbsentInWindow, rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}}
	switch d.GroupBy { //nolint:exhaustive // of all together nothing is listed
	case rules.GroupByApplication:
		d.Expected = []string{"orders", "billing"}
	case rules.GroupByAttribute:
		d.Expected = []string{"7", longCustomer()}
	}
}

// measure makes a window rule one on a share or on a percentile, of as many exchanges at
// least as it counted.
func measure(d *rules.Definition, mode rules.FireMode) {
	d.FireMode, d.MinVolume, d.Threshold = mode, d.Threshold, 0
	if mode == rules.RatioInWindow {
		d.Percent = 50
	} else {
		d.Percentile, d.DurationMS = 95, 1500
	}
}
