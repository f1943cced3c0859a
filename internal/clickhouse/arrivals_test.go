package clickhouse_test

import (
	"fmt"
	"testing"

	"tocsin/evaluator/watch"
	"tocsin/internal/chtest"
	"tocsin/rules"
)

// TestLongExchangesDoNotHideAServer has exchanges that run for a little more than an hour, of which one
// ends every ten seconds. A process that takes over the watch must find that the only server shows
// everything that the process before saw.
func TestLongExchangesDoNotHideAServer(t *testing.T) {
	t.Parallel()
	db := chtest.New(t)
	ch := open(t, db)
	const second = int64(1e9)
	var rows []rules.Exchange
	for at := base - 1000*second; at < base+100*second; at += 10 * second {
		for _, lasted := range []int64{1, 3599, 3650, 3800, 4000, 4200, 4300, 4400, 4450, 4480, 4500} {
			e := failed(at-lasted*second, fmt.Sprint(at, lasted))
			e.EndTimeNS = new(at)
			rows = append(rows, e)
		}
	}
	db.Insert(t, rows...)
	request := &watch.Request{Tenants: tenants("default"), WatermarkNS: base}
	for process := range 2 {
		watcher := watch.New(ch)
		for pass := range 3 {
			seen, err := watcher.Watch(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if conclusive := pass > 0; seen.Conclusive != conclusive {
				t.Errorf("process %d, watch %d: conclusive is %v", process, pass, seen.Conclusive)
			}
			if seen.Watch.LateNS > 10*second {
				t.Errorf("process %d, watch %d: exchanges are late by %d s", process, pass, seen.Watch.LateNS/second)
			}
			request.Watch = seen.Watch
			request.WatermarkNS += 10 * second
		}
	}
}
