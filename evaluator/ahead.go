package evaluator

import "tocsin/rules"

// A forward scan looks ahead. What begins after the horizon was read, while the
// look-back is compared, would wait for the next tick, although the scan sees it.
// So the scan reads on to where the source's clock stands by then.
//
// What lies beyond the horizon is raised, but no cursor passes it: the cursor
// goes to the horizon, up to which the fingerprints say what is there, and the
// next tick reads on from it. Nothing is lost, however wrong the distance is.
// An alert raised ahead is not offered again by this process (see known), and
// refused by the database where another one offers it.

const (
	// aheadShare is the part of the interval between ticks that a scan looks ahead
	// at most, since that much is read twice.
	aheadShare = 10
	// fewAhead is the largest page of which anything is raised ahead. Where much is
	// found, another replica that goes on from the cursor would offer some of it
	// again at each tick, and that is dearer than the milliseconds are worth.
	fewAhead = 100
)

// aheadNS returns the start time before which a forward scan reads: the horizon,
// and the time since it was read.
func (t *tick) aheadNS() int64 {
	since := min(t.Clock().Sub(t.readAt), t.Interval/aheadShare)
	return t.horizon.StartTimeNS + max(since, 0).Nanoseconds()
}

// upToHorizon returns what is to be judged of a page that a forward scan found,
// and whether there is nothing more up to the horizon.
func (t *tick) upToHorizon(page []rules.Exchange) (judged []rules.Exchange, last bool) {
	beyond := func(i int) bool { return page[i].StartTimeNS >= t.horizon.StartTimeNS }
	last = len(page) < t.pace.size || beyond(len(page)-1)
	if len(page) > fewAhead {
		for len(page) > 0 && beyond(len(page)-1) {
			page = page[:len(page)-1]
		}
	}
	return page, last
}
