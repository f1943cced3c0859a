//go:build unix

package torture

import (
	"bytes"
	"cmp"
	"os"
	"slices"
)

// passesTogether is how many passes, apart, prove that a window rule was evaluated between the first and the last, as long
// as one query asks about all of them.
const passesTogether = 3

// oneByOne is what a replica logs when a query for several window rules has failed or taken too long.
const oneByOne = "window rules are counted one by one"

// passesNeeded is how many passes, apart, prove that each window rule was evaluated. A replica that counts them one by one
// counts at least one in each pass, and the one that has waited for longest first.
func (w *world) passesNeeded() (int, error) {
	for _, r := range w.replicas {
		said, err := os.ReadFile(r.log.Name())
		if err != nil {
			return 0, err
		}
		if bytes.Contains(said, []byte(oneByOne)) {
			return passesTogether + len(windowRules(&w.options)), nil
		}
	}
	return passesTogether, nil
}

// passMost is how long a pass may last: what its deadline leaves it of a lease on a partition.
const passMost = claimFor * 2 / 3

// passes returns when passes committed, in order: each wrote the first messages of alerts about exchanges.
func (t *tables) passes() []int64 {
	exchanges := map[string]bool{}
	for i := range t.alerts {
		exchanges[t.alerts[i].ID] = t.alerts[i].About == anExchange
	}
	var at []int64
	for i := range t.notifications {
		if n := &t.notifications[i]; n.Reason == "FIRED" && exchanges[n.AlertID] {
			at = append(at, n.WrittenAt.UnixNano())
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// evaluatedAbove says whether the passes prove that a rule was evaluated while a group was above the threshold for
// certain: whatever was still invisible, and whatever else was counted. A machine that is so busy that hardly any pass
// commits while exchanges come need not raise an alert. Window rules come first after a pass that had no time for them. A
// pass commits many times: commits count that are further apart than a pass may last, by an interval.
func (t *truth) evaluatedAbove(l *life, group string, passes []int64, needed int, toNS int64) bool {
	const lengthNS = windowSeconds * int64(1e9)
	armedNS := l.periods[0].began.toNS
	apartNS := passMost.Nanoseconds() + int64(l.rule.intervalSeconds)*1e9
	var changes []change
	for i := range t.exchanges {
		e, seen := &t.exchanges[i], t.seen[i]
		if l.rule.window.group(e) != group {
			continue
		}
		enters, leaves := e.endNS+1, e.endNS+lengthNS+1
		if l.rule.window.compares(&l.rule.condition, e) {
			changes = append(changes, change{atNS: enters, volume: 1}, change{atNS: leaves, volume: -1})
		}
		certain := max(enters, seen.toNS)
		if seen != (span{}) && e.endNS > armedNS && certain < leaves && l.rule.window.observes(&l.rule.condition, e) {
			changes = append(changes, change{atNS: certain, certain: 1}, change{atNS: leaves, certain: -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.atNS, b.atNS) })
	var held change
	var counted int
	var lastNS int64
	for i, next := range changes {
		held.certain, held.volume = held.certain+next.certain, held.volume+next.volume
		untilNS := toNS
		if i+1 < len(changes) {
			untilNS = min(toNS, changes[i+1].atNS)
		}
		if untilNS <= next.atNS {
			continue // more enters or leaves at this instant
		}
		if !l.rule.window.fires(held.certain, held.volume) {
			counted = 0
			continue
		}
		for first, _ := slices.BinarySearch(passes, next.atNS); first < len(passes) && passes[first] < untilNS; first++ {
			if counted == 0 || passes[first] >= lastNS+apartNS {
				counted, lastNS = counted+1, passes[first]
			}
		}
		if counted >= needed {
			return true
		}
	}
	return false
}

// fellBetween says whether a group fell below the threshold between an alert and the next one: the first resolved by a
// count that a server could show, as checkCounted holds it to.
func (w *world) fellBetween(l *life, a, next *alert) bool {
	if a.ResolvedAt == nil || !a.ResolvedAt.Before(next.FiredAt) {
		return false
	}
	// The window that fired ended a little before its commit, and each one after it later.
	q := question{group: a.Group, fromNS: a.FiredAt.UnixNano() - 1e9, toNS: a.ResolvedAt.UnixNano(), observed: a.Observed, volume: a.Volume}
	return !l.rule.window.fires(q.observed, q.volume) && w.truth.shows(&l.rule, q)
}
