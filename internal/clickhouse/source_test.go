package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

func open(t *testing.T, db chtest.Database) *clickhouse.Source {
	t.Helper()
	ch, err := clickhouse.Open(clickhouse.Options{URL: db.URL, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ch.Close() })
	return ch
}

func failed(ns int64, id string) rules.Exchange {
	end := ns + 5
	return rules.Exchange{
		TenantID: "default", StartTimeNS: ns, ExecutionID: id, Environment: "production", Application: "orders",
		Route: "order-to-erp", Status: rules.Failed, EndTimeNS: &end, DurationNS: 5, ErrorType: "ConnectException",
		ErrorMessage: "ERP refused", ErrorStack: "at x", CorrelationID: "c-1", Attributes: map[string]string{"k": "v"},
	}
}

func scan(after cursor.Position, before int64) source.Scan {
	return source.Scan{Tenants: tenants("default"), After: after, BeforeNS: before, Statuses: []rules.Status{rules.Failed}, Limit: 100}
}

// tenants returns the tenants with these names.
func tenants(names ...string) source.Tenants { return source.Tenants{Names: names} }

// found returns the exchanges of a page.
func found(page source.Page, err error) ([]rules.Exchange, error) { return page.Exchanges, err }

// matching returns how many exchanges of a range match, according to ClickHouse.
func matching(ctx context.Context, ch *clickhouse.Source, within cursor.Range, narrow source.Narrowing) (int, error) {
	page, err := ch.Scan(ctx, source.Scan{
		Tenants: tenants("default"), After: cursor.Position{StartTimeNS: within.FromNS}, BeforeNS: within.ToNS, Limit: 1000, Narrow: &narrow,
	})
	return len(page.Exchanges), err
}

// observed returns how many rows of the tenant default begin in a range, according to the
// fingerprints.
func observed(tb testing.TB, ch *clickhouse.Source, within cursor.Range, statuses ...rules.Status) int {
	tb.Helper()
	o, err := ch.Observe(tb.Context(), source.ObserveQuery{
		Tenants: tenants("default"), Statuses: statuses, FromNS: within.FromNS, ToNS: within.ToNS, WidthNS: 1_000_000_000,
	})
	if err != nil {
		tb.Fatal(err)
	}
	var n uint64
	for _, f := range o.Fingerprints {
		n += f.Count
	}
	return int(n)
}

const base = int64(1_795_244_520_123_456_789)

func TestURLsOfServersAreTakenAsDocumented(t *testing.T) {
	for url, says := range map[string]string{
		"clickhouse://reader:pw@clickhouse.example.com:9000/telemetry":                           "",
		"clickhouse://reader:pw@clickhouse.example.com:9440/telemetry?secure=true":               "",
		"http://reader:pw@clickhouse.example.com:8123/telemetry":                                 "",
		"https://reader:pw@clickhouse.example.com:8443/telemetry":                                "",
		"https://reader:pw@clickhouse.example.com:8443/telemetry?dial_timeout=5s":                "",
		"https://reader:pw@clickhouse.example.com:8443/telemetry?secure":                         "",
		"https://reader:pw@clickhouse.example.com:8443/telemetry?dial_timeout=5s&secure=true":    "",
		"https://reader:pw@clickhouse.example.com:8443/telemetry?secure=false&insecure=whatever": "https without TLS",
		"http://reader:pw@clickhouse.example.com:8123/telemetry?secure=true":                     "http with TLS",
		"clickhouse://reader:pw@clickhouse.example.com/telemetry?secure=true":                    "9440 with ?secure=true",
		"mysql://reader:pw@clickhouse.example.com:9004/telemetry":                                "nor http:// or https://",
	} {
		err := clickhouse.CheckURL(url)
		if (says == "") != (err == nil) || says != "" && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
	}
}

