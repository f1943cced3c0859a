package demo

import "time"

// trouble is a problem of a route for some minutes of every ten, by the clock. It lasts longer than
// an outage, and no single exchange shows it.
type trouble struct {
	route       string
	from, until time.Duration
	// fails is the probability of failure, slower what durations are multiplied by.
	fails, slower float64
	// silent says that the route runs nothing.
	silent bool
}

const troubleEvery = 10 * time.Minute

// troubles are a route whose error ratio rises, one that slows down, and one that is silent.
func troubles() []trouble {
	return []trouble{
		{route: "tax-lookup", from: 1 * time.Minute, until: 4 * time.Minute, fails: 0.45, slower: 1},
		{route: "pdf-render", from: 5 * time.Minute, until: 8 * time.Minute, slower: 100},
		{route: "tracking-import", from: 5 * time.Minute, until: 9 * time.Minute, silent: true},
	}
}

// troubleOf returns the trouble that a route has at an instant, if any.
func troubleOf(route string, at time.Time) (trouble, bool) {
	since := at.Sub(at.Truncate(troubleEvery))
	for _, t := range troubles() {
		if t.route == route && since >= t.from && since < t.until {
			return t, true
		}
	}
	return trouble{}, false
}
