package clickhouse_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// finding returns the finding with a subject and a verdict.
func finding(r *clickhouse.Report, about string, v clickhouse.Verdict) *clickhouse.Finding {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.About == about && f.Verdict == v {
			return f
		}
	}
	return nil
}

// remedied checks that each finding that is not OK says what to do.
func remedied(t *testing.T, r *clickhouse.Report) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Verdict != clickhouse.OK && f.Remedy == "" {
			t.Errorf("no remedy: %+v", f)
		}
	}
}

// TestCheckOfWhatIsNoMergeTree checks tables that have no sort key, or whose plan says nothing of granules.
func TestCheckOfWhatIsNoMergeTree(t *testing.T) {
	db := chtest.New(t)
	db.Insert(t, failed(db.Now(t)-3e9, "a"))
	for table, c := range map[string]struct {
		statement string
		warns     []string
	}{
		"a_view":    {"CREATE VIEW a_view AS SELECT * FROM exchanges", []string{"sort key"}},
		"in_memory": {"CREATE TABLE in_memory ENGINE = Memory AS SELECT * FROM exchanges", []string{"sort key", "tick"}},
	} {
		if err := db.Conn.Exec(t.Context(), c.statement); err != nil {
			t.Fatal(err)
		}
		m := clickhouse.Exchanges()
		m.Table = table
		report, err := openWith(t, db, m).Check(t.Context(), clickhouse.CheckOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, about := range c.warns {
			if finding(&report, about, clickhouse.Warn) == nil {
				t.Errorf("%s: %+v, want a warning about the %s", table, report.Findings, about)
			}
		}
		remedied(t, &report)
	}
}

func TestCheckOfAMissingTable(t *testing.T) {
	m := clickhouse.Exchanges()
	for table, says := range map[string]string{
		"nowhere":           "table: nowhere does not exist; create the table nowhere",
		"nowhere.exchanges": "table: nowhere.exchanges does not exist; create the database",
	} {
		m.Table = table
		report, err := openWith(t, chtest.New(t), m).CheckMapping(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if report.Exists || !report.Broken() || !strings.Contains(report.Err().Error(), says) {
			t.Errorf("%+v, want %q", report, says)
		}
	}
}

func TestCheckNamesWhatIsOfAnotherType(t *testing.T) {
	db := chtest.New(t)
	err := db.Conn.Exec(t.Context(), `CREATE TABLE odd (ts DateTime, at Nullable(DateTime64(3)), id UUID, name Nullable(String), kind Enum('a' = 1),
		ok Nullable(UInt8), tags Map(String, UInt64), took Float64, fine LowCardinality(String)) ENGINE = MergeTree ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	report, err := openWith(t, db, clickhouse.Mapping{
		Table: "odd", Tenant: "a", StartTime: "ts", ExecutionID: "id", EndTime: "at", Environment: "fine", Application: "name", Route: "absent",
		ErrorType: "kind", Duration: "took", Attributes: "tags", Failed: "ok", Terminal: "fine = 'x'", InsertedAt: "ts",
	}).CheckMapping(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for about, remedy := range map[string]string{
		"start_time":   "set start_time to toDateTime64(ts, 0)",
		"execution_id": "set execution_id to toString(id)",
		"application":  "set application to ifNull(name, '')",
		"route":        "correct route in the mapping",
		"error_type":   "set error_type to toString(kind)",
		"duration":     "set duration to toUInt64(greatest(ifNull(took, 0), 0)), times whatever makes it nanoseconds",
		"attributes":   "set attributes to CAST(tags, 'Map(String, String)'), or leave it empty",
		"failed":       "set failed to ifNull(ok, false)",
	} {
		f := finding(&report, about, clickhouse.Broken)
		if f == nil || f.Remedy != remedy {
			t.Errorf("%s: %+v, want the remedy %q", about, f, remedy)
		}
	}
	for _, about := range []string{"end_time", "environment", "terminal", "inserted_at"} {
		if finding(&report, about, clickhouse.OK) == nil {
			t.Errorf("%s is not accepted: %+v", about, report.Findings)
		}
	}
}

func TestCheckAcceptsThePresets(t *testing.T) {
	db := otelDatabase(t)
	for _, p := range clickhouse.Presets() {
		m, err := p.Mapping()
		if err != nil {
			t.Fatal(err)
		}
		report, err := openWith(t, db, m).Check(t.Context(), clickhouse.CheckOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if report.Broken() || report.Layout == nil || report.Layout.SortKey == "" {
			t.Errorf("%s: %+v", p, report)
		}
	}
}

// TestCheckNamesTheRemedyForColumnsOfJSON checks that each expression of the preset that does not fit attributes in columns
// of JSON leads to the section with those that do, and that this section exists.
func TestCheckNamesTheRemedyForColumnsOfJSON(t *testing.T) {
	db := chtest.New(t)
	if err := db.Conn.Exec(t.Context(), strings.ReplaceAll(otelTraces, "Map(LowCardinality(String), String)", "JSON")); err != nil {
		t.Fatal(err)
	}
	report, err := openWith(t, db, clickhouse.OtelTraces()).CheckMapping(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	broken := 0
	for _, f := range report.Findings {
		if f.Verdict != clickhouse.Broken {
			continue
		}
		broken++
		if !strings.Contains(f.Remedy, `the section "JSON columns" of docs/sources.md`) {
			t.Errorf("%s: %s → %s", f.About, f.Text, f.Remedy)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "sources.md"))
	if err != nil || broken == 0 || !strings.Contains(string(page), "\n### JSON columns\n") {
		t.Errorf("%d expressions do not fit, %v", broken, err)
	}
}

func TestCheckLooksAtRows(t *testing.T) {
	db := chtest.New(t)
	now := db.Now(t)
	row := func(offset int64, id string) rules.Exchange {
		e := failed(now+offset, id)
		end := e.StartTimeNS + 2_000_000_000
		e.EndTimeNS = &end
		return e
	}
	endless := row(-3e9, "endless")
	endless.EndTimeNS = nil
	running := row(-3e9, "running")
	running.Status = rules.Running
	db.Insert(t, row(-10e9, "a"), row(-9e9, "a"), row(-8e9, ""), row(60e9, "ahead"), row(-7200e9, "old"), endless, running)
	db.Insert(t, row(-10e9, "a"))
	report, err := open(t, db).Check(t.Context(), clickhouse.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := report.Sample
	if s.Rows != 6 || s.SharedIDs != 1 || s.Repeated != 1 || s.EmptyID != 1 || s.Future != 1 || s.WithoutEnd != 1 || s.LongestSeconds == nil || *s.LongestSeconds != 2 {
		t.Errorf("%+v", s)
	}
	if f := finding(&report, "execution_id", clickhouse.Broken); f == nil || !strings.Contains(f.Text, "1 of 6 rows") {
		t.Errorf("empty ids: %+v", report.Findings)
	}
	if finding(&report, "end_time", clickhouse.Warn) == nil {
		t.Errorf("rows without an end: %+v", report.Findings)
	}
	remedied(t, &report)
	if report.Tick == nil || report.Tick.Granules == 0 || report.Tick.Granules > report.Tick.Of {
		t.Errorf("tick: %+v", report.Tick)
	}
	for _, prune := range []string{
		"start_time <= {to} AND start_time >= {from}",
		"ifNull(end_time >= {from}, false)", // does not match the one without an end
	} {
		m := clickhouse.Exchanges()
		m.Prune = prune
		report, err := openWith(t, db, m).Check(t.Context(), clickhouse.CheckOptions{Window: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		hides := report.Sample.Pruned > 0 && finding(&report, "prune", clickhouse.Broken) != nil
		if want := strings.Contains(prune, "end_time"); hides != want {
			t.Errorf("%s: hides %d rows", prune, report.Sample.Pruned)
		}
	}
}

// TestCheckSaysThatTerminalLeavesNothing checks a condition that no row meets, because of a letter.
func TestCheckSaysThatTerminalLeavesNothing(t *testing.T) {
	db := chtest.New(t)
	now := db.Now(t)
	db.Insert(t, failed(now-3e9, "a"), failed(now-2e9, "b"))
	for terminal, want := range map[string]string{
		"status = 'Failed'":    "terminal leaves out all 2 rows that started in the last 1h0m0s",
		"route_id = 'nowhere'": "terminal leaves out all 2 rows that started in the last 1h0m0s",
		"status = 'FAILED'":    "",
	} {
		m := clickhouse.Exchanges()
		m.Terminal = terminal
		report, err := openWith(t, db, m).Check(t.Context(), clickhouse.CheckOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f := finding(&report, "rows", clickhouse.Warn)
		if (f == nil) != (want == "") || f != nil && (!strings.Contains(f.Text, want) || !strings.Contains(f.Remedy, "compare terminal")) {
			t.Errorf("%s: %+v, want %q", terminal, f, want)
		}
	}
}

// TestCheckDistinguishesTimeZonesFromSilence watches a table whose times are behind or ahead of the
// clock, with and without exchanges arriving.
func TestCheckDistinguishesTimeZonesFromSilence(t *testing.T) {
	t.Parallel()
	const hour = int64(3600e9)
	for name, c := range map[string]struct {
		// earlier and arriving are the starts of the rows that exist before the watch and of those
		// that arrive during it, relative to now, in nanoseconds.
		earlier, arriving []int64
		window            time.Duration
		broken            bool
		// about is the subject of a finding and says a part of its text; it is an error if broken
		// is set, otherwise a warning.
		about, says string
	}{
		"5 h behind":                        {[]int64{-6 * hour, -5*hour - 9e9}, []int64{-5 * hour, -5*hour - 2e9}, 0, true, "time zone", "about 5h0m0s after its end"},
		"5 h behind, in a longer window":    {[]int64{-6 * hour, -5*hour - 9e9}, []int64{-5 * hour, -5*hour - 2e9}, 6 * time.Hour, true, "time zone", "about 5h0m0s after its end"},
		"2 h ahead, since a moment":         {[]int64{2*hour - 60e9, 2*hour - 5e9}, []int64{2 * hour}, 0, true, "time zone", "2 of 2 rows (100%) start in the future"},
		"2 h ahead, since long ago":         {[]int64{-30 * 60e9, hour, 2*hour - 5e9}, []int64{2 * hour}, 0, true, "time zone", "become visible start in the future"},
		"quiet for 5 h":                     {[]int64{-6 * hour, -5 * hour}, nil, 0, false, "rows", "the newest started 5h0m"},
		"quiet for days":                    {[]int64{-60 * hour}, nil, 0, false, "rows", "started in the last 1h0m0s"},
		"quiet for 5 h, and no more":        {[]int64{-6 * hour, -5 * hour}, []int64{-1e9}, 0, false, "rows", "the newest started 5h0m"},
		"a load of what happened meanwhile": {[]int64{-9 * hour}, []int64{-8 * hour, -5 * hour, -5*hour - 1e9, -2 * hour}, 0, false, "look-back", "beyond the default look-back"},
		"one clock that is ahead":           {[]int64{-60e9, -50e9, 2 * hour}, []int64{-1e9, 2 * hour}, 0, false, "clock", "1 of 3 rows"},
		"clocks that are a little ahead":    {[]int64{20e9}, []int64{30e9}, 0, false, "clock", "1 of 1 rows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var report clickhouse.Report
			longEnough(t, 2, func(lasts time.Duration) (read int) {
				db := chtest.New(t)
				insert := func(kind string, offsets []int64) {
					now := db.Now(t)
					var list []rules.Exchange
					for i, offset := range offsets {
						list = append(list, failed(now+offset, fmt.Sprint(kind, i)))
					}
					if len(list) > 0 {
						db.Insert(t, list...)
					}
				}
				insert("earlier", c.earlier)
				var err error
				report, err = open(t, db).Check(t.Context(), clickhouse.CheckOptions{
					Window: c.window, Watch: lasts, Every: 20 * time.Millisecond, Settle: time.Second,
					Progress: func(time.Duration, int) {
						if read++; read == 1 {
							insert("arriving", c.arriving)
						}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				return read
			})
			verdict := clickhouse.Warn
			if c.broken {
				verdict = clickhouse.Broken
			}
			f := finding(&report, c.about, verdict)
			if report.Broken() != c.broken || f == nil || !strings.Contains(f.Text, c.says) {
				t.Fatalf("broken %v, want %v and %s %s: %q\n%+v", report.Broken(), c.broken, verdict, c.about, c.says, report.Findings)
			}
			if c.broken && (!strings.Contains(f.Remedy, "UTC") || finding(&report, "look-back", clickhouse.Warn) != nil || finding(&report, "look-back", clickhouse.OK) != nil) {
				t.Errorf("the remedy is a look-back: %+v", report.Findings)
			}
		})
	}
}

// TestCheckSaysWhatManyTenantsCost checks tables of 1,000 tenants and of one, sorted by tenant and
// by start time.
func TestCheckSaysWhatManyTenantsCost(t *testing.T) {
	db := chtest.New(t)
	now := db.Now(t)
	if err := db.Conn.Exec(t.Context(), former); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		table, tenant string
		tenants       uint64
		// few and many are the largest numbers of granules that are read for one tenant and for
		// all.
		few, many uint64
		warns     bool
	}{
		{"exchanges", "toString(number % 1000)", 1000, 2, 2, false},
		{"former", "toString(number % 1000)", 1000, 2, 100, true},
		{"former", "'default'", 1, 2, 2, false},
	} {
		for _, statement := range []string{
			"TRUNCATE TABLE " + c.table,
			fmt.Sprintf(`INSERT INTO %s (tenant_id, start_time, execution_id, end_time, status)
				SELECT %s, fromUnixTimestamp64Nano(toInt64(%d) - toInt64(number) * 1000000, 'UTC') AS s, toString(number), s, 'FAILED' FROM numbers(700000)`, c.table, c.tenant, now),
			"OPTIMIZE TABLE " + c.table + " FINAL",
		} {
			if err := db.Conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		m := clickhouse.Exchanges()
		m.Table = c.table
		report, err := openWith(t, db, m).Check(t.Context(), clickhouse.CheckOptions{})
		if err != nil || report.Broken() {
			t.Fatalf("%+v, %v", report.Err(), err)
		}
		tick := report.Tick
		if report.Sample.Tenants != c.tenants || tick.Granules == 0 || tick.Granules > c.few || tick.AllTenants == 0 || tick.AllTenants > c.many {
			t.Errorf("%s of %d tenants: %d seen, %+v", c.table, c.tenants, report.Sample.Tenants, tick)
		}
		f := finding(&report, "many tenants", clickhouse.Warn)
		if (f != nil) != c.warns || f != nil && !strings.Contains(f.Remedy, "sort the table by start_time first and tenant_id second") {
			t.Errorf("%s of %d tenants: %+v", c.table, c.tenants, report.Findings)
		}
	}
}

// TestCheckTellsTenantsApart has two tenants that number their exchanges alike. A rule is of one tenant, so their
// exchanges are not taken for each other.
func TestCheckTellsTenantsApart(t *testing.T) {
	db := chtest.New(t)
	now := db.Now(t)
	mine, other, again := failed(now-3e9, "1"), failed(now-2e9, "1"), failed(now-3e9, "2")
	other.TenantID = "other"
	same := again
	same.TenantID = "other"
	db.Insert(t, mine, other, again, same)
	report, err := open(t, db).Check(t.Context(), clickhouse.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := report.Sample; s.Rows != 4 || s.Tenants != 2 || s.SharedIDs != 0 || s.Repeated != 0 {
		t.Errorf("%+v", s)
	}
	if f := finding(&report, "execution_id", clickhouse.Warn); f != nil {
		t.Errorf("%+v", f)
	}
}