// TestHTTPSIsSpoken queries a server that only speaks HTTPS.
func TestHTTPSIsSpoken(t *testing.T) {
	db := chtest.New(t)
	behind, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind.Host}))
	t.Cleanup(front.Close)
	behind.Scheme, behind.Host, behind.RawQuery = "https", front.Listener.Addr().String(), "skip_verify=true"
	ch, err := clickhouse.Open(clickhouse.Options{URL: behind.String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ch.Close() })
	if _, err := ch.Now(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAPortForHTTPIsSuspected uses the native protocol with a server that waits for more, as an
// HTTP server does.
func TestAPortForHTTPIsSuspected(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ch, err := clickhouse.Open(clickhouse.Options{URL: "clickhouse://reader:pw@" + listener.Addr().String() + "/telemetry?dial_timeout=50ms"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ch.Close() })
	for name, ask := range map[string]func() error{
		"ping":  func() error { return ch.Ping(t.Context()) },
		"check": func() error { _, err := ch.CheckMapping(t.Context()); return err },
		"scan":  func() error { _, err := found(ch.Scan(t.Context(), scan(cursor.Position{}, base))); return err },
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), "http://") {
			t.Errorf("%s: %v, want the remedy", name, err)
		}
	}
}

// former creates a table with the former sort key of the default table.
const former = "CREATE TABLE former AS exchanges ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(start_time) " +
	"PRIMARY KEY (tenant_id, start_time) ORDER BY (tenant_id, start_time, environment, application_id, route_id, execution_id)"

