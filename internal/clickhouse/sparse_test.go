package clickhouse_test

import (
	"fmt"
	"strings"
	"testing"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// TestScanOfSparseColumns has a typical table: few exchanges fail, and not all of those have a
// message, a stack or a type. ClickHouse stores such columns sparsely. Each exchange must be read
// with its own values.
func TestScanOfSparseColumns(t *testing.T) {
	const parts, rows, failing, silent = 10, 1000, 40, 120
	db := chtest.New(t)
	if err := db.Conn.Exec(t.Context(), `SYSTEM STOP MERGES exchanges`); err != nil {
		t.Fatal(err)
	}
	for part := range parts {
		if err := db.Conn.Exec(t.Context(), fmt.Sprintf(`
			INSERT INTO exchanges (tenant_id, start_time, execution_id, end_time, duration, status, error_type, error_message, error_stack, correlation_id)
			SELECT 'default', fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number), 'UTC'), toString(number) AS id, now64(9), if(bad, number, 0),
				if(number %% %d = 0, 'FAILED', 'COMPLETED'), if(bad, id, ''), if(bad, id, ''), if(bad, id, ''), if(bad, id, '')
			FROM (SELECT number, number %% %[2]d = 0 AND number %% %d > 0 AS bad FROM numbers(%d, %d))`,
			base, failing, silent, part*rows, rows)); err != nil {
			t.Fatal(err)
		}
	}
	var sparse []string
	if err := db.Conn.QueryRow(t.Context(), `SELECT groupUniqArray(column) FROM system.parts_columns
		WHERE database = currentDatabase() AND active AND serialization_kind = 'Sparse'`).Scan(&sparse); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(sparse), "error_message") {
		t.Fatalf("the columns %v are sparse: the test shows nothing", sparse)
	}
	ch, err := clickhouse.Open(clickhouse.Options{URL: db.URL, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ch.Close() })
	for name, test := range map[string]struct {
		statuses []rules.Status
		narrow   *source.Narrowing
		limit    int
		want     int
	}{
		"failed":          {statuses: []rules.Status{rules.Failed}, limit: 1000, want: parts * rows / failing},
		"few failed":      {statuses: []rules.Status{rules.Failed}, limit: 20, want: 20},
		"all":             {statuses: []rules.Status{rules.Completed, rules.Failed}, limit: 5000, want: 5000},
		"with a message":  {statuses: []rules.Status{rules.Failed}, narrow: &source.Narrowing{Filter: rules.Filter{ErrorMessageContains: "1"}}, limit: 1000, want: 28},
		"more than lazy":  {statuses: []rules.Status{rules.Completed, rules.Failed}, limit: 20_000, want: parts * rows},
		"all but a few":   {statuses: []rules.Status{rules.Completed, rules.Failed}, limit: 30, want: 30},
		"completed alone": {statuses: []rules.Status{rules.Completed}, limit: 100, want: 100},
	} {
		s := scan(cursor.Position{StartTimeNS: base - 1}, base+parts*rows)
		s.Statuses, s.Narrow, s.Limit = test.statuses, test.narrow, test.limit
		page, err := found(ch.Scan(t.Context(), s))
		if err != nil {
			t.Fatal(err)
		}
		wrong := 0
		for i := range page {
			e := &page[i]
			own := e.ExecutionID
			number := e.StartTimeNS - base
			if number%failing != 0 || number%silent == 0 {
				own, number = "", 0
			}
			if e.ErrorMessage != own || e.ErrorStack != own || e.ErrorType != own || e.CorrelationID != own || e.DurationNS != number {
				wrong++
			}
		}
		if wrong > 0 || len(page) != test.want {
			t.Errorf("%s: %d exchanges, want %d, and %d of them with what belongs to others", name, len(page), test.want, wrong)
		}
	}
}
