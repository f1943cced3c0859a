package clickhouse_test

import (
	"errors"
	"fmt"
	"testing"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// insertLarge writes failed exchanges that begin at base, a nanosecond apart, each on a route of its own, with messages of so many bytes.
func insertLarge(t *testing.T, db chtest.Database, rows, bytes int) {
	t.Helper()
	const once = 20 // the engine holds the rows of an INSERT in memory
	for from := 0; from < rows; from += once {
		if err := db.Conn.Exec(t.Context(), fmt.Sprintf(`
			INSERT INTO exchanges (tenant_id, start_time, route_id, execution_id, end_time, status, error_message)
			SELECT 'default', fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number), 'UTC') AS start, concat('route-', toString(number)), toString(number), start,
				'FAILED', repeat('0123456789abcdef', %d)
			FROM numbers(%d, %d)`, base, bytes/16, from, min(once, rows-from))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAScanIsBoundedInBytes has rows of a megabyte: a scan for many of them returns an error, and
// never claims that there are no more; a scan for a single row reads it.
func TestAScanIsBoundedInBytes(t *testing.T) {
	const rows, large = 40, 1 << 20
	db := chtest.New(t)
	insertLarge(t, db, rows, large)
	for _, c := range []struct {
		bytes, limit int
		tooMuch      bool
	}{
		{8 * large, 4, false},
		{8 * large, 20, true},
		{8 * large, 1000, true},
		{0, rows, false},
		{large / 2, 2, true},
		{large / 2, 1, false},
	} {
		ch, err := clickhouse.Open(clickhouse.Options{URL: db.URL, ScanBytes: c.bytes, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ch.Close() })
		for name, narrow := range map[string]*source.Narrowing{"all": nil, "narrowed": {Filter: rules.Filter{ErrorMessageContains: "def"}}} {
			s := scan(cursor.Position{StartTimeNS: base - 1}, base+rows)
			s.Limit, s.Narrow = c.limit, narrow
			page, err := found(ch.Scan(t.Context(), s))
			if c.tooMuch && !errors.Is(err, source.ErrTooMuch) || !c.tooMuch && (err != nil || len(page) != c.limit) {
				t.Errorf("%s: a scan for %d under a bound of %d: %d exchanges, %v", name, c.limit, c.bytes, len(page), err)
			}
		}
	}
}