// TestRowsAreCountedWithoutReadingThem counts running exchanges and duplicates as well, and checks
// that ClickHouse counts whole granules by their number. If the table is sorted by start time, the
// rows of all tenants are counted.
func TestRowsAreCountedWithoutReadingThem(t *testing.T) {
	db := chtest.New(t)
	db.KeepRows(t)
	other, running := failed(base+3, "other"), failed(base+3, "running")
	other.TenantID, running.Status, running.EndTimeNS = "other", rules.Running, nil
	var many []rules.Exchange
	for i := range int64(3 * 8192) {
		many = append(many, failed(base+10+i, strconv.FormatInt(i, 10)))
	}
	db.Insert(t, append(many, failed(base, "a"), failed(base+1, "b"), other, running)...)
	db.Insert(t, failed(base+1, "b"))
	for _, statement := range []string{
		former, "SYSTEM STOP MERGES former", "INSERT INTO former SELECT * FROM exchanges",
		// An insert merges its own rows.
		"INSERT INTO former SELECT * FROM exchanges WHERE execution_id = 'b'",
	} {
		if err := db.Conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for table, others := range map[string]uint64{"exchanges": 1, "former": 0} {
		m := clickhouse.Exchanges()
		m.Table = table
		ch := openWith(t, db, m)
		q := source.RowCountQuery{Tenants: tenants("default"), Ranges: []cursor.Range{
			{FromNS: base, ToNS: base + 1e9}, {FromNS: base + 1, ToNS: base + 4}, {FromNS: base, ToNS: base + 1}, {FromNS: base + 4, ToNS: base + 10},
		}}
		want := []uint64{4 + 3*8192 + others, 3 + others, 1, 0}
		if got, err := ch.RowCounts(t.Context(), q); err != nil || !slices.Equal(got.Counts, want) {
			t.Errorf("%s: %v rows, %v; want %v", table, got.Counts, err, want)
		}
		q.Ranges = q.Ranges[:1]
		plan, err := clickhouse.CountingPlan(t.Context(), ch, q)
		if err != nil || !strings.Contains(plan, "_exact_count_projection") {
			t.Errorf("%v; the rows of %s are read:\n%s", err, table, plan)
		}
	}
}

func TestNanosecondsSurvive(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	want := []rules.Exchange{failed(base, "b"), failed(base+1, "a"), failed(base+2, "c")}
	db.Insert(t, want[2], want[0], want[1])
	got, err := found(ch.Scan(t.Context(), scan(cursor.Position{StartTimeNS: base}, base+3)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		scan source.Scan
		want []string
	}{
		"after is exclusive":        {scan(cursor.Position{StartTimeNS: base, ExecutionID: "b"}, base+3), []string{"a", "c"}},
		"an equal time, lesser id":  {scan(cursor.Position{StartTimeNS: base, ExecutionID: "a"}, base+3), []string{"b", "a", "c"}},
		"before is exclusive":       {scan(cursor.Position{StartTimeNS: base}, base+2), []string{"b", "a"}},
		"one nanosecond later":      {scan(cursor.Position{StartTimeNS: base + 1, ExecutionID: "a"}, base+3), []string{"c"}},
		"nothing in an empty range": {scan(cursor.Position{StartTimeNS: base + 2, ExecutionID: "c"}, base+3), nil},
	} {
		page, err := found(ch.Scan(t.Context(), c.scan))
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range page {
			ids = append(ids, e.ExecutionID)
		}
		if !slices.Equal(ids, c.want) {
			t.Errorf("%s: got %v, want %v", name, ids, c.want)
		}
	}
}

// TestScanBeginsAfterAnExchangeWithoutAnID has more rows of one exchange without an id than fit on
// a page, at the very position after which a scan begins: if they were returned, pages would never
// end, and if they were dropped from a full page, it would look like the last one.
func TestScanBeginsAfterAnExchangeWithoutAnID(t *testing.T) {
	db := chtest.New(t)
	db.KeepRows(t)
	ch := open(t, db)
	for range 3 {
		db.Insert(t, failed(base, ""))
	}
	db.Insert(t, failed(base, "a"), failed(base+1, ""), failed(base+1, "b"))
	var ids []string
	at := cursor.Position{StartTimeNS: base}
	for range 10 {
		s := scan(at, base+2)
		s.Limit = 2
		page, err := ch.Scan(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Exchanges {
			ids = append(ids, e.ExecutionID)
			at = e.Position()
		}
		if !page.More {
			break
		}
	}
	if want := []string{"a", "", "b"}; !slices.Equal(ids, want) {
		t.Errorf("pages after a position without an id hold %q, want %q", ids, want)
	}
}

// TestOnlyTerminalRowsOfTheStatusesAreRead has a row of each status in the default table, and in
// one whose condition for failure a running exchange can satisfy as well.
func TestOnlyTerminalRowsOfTheStatusesAreRead(t *testing.T) {
	db := chtest.New(t)
	for i, status := range []rules.Status{rules.Running, rules.Completed, rules.Failed} {
		e := failed(base+int64(i), string(status))
		e.Status = status
		db.Insert(t, e)
	}
	early := clickhouse.Exchanges()
	early.Failed = "error_type != ''"
	for name, m := range map[string]clickhouse.Mapping{"as usual": clickhouse.Exchanges(), "failing while it runs": early} {
		ch := openWith(t, db, m)
		for statuses, want := range map[rules.Status][]string{
			rules.Failed: {"FAILED"}, rules.Completed: {"COMPLETED"}, "": {"COMPLETED", "FAILED"},
		} {
			s := scan(cursor.Position{}, base+10)
			if s.Statuses = []rules.Status{statuses}; statuses == "" {
				s.Statuses = []rules.Status{rules.Failed, rules.Completed}
			}
			if name != "as usual" {
				want = map[rules.Status][]string{rules.Failed: {"COMPLETED", "FAILED"}, rules.Completed: nil, "": {"COMPLETED", "FAILED"}}[statuses]
			}
			page, err := found(ch.Scan(t.Context(), s))
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, e := range page {
				ids = append(ids, e.ExecutionID)
			}
			counted := observed(t, ch, cursor.Range{FromNS: base, ToNS: base + 10}, s.Statuses...)
			if !slices.Equal(ids, want) || counted != len(want) {
				t.Errorf("%s, statuses %v: rows %v, %d counted; want %v", name, s.Statuses, ids, counted, want)
			}
		}
	}
}

// TestPagesCoverEverythingOnce reads random rows, with arbitrary bytes in ids and with equal times,
// in pages of random size.
func TestPagesCoverEverythingOnce(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	ctx := t.Context()
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		tenant := fmt.Sprintf("tenant-%d", round)
		ids := rapid.SliceOfNDistinct(rapid.Custom(func(rt *rapid.T) string {
			return string(rapid.SliceOfN(rapid.SampledFrom([]byte("ab\x00\xff'\\|\t\n")), 1, 4).Draw(rt, "id"))
		}), 1, 20, rapid.ID[string]).Draw(rt, "ids")
		var rows []rules.Exchange
		for _, id := range ids {
			e := failed(base+rapid.Int64Range(0, 2).Draw(rt, "ns"), id)
			e.TenantID = tenant
			rows = append(rows, e)
		}
		db.Insert(t, rows...) //nolint:contextcheck // its context is that of t
		slices.SortFunc(rows, func(a, b rules.Exchange) int { return a.Position().Compare(b.Position()) })
		want := make([]cursor.Position, len(rows))
		for i := range rows {
			want[i] = rows[i].Position()
		}
		var got []cursor.Position
		at := cursor.Position{StartTimeNS: base - 1}
		for limit := rapid.IntRange(1, 5).Draw(rt, "limit"); ; {
			s := scan(at, base+10)
			s.Tenants, s.Limit = tenants(tenant), limit
			page, err := ch.Scan(ctx, s)
			if err != nil {
				rt.Fatal(err)
			}
			for i := range page.Exchanges {
				got = append(got, page.Exchanges[i].Position())
			}
			if !page.More {
				break
			}
			at = got[len(got)-1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestReadsOnly(t *testing.T) {
	db := chtest.New(t)
	ch, err := clickhouse.Open(clickhouse.Options{URL: db.URL, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ch.Close() })
	if err := clickhouse.TryWrite(t.Context(), ch); err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Errorf("a write under the source's settings gave %v", err)
	}
}

func TestOpenRefusesWhatIsNoTable(t *testing.T) {
	for _, table := range []string{"a b", "x;DROP", "a.b.c", "`q`"} {
		mapping := clickhouse.Exchanges()
		mapping.Table = table
		if _, err := clickhouse.Open(clickhouse.Options{URL: "http://localhost:1/x", Mapping: mapping}); err == nil {
			t.Errorf("opened table %q", table)
		}
	}
}

func TestErrorsHideThePassword(t *testing.T) {
	_, err := clickhouse.Open(clickhouse.Options{URL: "http://user:hunter2@bad host:99/x"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("err = %v", err)
	}
}

// TestScanNarrowsToApplications checks that names are compared as bytes: a narrowed scan returns
// the same as a scan followed by comparing each name.
func TestScanNarrowsToApplications(t *testing.T) {
	db := chtest.New(t)
	names := []string{"orders", "Orders", "orders ", "order", "orders*", "", ",", "a,b", "a", "b", "it's", "%", "\\", "\xff\xfe", "Ærø", "{x:String}", "a\x00", "\n"}
	var rows []rules.Exchange
	for i, name := range names {
		rows = append(rows, rules.Exchange{
			TenantID: "default", StartTimeNS: base + int64(i), ExecutionID: fmt.Sprint(i), Status: rules.Failed, Application: name,
		})
	}
	db.Insert(t, rows...)
	ch := openWith(t, db, clickhouse.Exchanges())
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("application-%d", i))
	}
	lists := [][]string{names, {"orders", "a,b"}, {"a", "b"}, append(many[:199:199], "it's"), many}
	for _, name := range names {
		// A rule cannot contain it.
		if name != "" {
			lists = append(lists, []string{name})
		}
	}
	for _, list := range lists {
		s := scan(cursor.Position{}, base+1000)
		s.Applications = list
		got, err := found(ch.Scan(t.Context(), s))
		if err != nil {
			t.Fatalf("%.80q: %v", list, err)
		}
		var found, want []string
		for i := range got {
			found = append(found, got[i].Application)
		}
		for _, name := range names {
			if slices.Contains(list, name) {
				want = append(want, name)
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("scan for %.80q found %q, want %q", list, found, want)
		}
	}
}

// TestScanNarrowsToDurations excludes completed exchanges that were too short, and no failed ones.
func TestScanNarrowsToDurations(t *testing.T) {
	db := chtest.New(t)
	const least = 2_000_000_000
	var rows []rules.Exchange
	for i, ns := range []int64{0, least - 1, least, least + 1} {
		for _, status := range []rules.Status{rules.Failed, rules.Completed} {
			end := base + int64(i) + ns
			rows = append(rows, rules.Exchange{
				TenantID: "default", StartTimeNS: base + int64(i), EndTimeNS: &end, DurationNS: ns, ExecutionID: fmt.Sprint(status, " ", i), Status: status,
			})
		}
	}
	db.Insert(t, rows...)
	failed := []string{"FAILED 0", "FAILED 1", "FAILED 2", "FAILED 3"}
	for name, m := range map[string]clickhouse.Mapping{"a column": clickhouse.Exchanges(), "from the end": withoutDuration()} {
		ch := openWith(t, db, m)
		for _, c := range []struct {
			statuses []rules.Status
			want     []string
		}{
			{[]rules.Status{rules.Failed}, failed},
			{[]rules.Status{rules.Completed}, []string{"COMPLETED 2", "COMPLETED 3"}},
			{[]rules.Status{rules.Completed, rules.Failed}, append([]string{"COMPLETED 2", "COMPLETED 3"}, failed...)},
		} {
			s := scan(cursor.Position{}, base+1000)
			s.Statuses, s.CompletedLeastNS = c.statuses, least
			got, err := found(ch.Scan(t.Context(), s))
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for i := range got {
				found = append(found, got[i].ExecutionID)
			}
			if slices.Sort(found); !slices.Equal(found, c.want) {
				t.Errorf("%s: a scan for %q found %q, want %q", name, c.statuses, found, c.want)
			}
		}
	}
}

// withoutDuration maps the default table without a column for the duration.
func withoutDuration() clickhouse.Mapping {
	m := clickhouse.Exchanges()
	m.Duration = ""
	return m
}

func TestDurationsAreOfWhatCompletedBefore(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	const second = int64(1_000_000_000)
	to := base
	var all []rules.Exchange
	add := func(i int64, change func(*rules.Exchange)) {
		e := failed(to-i*second, strconv.FormatInt(i, 10))
		e.Application, e.Route, e.Status, e.DurationNS = "orders", "order-to-erp", rules.Completed, i*second
		change(&e)
		all = append(all, e)
	}
	for i := int64(1); i <= 100; i++ {
		add(i, func(*rules.Exchange) {})
		add(i, func(e *rules.Exchange) {
			e.ExecutionID, e.Status, e.DurationNS = "failed"+e.ExecutionID, rules.Failed, 1
		})
		add(i, func(e *rules.Exchange) { e.ExecutionID, e.Route, e.DurationNS = "other"+e.ExecutionID, "other", 1 })
	}
	add(101, func(e *rules.Exchange) { e.Route = "*" })
	add(0, func(e *rules.Exchange) { e.DurationNS = 1 })
	add(999, func(e *rules.Exchange) { e.DurationNS = 1 })
	db.Insert(t, all...)
	q := rules.DurationQuery{
		TenantID: all[0].TenantID, FromNS: to - 500*second, ToNS: to, Limit: 1_000,
		Application: "orders", Route: "order-to-erp",
	}
	want := rules.Durations{Exchanges: 100, MedianNS: 51 * second, P95NS: 96 * second}
	if got, err := ch.Durations(t.Context(), q); err != nil || got != want {
		t.Errorf("durations %+v, %v", got, err)
	}
	q.Limit = 20
	want = rules.Durations{Exchanges: 20, MedianNS: 11 * second, P95NS: 20 * second}
	if got, err := ch.Durations(t.Context(), q); err != nil || got != want {
		t.Errorf("durations of the newest %+v, %v", got, err)
	}
	for name, n := range map[string]int64{"order*": 0, "*": 1, "unknown": 0} { // "*" is also the name of a route
		q.Route = name
		if got, err := ch.Durations(t.Context(), q); err != nil || got.Exchanges != n {
			t.Errorf("durations of the route %q: %+v, %v", name, got, err)
		}
	}
	q.Route = "unknown"
	if got, err := ch.Durations(t.Context(), q); err != nil || got != (rules.Durations{}) {
		t.Errorf("durations of nothing %+v, %v", got, err)
	}
}

// TestScanLeavesOutWhatEndedBefore compares what a scan excludes with when exchanges ended; for one
// without an end, its start counts.
func TestScanLeavesOutWhatEndedBefore(t *testing.T) {
	db := chtest.New(t)
	const micro = int64(1000)
	var rows []rules.Exchange
	for i := range int64(40) {
		e := failed(base+i*micro, fmt.Sprintf("%02d", i))
		end := base + (40-i)*micro + i
		if e.EndTimeNS = &end; i%4 == 0 {
			e.EndTimeNS = nil
		}
		rows = append(rows, e)
	}
	db.Insert(t, rows...)
	endless := clickhouse.Exchanges()
	endless.EndTime = ""
	for name, m := range map[string]clickhouse.Mapping{"end_time": clickhouse.Exchanges(), "no end": endless} {
		t.Run(name, func(t *testing.T) {
			ch := openWith(t, db, m)
			for _, since := range []int64{0, base - 1, base, base + 1, base + 17*micro + 1, base + 40*micro, base + 50*micro} {
				s := scan(cursor.Position{StartTimeNS: base + 3*micro}, base+30*micro)
				s.EndedSinceNS = since
				got, err := found(ch.Scan(t.Context(), s))
				if err != nil {
					t.Fatal(err)
				}
				returned := map[string]bool{}
				for i := range got {
					returned[got[i].ExecutionID] = true
				}
				for _, e := range rows[3:30] {
					if m.EndTime == "" {
						e.EndTimeNS = nil
					}
					there, ended := returned[e.ExecutionID], e.EndedNS()
					if (ended >= since && !there) || (ended < since-micro && there) {
						t.Errorf("ended since %d: what ended at %d is returned: %v", since-base, ended-base, there)
					}
				}
			}
		})
	}
}

// An error of HTTP names the server and the reason, without the user and the query between them.
func TestAServerThatIsAwayIsNamedBriefly(t *testing.T) {
	t.Parallel()
	const at = "127.0.0.1:1"
	ch, err := clickhouse.Open(clickhouse.Options{URL: "http://somebody:secret@" + at + "/default"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ch.Close() })
	_, observing := ch.Observe(t.Context(), source.ObserveQuery{FromNS: 1, ToNS: 1})
	_, asking := ch.ServerVersion(t.Context())
	for _, err := range []error{observing, asking, ch.Ping(t.Context())} {
		var refused *net.OpError
		if err == nil || !strings.Contains(err.Error(), "http://"+at+": ") || !errors.As(err, &refused) {
			t.Errorf("%v does not name the server http://%s, or lost its reason", err, at)
			continue
		}
		if text := err.Error(); strings.Contains(text, "somebody") || strings.Contains(text, "overflow_mode") || len(text) > 300 {
			t.Errorf("the error is long, or names the user: %s", text)
		}
	}
}
