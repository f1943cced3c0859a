package postgres_test

import (
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"

	"tocsin/evaluator/watch"
	"tocsin/rules"
)

// absent gives a tenant a rule on absence.
func (m *mover) absent(tenant string) {
	m.tb.Helper()
	d := definition("absent")
	d.FireMode, d.Threshold, d.WindowSeconds = rules.AbsentInWindow, 1, 60
	if _, err := m.db.Rules().Create(m.tb.Context(), tenant, d); err != nil {
		m.tb.Fatal(err)
	}
}

func (m *mover) setWatch(tenant string, s watch.State) {
	m.tb.Helper()
	m.exec(`update checkpoint set watched_since_ns = $2, watched_until_ns = $3, late_ns = $4, watched_shown = $5, absence_judged_ns = $6 where partition = $1`,
		m.of(tenant), s.SinceNS, s.UntilNS, s.LateNS, s.Shown, s.JudgedNS)
}

func (m *mover) wantWatch(tenant string, want watch.State) {
	m.tb.Helper()
	if got := m.checkpoint(m.of(tenant)).Watch; got != want {
		m.tb.Errorf("the watch for %s is %+v, want %+v", tenant, got, want)
	}
}

// The watch moves with an isolated tenant. How many exchanges were shown is known of no part of the tenants.
func TestWatchMovesToAnIsolatedPartition(t *testing.T) {
	t.Parallel()
	tenants := sharing(2)
	m := newMover(t, tenants...)
	m.absent(tenants[0])
	m.setWatch(tenants[0], watch.State{SinceNS: 100, UntilNS: 500, LateNS: 30, Shown: 9, JudgedNS: 470})
	if _, err := m.db.Partitions().Isolate(t.Context(), tenants[0]); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range tenants {
		m.wantWatch(tenant, watch.State{SinceNS: 100, UntilNS: 500, LateNS: 30, JudgedNS: 470})
	}
}

// TestWatchOfJoinedPartitions joins a tenant to a partition that was watched as well, or at another time, or not.
func TestWatchOfJoinedPartitions(t *testing.T) {
	t.Parallel()
	given := watch.State{SinceNS: 100, UntilNS: 500, LateNS: 30, Shown: 9, JudgedNS: 470}
	for name, c := range map[string]struct {
		// noneGiven and noneOwn say that the tenant, or the others of its new partition, have no rule on absence.
		noneGiven, noneOwn bool
		given, own, want   watch.State
	}{
		"both go on from what both have watched": {
			given: given, own: watch.State{SinceNS: 200, UntilNS: 510, LateNS: 20, Shown: 7, JudgedNS: 480},
			want: watch.State{SinceNS: 200, UntilNS: 500, LateNS: 30, Shown: 9, JudgedNS: 480},
		},
		"the other one was watched less recently": {
			given: given, own: watch.State{SinceNS: 50, UntilNS: 490, LateNS: 40, Shown: 7, JudgedNS: 450},
			want: watch.State{SinceNS: 100, UntilNS: 490, LateNS: 40, Shown: 7, JudgedNS: 470},
		},
		"both were watched until the same watermark": {
			given: given, own: watch.State{SinceNS: 50, UntilNS: 500, LateNS: 40, Shown: 7, JudgedNS: 460},
			want: watch.State{SinceNS: 100, UntilNS: 500, LateNS: 40, Shown: 9, JudgedNS: 470},
		},
		"the other one is not watched yet": {
			given: given, want: watch.State{SinceNS: 100, LateNS: 30, JudgedNS: 470},
		},
		"the other one has no rule any more": {
			noneOwn: true, given: given, own: watch.State{SinceNS: 5, UntilNS: 10, LateNS: 40, Shown: 70, JudgedNS: 8},
			want: watch.State{SinceNS: 100, UntilNS: 500, LateNS: 40, Shown: 9, JudgedNS: 470},
		},
		"the tenant has no rule any more": {
			noneGiven: true, given: watch.State{SinceNS: 5, UntilNS: 10, LateNS: 40, Shown: 70, JudgedNS: 8}, own: given,
			want: watch.State{SinceNS: 100, UntilNS: 500, LateNS: 40, Shown: 9, JudgedNS: 470},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tenants := sharing(2)
			m := newMover(t, tenants...)
			if !c.noneGiven {
				m.absent(tenants[0])
			}
			if !c.noneOwn {
				m.absent(tenants[1])
			}
			if _, err := m.db.Partitions().Isolate(t.Context(), tenants[0]); err != nil {
				t.Fatal(err)
			}
			m.setWatch(tenants[0], c.given)
			m.setWatch(tenants[1], c.own)
			if _, err := m.db.Partitions().Join(t.Context(), tenants[0]); err != nil {
				t.Fatal(err)
			}
			m.wantWatch(tenants[1], c.want)
		})
	}
}

// TestWatchOfAnotherNumberOfPartitions brings all tenants together, and one without a rule on absence too, and
// divides them again.
func TestWatchOfAnotherNumberOfPartitions(t *testing.T) {
	t.Parallel()
	tenants := apart(3)
	m := newMover(t, tenants...)
	m.absent(tenants[0])
	m.absent(tenants[1])
	m.setWatch(tenants[0], watch.State{SinceNS: 100, UntilNS: 500, LateNS: 30, Shown: 9, JudgedNS: 470})
	m.setWatch(tenants[1], watch.State{SinceNS: 200, UntilNS: 510, LateNS: 20, Shown: 7, JudgedNS: 480})
	m.setWatch(tenants[2], watch.State{SinceNS: 5, UntilNS: 10, LateNS: 40, Shown: 70, JudgedNS: 8})
	for _, count := range []int{1, 8} {
		if err := m.db.Partitions().Count(t.Context(), count); err != nil {
			t.Fatal(err)
		}
		for _, tenant := range tenants[:2] {
			m.wantWatch(tenant, watch.State{SinceNS: 200, UntilNS: 500, LateNS: 40, JudgedNS: 480})
		}
	}
	m.wantWatch(tenants[2], watch.State{LateNS: 40})
}

// sharing returns tenants of one of eight partitions, apart of as many partitions.
func sharing(n int) (tenants []string) {
	for i := 0; len(tenants) < n; i++ {
		if name := fmt.Sprint("tenant-", i); xxhash.Sum64String(name)%8 == 0 {
			tenants = append(tenants, name)
		}
	}
	return tenants
}

func apart(n int) (tenants []string) {
	for share := range uint64(n) {
		for i := 0; len(tenants) == int(share); i++ {
			if name := fmt.Sprint("tenant-", i); xxhash.Sum64String(name)%8 == share {
				tenants = append(tenants, name)
			}
		}
	}
	return tenants
}
