package clickhouse_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

func TestDelayFromTheInsertTime(t *testing.T) {
	db := chtest.New(t)
	if err := db.Conn.Exec(t.Context(), "ALTER TABLE exchanges ADD COLUMN inserted DateTime64(6, 'UTC')"); err != nil {
		t.Fatal(err)
	}
	now := db.Now(t)
	// A hundred exchanges of one second each, visible 0 to 99 s after their end.
	err := db.Conn.Exec(t.Context(), fmt.Sprintf(`
		INSERT INTO exchanges (tenant_id, start_time, execution_id, end_time, status, inserted)
		SELECT 'default', fromUnixTimestamp64Nano(toInt64(%d), 'UTC') - INTERVAL 200 SECOND AS s, toString(number), s + INTERVAL 1 SECOND, 'FAILED',
			s + INTERVAL 1 SECOND + toIntervalSecond(number) FROM numbers(100)`, now))
	if err != nil {
		t.Fatal(err)
	}
	m := clickhouse.Exchanges()
	m.InsertedAt = "inserted"
	report, err := openWith(t, db, m).Check(t.Context(), clickhouse.CheckOptions{Settle: 10 * time.Second, Watch: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	d := report.Delay
	if d == nil || d.Method != "inserted_at" || d.Rows != 100 {
		t.Fatalf("%+v", d)
	}
	near := func(got, want float64) bool { return got > want-0.01 && got < want+0.01 }
	if !near(d.FromStart.P50, 50) || !near(d.FromStart.P99, 99) || !near(d.FromStart.Max, 100) || !near(d.FromEnd.P50, 49) || !near(d.FromEnd.Max, 99) {
		t.Errorf("from start %+v, from end %+v", d.FromStart, d.FromEnd)
	}
	// Visible later than 10 s after the start are those of number 10 and more.
	if !near(d.BehindCursor, 0.9) || !near(d.NeededSeconds, 100) || d.AdvisedLookBackSeconds != 300 {
		t.Errorf("%+v", d)
	}
}

// longEnough makes watches until one reads a table as often as a test needs, each four times as long as the one before: a
// watch lasts for a time by ClickHouse's clock, in which a slow machine may read only once. A check that finds a table
// broken watches nothing, and reads 0 times.
func longEnough(t *testing.T, reads int, watch func(lasts time.Duration) (read int)) {
	t.Helper()
	for lasts := 300 * time.Millisecond; lasts < 5*time.Minute; lasts *= 4 {
		if read := watch(lasts); read == 0 || read >= reads {
			return
		}
	}
	t.Fatalf("no watch reads %d times", reads)
}

// TestDelayByWatching inserts rows during the watch, at its first progress report. An exchange of another tenant has the ID
// of one of them. The bounds are readings of ClickHouse's clock.
func TestDelayByWatching(t *testing.T) {
	longEnough(t, 3, func(lasts time.Duration) int { return delayByWatching(t, lasts) })
}

// delayByWatching returns how often a watch read, and checks its result if it read after the rows were inserted.
func delayByWatching(t *testing.T, lasts time.Duration) (read int) {
	t.Helper()
	db := chtest.New(t)
	other := failed(db.Now(t)-30e9, "quick")
	other.TenantID = "other"
	db.Insert(t, failed(db.Now(t)-30e9, "before"), other)
	var seen []int
	var insertedNS, shownNS int64
	report, err := open(t, db).Check(t.Context(), clickhouse.CheckOptions{
		Watch: lasts, Every: 20 * time.Millisecond, Settle: time.Second,
		Progress: func(_ time.Duration, rows int) {
			if seen = append(seen, rows); rows > 0 && shownNS == 0 {
				shownNS = db.Now(t)
			}
			if len(seen) > 1 {
				return
			}
			insertedNS = db.Now(t)
			quick, slow := failed(insertedNS-2e9, "quick"), failed(insertedNS-1900e9, "slow")
			for _, e := range []*rules.Exchange{&quick, &slow} {
				end := insertedNS - 1e9
				e.EndTimeNS = &end
			}
			db.Insert(t, quick, slow)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	switch len(seen) {
	case 0:
		t.Fatalf("nothing is watched: %+v", report)
	case 1, 2:
		return len(seen)
	}
	d := report.Delay
	if d == nil || d.Method != "watch" || d.Rows != 2 || !slices.IsSorted(seen) {
		t.Fatalf("%+v, progress %v", d, seen)
	}
	within := func(what string, got, least float64) {
		if most := least + float64(shownNS-insertedNS)/1e9; got < least || got > most {
			t.Errorf("%s %v s, want %v to %v", what, got, least, most)
		}
	}
	within("the shortest delay from a start", d.FromStart.P50, 2)
	within("the longest delay from a start", d.FromStart.Max, 1900)
	within("the longest delay from an end", d.FromEnd.Max, 1)
	if d.BehindCursor != 1 {
		t.Errorf("%+v", d)
	}
	if f := finding(&report, "look-back", clickhouse.Warn); f == nil || f.Remedy != "set lookBackSeconds to 7200" {
		t.Errorf("look-back: %+v", report.Findings)
	}
	return len(seen)
}
