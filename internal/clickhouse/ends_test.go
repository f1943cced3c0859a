package clickhouse_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tocsin/cursor"
	"tocsin/evaluator/reconcile"
	"tocsin/evaluator/source"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// TestEndsOutOfReach has some rows whose end cannot be expressed in nanoseconds since 1970: each
// query succeeds, and the values are clamped.
func TestEndsOutOfReach(t *testing.T) {
	const at = base / 1e6 * 1e6
	const latest, earliest, century = int64(9_223_372_036_000_000_000), int64(-2_208_988_800_000_000_000), int64(3_153_600_000_000_000_000)
	jobs := clickhouse.Mapping{
		Table: "jobs", TenantID: "tenant", StartTime: "start", ExecutionID: "id", EndTime: "end", Environment: "''", Application: "app",
		Route: "''", Failed: "status = 'FAILED'", InsertedAt: "start",
	}
	type row struct{ endNS, durationNS int64 }
	for name, c := range map[string]struct {
		mapping    clickhouse.Mapping
		statements []string
		want       map[string]row
	}{
		"milliseconds": {
			jobs,
			[]string{
				`CREATE TABLE jobs (tenant String, start DateTime64(3), end Nullable(DateTime64(3)), id String, app String, status String)
				ENGINE = MergeTree ORDER BY (tenant, start)`,
				`INSERT INTO jobs SELECT 'default', fromUnixTimestamp64Milli(toInt64(%[1]d)), end, id, 'orders', status FROM values(
					'id String, end Nullable(DateTime64(3)), status String',
					('2299', toDateTime64('2299-12-31 00:00:00', 3), 'FAILED'), ('0001', fromUnixTimestamp64Milli(toInt64(-62135596800000)), 'FAILED'),
					('none', NULL, 'FAILED'), ('soon', fromUnixTimestamp64Milli(toInt64(%[1]d) + 7), 'FAILED'),
					('done', toDateTime64('2299-12-31 00:00:00', 3), 'COMPLETED'))`,
			},
			map[string]row{"2299": {latest, latest - at}, "0001": {earliest, 0}, "none": {}, "soon": {at + 7e6, 7e6}},
		},
		"spans": {
			clickhouse.OtelTraces(),
			[]string{
				otelTraces,
				`INSERT INTO otel_traces (Timestamp, TraceId, SpanId, SpanName, ServiceName, Duration, StatusCode)
				SELECT fromUnixTimestamp64Milli(toInt64(%d)), 't', toString(number), 'GET', 'orders', duration, status FROM values(
					'number UInt8, duration UInt64, status String', (1, 18446744073709551615, 'Error'), (2, 9223372036854775808, 'Error'),
					(3, 9223372036854775807, 'Error'), (4, 7000000000000000000, 'Error'), (5, 7, 'Error'), (6, 18446744073709551615, 'Ok'))`,
			},
			map[string]row{
				"t:1": {at + century, math.MaxInt64}, "t:2": {at + century, math.MaxInt64}, "t:3": {at + century, math.MaxInt64},
				"t:4": {at + century, 7_000_000_000_000_000_000}, "t:5": {at + 7, 7},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := chtest.New(t)
			for _, statement := range c.statements {
				if err := db.Conn.Exec(t.Context(), fmt.Sprintf(statement+" -- %[1]d", at/1_000_000)); err != nil {
					t.Fatal(err)
				}
			}
			ch := openWith(t, db, c.mapping)
			page, err := found(ch.Scan(t.Context(), scan(cursor.Position{StartTimeNS: at - 1}, at+10)))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]row{}
			for _, e := range page {
				r := row{durationNS: e.DurationNS}
				if e.EndTimeNS != nil {
					r.endNS = *e.EndTimeNS
				}
				got[e.ExecutionID] = r
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("scan:\n%s", diff)
			}
			// Each window contains what ended since its rows began.
			var since []string
			for id, r := range c.want {
				if r.endNS == 0 || r.endNS >= at {
					since = append(since, id)
				}
			}
			slices.Sort(since)
			recent := scan(cursor.Position{StartTimeNS: at - 1}, at+10)
			recent.EndedSinceNS = at
			if page, err = found(ch.Scan(t.Context(), recent)); err != nil || !slices.Equal(ids(page), since) {
				t.Errorf("scan of what ended since: %q, %v; want %q", ids(page), err, since)
			}
			matched, err := ch.Matched(t.Context(), reconcile.MatchedQuery{
				TenantID: "default", After: cursor.Position{StartTimeNS: at - 1}, BeforeNS: at + 10, EndedFromNS: at, EndedToNS: math.MaxInt64, Limit: 10,
			})
			if err != nil || len(matched) != len(since) {
				t.Errorf("matched: %+v, %v; want %q", matched, err, since)
			}
			if n := observed(t, ch, cursor.Range{FromNS: at - 1, ToNS: at + 10}, rules.Failed); n != len(c.want) {
				t.Errorf("fingerprints count %d", n)
			}
			for id, r := range c.want {
				e, there, err := ch.Exchange(t.Context(), "default", cursor.Position{StartTimeNS: at, ExecutionID: id})
				if err != nil || !there || e.DurationNS != r.durationNS {
					t.Errorf("exchange %s: %+v, %v, %v", id, e, there, err)
				}
			}
			least := int64(1)
			total, err := matching(t.Context(), ch, cursor.Range{FromNS: at - 1, ToNS: at + 10},
				source.Narrowing{Filter: rules.Filter{Statuses: []rules.Status{rules.Completed}, MinDurationMS: &least}})
			if err != nil || total != 1 {
				t.Errorf("%d by duration, %v", total, err)
			}
			took, err := ch.Durations(t.Context(), rules.DurationQuery{TenantID: "default", FromNS: at - 1, ToNS: at + 10, Limit: 10})
			if err != nil || took.Exchanges != 1 || took.MedianNS < century {
				t.Errorf("durations: %+v, %v", took, err)
			}
			all := time.Duration(max(0, db.Now(t)-at)) + time.Hour
			if report, err := ch.Check(t.Context(), clickhouse.CheckOptions{Window: all}); err != nil || report.Broken() {
				t.Errorf("check: %+v, %v", report.Findings, err)
			}
		})
	}
}

// ids returns the ids of exchanges.
func ids(list []rules.Exchange) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.ExecutionID
	}
	return out
}

// TestStartOutOfReachNamesTheRemedy has a row whose start cannot be compared with nanoseconds in
// any query.
func TestStartOutOfReachNamesTheRemedy(t *testing.T) {
	db := chtest.New(t)
	for _, statement := range []string{
		`CREATE TABLE jobs (tenant String, start DateTime64(3), id String) ENGINE = MergeTree ORDER BY (tenant, start)`,
		fmt.Sprintf(`INSERT INTO jobs VALUES ('default', fromUnixTimestamp64Milli(toInt64(%d)), 'a'), ('default', toDateTime64('2299-12-31 00:00:00', 3), 'b')`, base/1e6),
	} {
		if err := db.Conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	ch := openWith(t, db, clickhouse.Mapping{
		Table: "jobs", TenantID: "tenant", StartTime: "start", ExecutionID: "id", Environment: "''", Application: "''", Route: "''", Failed: "true",
	})
	_, err := found(ch.Scan(t.Context(), scan(cursor.Position{StartTimeNS: base - 1e9}, base+10)))
	if err == nil || !strings.Contains(err.Error(), "a row of the table jobs contains a time before 1677-09-21 or after 2262-04-11: correct it") {
		t.Errorf("%v; want an error that says what to do", err)
	}
}
