package clickhouse_test

import (
	"fmt"
	"testing"

	"tocsin/cursor"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// TestOtherTables reads tables of other types through the expressions that source check recommends,
// in pages of one, so that each position is compared.
func TestOtherTables(t *testing.T) {
	db := chtest.New(t)
	for name, c := range map[string]struct {
		columns string
		// values yields three rows for each of two instants.
		values  string
		mapping clickhouse.Mapping
		// granularity is the resolution of the start times.
		granularity int64
	}{
		"milliseconds": {
			columns: "ts DateTime64(3), id String, app String, ok Bool",
			values:  "toDateTime64('2026-11-21 12:00:00.123', 3, 'UTC') + toIntervalMillisecond(intDiv(number, 3)), toString(number), 'a', number = 7",
			mapping: clickhouse.Mapping{StartTime: "ts", ExecutionID: "id", Application: "app", Failed: "NOT ok"}, granularity: 1_000_000,
		},
		"seconds, UUID and Nullable": {
			columns:     "ts DateTime, id UUID, app Nullable(String), code Nullable(Int32)",
			values:      "toDateTime('2026-11-21 12:00:00', 'UTC') + intDiv(number, 3), generateUUIDv4(), NULL, if(number = 7, NULL, 500)",
			mapping:     clickhouse.Mapping{StartTime: "toDateTime64(ts, 0)", ExecutionID: "toString(id)", Application: "ifNull(app, '')", Failed: "ifNull(code >= 500, false)"},
			granularity: 1_000_000_000,
		},
		"an integer of nanoseconds": {
			columns:     "ns UInt64, id FixedString(8), app LowCardinality(String), state Enum('GOOD' = 1, 'BAD' = 2)",
			values:      "1795262400000000001 + intDiv(number, 3), toString(number), 'a', if(number = 7, 'GOOD', 'BAD')",
			mapping:     clickhouse.Mapping{StartTime: "fromUnixTimestamp64Nano(toInt64(ns), 'UTC')", ExecutionID: "toString(id)", Application: "app", Failed: "state = 'BAD'"},
			granularity: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.mapping
			m.Table, m.Tenant, m.Environment, m.Route = "runs", "default", "'live'", "'r'"
			for _, statement := range []string{
				"DROP TABLE IF EXISTS runs",
				"CREATE TABLE runs (" + c.columns + ") ENGINE = MergeTree ORDER BY tuple()",
				"INSERT INTO runs SELECT " + c.values + " FROM numbers(6)",
			} {
				if err := db.Conn.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			source := openWith(t, db, m)
			report, err := source.CheckMapping(t.Context())
			if err != nil || report.Broken() {
				t.Fatalf("%+v, %v", report.Err(), err)
			}
			var all []rules.Exchange
			at := cursor.Position{}
			for {
				s := scan(at, base*2)
				s.Limit = 1
				page, err := found(source.Scan(t.Context(), s))
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				if page[0].Position().Compare(at) <= 0 {
					t.Fatalf("%v does not follow %v", page[0].Position(), at)
				}
				at = page[0].Position()
				all = append(all, page[0])
			}
			if len(all) != 6 {
				t.Fatalf("%d exchanges, want 6", len(all))
			}
			instants := map[int64]int{}
			for i := range all {
				instants[all[i].StartTimeNS]++
				if e := &all[i]; e.Status != rules.Failed || e.Environment != "live" || e.Route != "r" || e.EndTimeNS != nil || e.DurationNS != 0 || len(e.Attributes) != 0 {
					t.Errorf("%+v", e)
				}
			}
			first := all[0].StartTimeNS
			if instants[first] != 3 || instants[first+c.granularity] != 3 {
				t.Errorf("%v", fmt.Sprint(instants))
			}
		})
	}
}
