package clickhouse_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// countingReads opens a source behind a proxy that sums up the rows that the engine read.
func countingReads(t *testing.T, db chtest.Database, m clickhouse.Mapping) (*clickhouse.Source, *atomic.Int64) {
	t.Helper()
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	var read atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: u.Host})
	proxy.ModifyResponse = func(r *http.Response) error {
		var summary struct {
			ReadRows string `json:"read_rows"`
		}
		header := r.Header.Get("X-ClickHouse-Summary")
		if err := json.Unmarshal([]byte(header), &summary); err != nil {
			return fmt.Errorf("X-ClickHouse-Summary %q: %w", header, err)
		}
		n, err := strconv.ParseInt(summary.ReadRows, 10, 64)
		read.Add(n)
		return err
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	u.Host = front.Listener.Addr().String()
	ch, err := clickhouse.Open(clickhouse.Options{URL: u.String(), Mapping: m, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ch.Close() })
	return ch, &read
}

// TestReadingDoesNotGrowWithHistory checks, by the engine's own account, that a pass reads what is
// in its range and, of each part that it touches, at most one granule more at either end, however
// much history there is: with the default sort key for the share of 10,000 tenants, with the former
// one for a single tenant. A granule has 8,192 rows, the last one of a part up to twice as many. A
// scan may count a row twice: ClickHouse reads the wide columns of the rows to return in a second
// step.
func TestReadingDoesNotGrowWithHistory(t *testing.T) {
	const granule, perSecond, of = 8192, 1000, 8
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("tenant-%d", i))
	}
	for _, c := range []struct {
		table, tenant string
		tenants       source.Tenants
	}{
		{"exchanges", "concat('tenant-', toString(cityHash64(number) % 10000))", share(names, 3, of)},
		{"former", "'default'", tenants("default")},
	} {
		t.Run(c.table, func(t *testing.T) {
			db := chtest.New(t)
			exec := func(statement string) {
				t.Helper()
				if err := db.Conn.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			exec(former)
			fill := func(from, rows int) {
				t.Helper()
				exec(fmt.Sprintf(`
					INSERT INTO %s (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status)
					SELECT %s, fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * 1000000, 'UTC'), 'production', 'orders', 'r',
						toString(number), NULL, 1, if(number %% 50 = 0, 'FAILED', 'COMPLETED')
					FROM numbers(%d, %d)`, c.table, c.tenant, base, from, rows))
			}
			m := clickhouse.Exchanges()
			m.Table = c.table
			ch, read := countingReads(t, db, m)
			// hold makes a pass over the last rows, some of which are new, and checks how much it
			// reads.
			hold := func(what string, all, last, fresh int64) {
				t.Helper()
				end := base + all*1_000_000
				s := source.Scan{
					Tenants: c.tenants, After: cursor.Position{StartTimeNS: end - fresh*1_000_000, ExecutionID: "x"}, BeforeNS: end,
					Statuses: []rules.Status{rules.Failed}, Limit: 1000,
				}
				plan, err := clickhouse.Read(t.Context(), ch, s)
				if err != nil {
					t.Fatal(err)
				}
				bounds := map[string]int64{}
				for name, query := range map[string]func() (rows, steps int64, err error){
					"observe": func() (int64, int64, error) {
						_, err := ch.Observe(t.Context(), source.ObserveQuery{
							Tenants: c.tenants, Statuses: s.Statuses, FromNS: end - last*1_000_000, ToNS: end, WidthNS: second,
						})
						return last, 1, err
					},
					"scan": func() (int64, int64, error) { _, err := ch.Scan(t.Context(), s); return fresh, 2, err },
				} {
					read.Store(0)
					rows, steps, err := query()
					if err != nil {
						t.Fatal(err)
					}
					bounds[name] = read.Load()
					if bound := steps * (rows + int64(plan.Parts+1)*2*granule); read.Load() > bound {
						t.Errorf("%s: %s over %d rows reads %d of %d parts, want at most %d", what, name, rows, read.Load(), plan.Parts, bound)
					}
				}
				if bound := uint64(fresh+granule-1)/granule + plan.Parts; fresh > 0 && (plan.Granules == 0 || plan.Granules > bound) {
					t.Errorf("%s: a scan over %d rows reads %d granules of %d parts, want at most %d", what, fresh, plan.Granules, plan.Parts, bound)
				}
				t.Logf("%s, %d rows of which %d are new: %v rows are read", what, last, fresh, bounds)
			}
			fill(0, 100_000)
			exec("OPTIMIZE TABLE " + c.table + " FINAL")
			hold("a hundred thousand rows", 100_000, 10*perSecond, perSecond)
			fill(100_000, 900_000)
			exec("OPTIMIZE TABLE " + c.table + " FINAL")
			hold("a million rows, busy", 1_000_000, 10*perSecond, perSecond)
			hold("a million rows, much to do", 1_000_000, 100*perSecond, 100*perSecond)
			// No exchange has begun for a minute.
			hold("a million rows, idle", 1_060_000, 10*perSecond, 0)
			// Rows that have just arrived are in parts of their own.
			exec("SYSTEM STOP MERGES")
			for i := range 5 {
				fill(1_000_000+i*perSecond/5, perSecond/5)
			}
			hold("five small parts", 1_001_000, perSecond, perSecond)
			hold("five small parts and the one before", 1_001_000, 50*perSecond, 50*perSecond)
		})
	}
}
