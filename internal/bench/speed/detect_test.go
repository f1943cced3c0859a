package speed

import (
	"slices"
	"testing"
	"time"
)

// TestOffsetsMeetEachPartOfATickOnce holds it for the workload's ticks, and for one
// whose number would divide that of the moments.
func TestOffsetsMeetEachPartOfATickOnce(t *testing.T) {
	for _, c := range []struct {
		tick  time.Duration
		count int
	}{{time.Second, 200}, {250 * time.Millisecond, 200}, {time.Second, 20}, {250 * time.Millisecond, 20}, {640 * time.Millisecond, 64}} {
		list := offsets(c.tick, c.count)
		part := c.tick / time.Duration(c.count)
		parts := make([]int, c.count)
		for i, offset := range list {
			parts[i] = int(offset % c.tick / part)
			if i > 0 && offset-list[i-1] < spacing {
				t.Errorf("%v, %d: %v from one to the next, want %v at least", c.tick, c.count, offset-list[i-1], spacing)
			}
		}
		slices.Sort(parts)
		if len(slices.Compact(parts)) != c.count {
			t.Errorf("%v, %d: not all parts are met", c.tick, c.count)
		}
	}
}
