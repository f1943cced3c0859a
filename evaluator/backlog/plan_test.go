package backlog

import (
	"slices"
	"testing"

	"tocsin/cursor"
)

// TestPlan states which ranges a pass reads, and in which order. Instants are seconds; those before 0 are in buckets of a
// minute. The watermark is at 1000, the cursor at 900, and every pass compares what begins from 800 on.
func TestPlan(t *testing.T) {
	const gap, most = gapBuckets, mostRangeNS / secondNS
	minutes := min(gap, most/60-2) // with the two around them they are one range
	one := func(fromS, toS int64) Stretch {
		return Stretch{Range: cursor.Range{FromNS: fromS * secondNS, ToNS: toS * secondNS}, Server: "a"}
	}
	from := func(s Stretch, server string) Stretch { s.Server = server; return s }
	forward := func(s Stretch) Stretch { s.Forward = true; return s }
	for _, c := range []struct {
		name string
		// a and b are the seconds that the servers of these names showed to be changed.
		a, b          []int64
		older, recent []Stretch
	}{
		{"nothing changed", nil, nil, nil, []Stretch{forward(one(900, 1000))}},
		{
			"older changes are read oldest first",
			[]int64{700, 300, 500},
			nil,
			[]Stretch{one(300, 301), one(500, 501), one(700, 701)},
			[]Stretch{forward(one(900, 1000))},
		},
		{
			"what is close together is one range",
			[]int64{300, 301 + gap},
			nil,
			[]Stretch{one(300, 302+gap)},
			[]Stretch{forward(one(900, 1000))},
		},
		{
			"what is further apart is not",
			[]int64{300, 302 + gap},
			nil,
			[]Stretch{one(300, 301), one(302+gap, 303+gap)},
			[]Stretch{forward(one(900, 1000))},
		},
		{
			"the gap is counted in minutes before the fine look-back",
			[]int64{-60 * (minutes + 8), -60 * 7},
			nil,
			[]Stretch{one(-60*(minutes+8), -60*6)},
			[]Stretch{forward(one(900, 1000))},
		},
		{
			"no range is longer than it may be", seconds(0, most+2), nil,
			[]Stretch{one(0, most), one(most, most+2)},
			[]Stretch{forward(one(900, 1000))},
		},
		{
			"each range is of one server",
			[]int64{300},
			[]int64{301},
			[]Stretch{one(300, 301), from(one(301, 302), "b")},
			[]Stretch{forward(one(900, 1000))},
		},
		{
			"recent changes come before what is new",
			[]int64{820},
			nil,
			nil,
			[]Stretch{one(820, 821), forward(one(900, 1000))},
		},
		{
			"a change beside the cursor is read with what is new, from the observed server", nil,
			[]int64{899 - gap},
			nil,
			[]Stretch{forward(one(899-gap, 1000))},
		},
		{
			"one that is further from it is not", nil,
			[]int64{898 - gap},
			nil,
			[]Stretch{from(one(898-gap, 899-gap), "b"), forward(one(900, 1000))},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := New(900*secondNS, hourNS, nil)
			for _, s := range c.a {
				b.left[s*secondNS] = bucket{server: "a"}
			}
			for _, s := range c.b {
				b.left[s*secondNS] = bucket{server: "b"}
			}
			if got := b.Older(800 * secondNS); !slices.Equal(got, c.older) {
				t.Errorf("older ranges are\n%v, want\n%v", got, c.older)
			}
			if got := b.Recent("a", 800*secondNS, 900*secondNS, 1000*secondNS); !slices.Equal(got, c.recent) {
				t.Errorf("recent ranges are\n%v, want\n%v", got, c.recent)
			}
		})
	}
}

// seconds returns the seconds from one to another, without the last.
func seconds(from, to int64) (list []int64) {
	for at := from; at < to; at++ {
		list = append(list, at)
	}
	return list
}
