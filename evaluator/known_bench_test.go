package evaluator

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/google/uuid"

	"tocsin/cursor"
)

// BenchmarkKnown remembers alerts as pages commit them, and says what each takes.
func BenchmarkKnown(b *testing.B) {
	const page = 1000
	ids := make([]string, 2*mostKnown)
	for i := range ids {
		ids[i] = "0197f2a0-0000-7000-8000-" + strconv.Itoa(i)
	}
	rule := uuid.UUID{1}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	k := newKnown()
	for i := range mostKnown {
		k.add(rule, string([]byte(ids[i])), cursor.Position{StartTimeNS: int64(i / page), ExecutionID: ids[i/page]})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	n := 0
	for b.Loop() {
		k.add(rule, ids[n%len(ids)], cursor.Position{StartTimeNS: int64(n / page)})
		n++
	}
	b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/mostKnown, "B/alert")
	runtime.KeepAlive(k)
}
