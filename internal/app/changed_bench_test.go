package app_test

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkChangedSecond makes passes over a second that has a thousand alerts, with one more
// exchange each time: the cost of one exchange that becomes visible late among many.
func BenchmarkChangedSecond(b *testing.B) {
	w := newWorld(b)
	w.armed(w.rule(), time.Now().Add(-time.Hour).UnixNano())
	w.tick()
	at := time.Now().Add(-10 * time.Second).Truncate(time.Second).UnixNano()
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = fmt.Sprint("known", i)
	}
	w.fail(at, ids...)
	w.until("all of them have alerts", func() bool {
		w.tick()
		return w.column(`select count(*)::text from alert`)[0] == "1000"
	})
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		w.fail(at+int64(n), fmt.Sprint("late", n))
		b.StartTimer()
		if r := w.tick(); r.Alerts != 1 {
			b.Fatalf("%d alerts", r.Alerts)
		}
	}
}
