package backlog

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tocsin/cursor"
)

// TestUnreadRanges states how a range of ten seconds is read, of which the third second cannot be read: by
// halves, until that second is alone. Only there do the pauses grow.
func TestUnreadRanges(t *testing.T) {
	b := New(900*secondNS, hourNS, nil)
	for _, s := range seconds(300, 310) {
		b.left[s*secondNS] = bucket{server: "a"}
	}
	now := time.Unix(1000, 0)
	// pass reads what does not wait, and returns which seconds it read or failed to read.
	pass := func() (read, failed []string) {
		for _, s := range b.Older(800 * secondNS) {
			if b.Waits(s, now) {
				continue
			}
			name := fmt.Sprint(s.FromNS/secondNS, "-", s.ToNS/secondNS)
			if s.FromNS <= 302*secondNS && 302*secondNS < s.ToNS {
				failed = append(failed, name)
				b.ReadFailed(s, now)
				continue
			}
			read = append(read, name)
			b.ReadSucceeded(s)
			for at := range b.left {
				if at >= s.FromNS && at < s.ToNS {
					delete(b.left, at)
				}
			}
		}
		return read, failed
	}
	for i, c := range []struct {
		pause        time.Duration
		read, failed []string
	}{
		{0, nil, []string{"300-310"}},
		{5*time.Second - 1, []string{"305-310"}, nil}, // its other half does not wait
		{0, nil, nil},
		{1, nil, []string{"300-305"}},
		{5 * time.Second, []string{"300-302"}, []string{"302-305"}},
		{5 * time.Second, []string{"303-305"}, []string{"302-303"}},
		{10*time.Second - 1, nil, nil},
		{1, nil, []string{"302-303"}},
		{20*time.Second - 1, nil, nil},
		{1, nil, []string{"302-303"}},
	} {
		now = now.Add(c.pause)
		read, failed := pass()
		if !slices.Equal(read, c.read) || !slices.Equal(failed, c.failed) {
			t.Errorf("step %d: read %v, failed %v; want %v, %v", i+1, read, failed, c.read, c.failed)
		}
	}
}

// TestUnreadRangeIsForgotten states what ends the pause of a range that could not be read, and has it read as a
// whole again.
func TestUnreadRangeIsForgotten(t *testing.T) {
	whole := Stretch{Range: cursor.Range{FromNS: 300 * secondNS, ToNS: 310 * secondNS}, Server: "a"}
	for _, c := range []struct {
		name string
		step func(*Backlog)
		want bool
	}{
		{"nothing", func(*Backlog) {}, false},
		{"it was read, and changed again", func(b *Backlog) { b.ReadSucceeded(whole) }, true},
		{"it is not planned", func(b *Backlog) {
			left := b.left
			b.left = map[int64]bucket{}
			b.Older(800 * secondNS)
			b.left = left
		}, true},
		{"another range was read", func(b *Backlog) {
			b.ReadSucceeded(Stretch{Range: cursor.Range{FromNS: 305 * secondNS, ToNS: 310 * secondNS}})
		}, false},
	} {
		b, now := New(900*secondNS, hourNS, nil), time.Unix(1000, 0)
		for _, s := range seconds(300, 310) {
			b.left[s*secondNS] = bucket{server: "a"}
		}
		b.ReadFailed(whole, now)
		c.step(b)
		plan := b.Older(800 * secondNS)
		if got := plan[0] == whole && !b.Waits(plan[0], now); got != c.want || len(b.unread) > 1 {
			t.Errorf("%s: %v is read first, waits %v", c.name, plan[0].Range, b.Waits(plan[0], now))
		}
	}
}
