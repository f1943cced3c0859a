package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator/reconcile"
	"tocsin/evaluator/source"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// openUnder opens a source whose user has the given settings, as a settings profile of the server
// would set them: they are settings of a session, the last of them readonly, 2 by default.
func openUnder(t *testing.T, db chtest.Database, settings map[string]string, o clickhouse.Options) *clickhouse.Source {
	t.Helper()
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	session := uuid.NewString()
	// Without the check, an expired session would begin again without settings.
	u.RawQuery = "session_check=1&session_id=" + session
	o.URL, o.Version = u.String(), "test"
	var list []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if name != "readonly" {
			list = append(list, fmt.Sprintf("%s = '%s'", name, settings[name]))
		}
	}
	readonly := "2"
	if level, ok := settings["readonly"]; ok {
		readonly = level
	}
	post := func(parameters, statement string) {
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost,
			"http://"+u.Host+"/?session_id="+session+parameters, strings.NewReader(statement))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: code %s", statement, response.Header.Get("X-ClickHouse-Exception-Code"))
		}
	}
	post("", "SET "+strings.Join(append(list, "readonly = "+readonly), ", "))
	ch, err := clickhouse.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = ch.Close()
		// Ends the session, which otherwise prevents the database from being dropped.
		post("&session_timeout=0", "SELECT 1")
	})
	return ch
}

// answers returns the results of a source's queries over a range, or their errors.
func answers(t *testing.T, ch *clickhouse.Source, within cursor.Range, limit int) map[string]any {
	t.Helper()
	of, failures := tenants("default", "other"), []rules.Status{rules.Failed}
	all := map[string]any{}
	add := func(name string, answer any, err error) {
		if all[name] = answer; err != nil {
			all[name] = err
		}
	}
	o, err := ch.Observe(t.Context(), source.ObserveQuery{Tenants: of, Statuses: failures, FromNS: within.FromNS, ToNS: within.ToNS, WidthNS: 1e9})
	slices.SortFunc(o.Fingerprints, func(a, b source.Fingerprint) int { return int(a.FromNS/1e9 - b.FromNS/1e9) })
	add("observe", o.Fingerprints, err)
	none, err := ch.Observe(t.Context(), source.ObserveQuery{Tenants: of, Statuses: failures, FromNS: 1, ToNS: 2, WidthNS: 1})
	add("observe nothing", len(none.Fingerprints), err)
	counts, err := ch.RowCounts(t.Context(), source.RowCountQuery{Tenants: of, Ranges: []cursor.Range{within, {FromNS: 1, ToNS: 2}}})
	add("row counts", counts.Counts, err)
	for name, narrow := range map[string]*source.Narrowing{"scan": nil, "narrowed scan": {}} {
		page, err := ch.Scan(t.Context(), source.Scan{
			Tenants: of, After: cursor.Position{StartTimeNS: within.FromNS}, BeforeNS: within.ToNS, Statuses: failures, Limit: limit, Narrow: narrow,
		})
		add(name, ids(page.Exchanges), err)
	}
	nothing, err := ch.Scan(t.Context(), source.Scan{
		Tenants: of, After: cursor.Position{StartTimeNS: 1}, BeforeNS: 2, Statuses: failures, Limit: limit,
	})
	add("scan nothing", len(nothing.Exchanges), err)
	matched, err := ch.Matched(t.Context(), reconcile.MatchedQuery{
		TenantID: "default", After: cursor.Position{StartTimeNS: within.FromNS}, BeforeNS: within.ToNS,
		EndedFromNS: within.FromNS, EndedToNS: within.ToNS, Limit: limit,
	})
	add("matched", matched, err)
	found, err := ch.Search(t.Context(), rules.ExchangeQuery{TenantID: "default", FromNS: within.FromNS, ToNS: within.ToNS, Limit: limit})
	add("search", ids(found), err)
	return all
}

// TestNoProfileShortensAnAnswer reads with settings that, sent with a statement, would shorten its
// result: with each of them, every result is either complete or an error.
func TestNoProfileShortensAnAnswer(t *testing.T) {
	const rows = 60_000
	db := chtest.New(t)
	db.KeepRows(t)
	for part := range 3 {
		if err := db.Conn.Exec(t.Context(), fmt.Sprintf(`
			INSERT INTO exchanges (tenant_id, start_time, execution_id, end_time, status)
			SELECT if(number %% 2 = 0, 'default', 'other'), fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * 1000000, 'UTC') AS start, toString(number), start,
				if(number %% 20 < 2, 'FAILED', 'COMPLETED')
			FROM numbers(%d, %d)`, base, part*rows/3, rows/3)); err != nil {
			t.Fatal(err)
		}
	}
	within := cursor.Range{FromNS: base, ToNS: base + rows*1_000_000}
	const limit = 8000
	whole := answers(t, openUnder(t, db, nil, clickhouse.Options{}), within, limit)
	for name, answer := range whole {
		if err, ok := answer.(error); ok {
			t.Fatalf("%s under readonly = 2: %v", name, err)
		}
	}
	if n := len(whole["scan"].([]string)); n != rows/10 {
		t.Fatalf("%d failures, want %d", n, rows/10)
	}
	for name, c := range map[string]struct {
		settings map[string]string
		// fails lists the answers that must be errors. Others may be errors, too, if something is
		// limited.
		fails []string
	}{
		"rows to read":     {map[string]string{"max_rows_to_read": "20000", "read_overflow_mode": "break"}, []string{"observe", "scan", "narrowed scan", "matched", "search"}},
		"rows of a leaf":   {map[string]string{"max_rows_to_read_leaf": "20000", "read_overflow_mode_leaf": "break"}, []string{"observe", "scan"}},
		"rows of a result": {map[string]string{"max_result_rows": "5", "result_overflow_mode": "break"}, nil},
		"groups":           {map[string]string{"max_rows_to_group_by": "10", "group_by_overflow_mode": "any"}, []string{"observe"}},
		"rows to sort":     {map[string]string{"max_rows_to_sort": "100", "sort_overflow_mode": "break", "max_block_size": "1000", "optimize_read_in_order": "0"}, []string{"scan"}},
		"rows of a set":    {map[string]string{"max_rows_in_set": "1", "set_overflow_mode": "break"}, nil},
		"limit":            {map[string]string{"limit": "1"}, nil},
		"offset":           {map[string]string{"offset": "1"}, nil},
		"extremes":         {map[string]string{"extremes": "1"}, nil},
		"no empty row":     {map[string]string{"empty_result_for_aggregation_by_empty_set": "1"}, nil},
		"NULL for nothing": {map[string]string{"aggregate_functions_null_for_empty": "1"}, nil},
		"query cache":      {map[string]string{"use_query_cache": "1", "query_cache_nondeterministic_function_handling": "save"}, nil},
		"FINAL":            {map[string]string{"final": "1"}, nil},
		"another zone":     {map[string]string{"session_timezone": "America/New_York"}, nil},
		"names in SQL's way": {map[string]string{
			"transform_null_in": "1", "join_use_nulls": "1", "prefer_column_name_to_alias": "1", "enable_positional_arguments": "0",
			"asterisk_include_materialized_columns": "1", "asterisk_include_alias_columns": "1", "cast_keep_nullable": "1",
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bounded := slices.ContainsFunc(slices.Collect(maps.Keys(c.settings)), func(name string) bool { return strings.HasPrefix(name, "max_") })
			got := answers(t, openUnder(t, db, c.settings, clickhouse.Options{}), within, limit)
			for _, question := range slices.Sorted(maps.Keys(whole)) {
				err, failed := got[question].(error)
				switch {
				case failed && (!bounded || !strings.Contains(err.Error(), "ClickHouse refused the query: code ")):
					t.Errorf("%s: %v", question, err)
				case !failed && slices.Contains(c.fails, question):
					t.Errorf("%s: %.200s, want an error", question, fmt.Sprint(got[question]))
				case !failed && !cmp.Equal(whole[question], got[question]):
					t.Errorf("%s: %.200s, want %.200s", question, fmt.Sprint(got[question]), fmt.Sprint(whole[question]))
				}
			}
		})
	}
}

// TestAReadOnlyUserIsExplained checks which levels of readonly a profile may have, and what the error about the others
// says.
func TestAReadOnlyUserIsExplained(t *testing.T) {
	db := chtest.New(t)
	for level, refused := range map[string]bool{"0": false, "1": true, "2": false} {
		ch := openUnder(t, db, map[string]string{"readonly": level}, clickhouse.Options{})
		_, mapping := ch.CheckMapping(t.Context())
		_, version := ch.ServerVersion(t.Context())
		_, clock := ch.Now(t.Context())
		for of, err := range map[string]error{"the mapping": mapping, "the version": version, "the clock": clock} {
			refusal, ok := errors.AsType[*clickhouse.RefusedError](err)
			if !refused && err != nil || refused && (!ok || refusal.Code != 164 || !strings.HasSuffix(err.Error(), "; "+refusal.Remedy) ||
				!strings.Contains(refusal.Remedy, "give the user a settings profile with readonly 0 or 2")) {
				t.Errorf("readonly = %s, %s: %v", level, of, err)
			}
		}
	}
}

// TestNoProfileLetsTimeCutAnAnswer has rows that take a millisecond each, more of them than are
// possible in a second.
func TestNoProfileLetsTimeCutAnAnswer(t *testing.T) {
	const rows = 5_000
	db := chtest.New(t)
	for _, statement := range []string{
		"CREATE TABLE slow AS exchanges ENGINE = MergeTree PRIMARY KEY start_time ORDER BY start_time SETTINGS index_granularity = 100",
		fmt.Sprintf(`INSERT INTO slow (tenant_id, start_time, execution_id, status)
			SELECT 'default', fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number), 'UTC'), toString(number), 'FAILED' FROM numbers(%d)`, base, rows),
	} {
		if err := db.Conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	slow := clickhouse.Exchanges()
	slow.Table, slow.Failed, slow.Terminal = "slow", "status = 'FAILED' AND sleepEachRow(0.001) = 0", ""
	ch := openUnder(t, db, map[string]string{"timeout_overflow_mode": "break", "max_block_size": "100", "max_threads": "1"},
		clickhouse.Options{Mapping: slow, QueryTimeout: time.Second})
	s := scan(cursor.Position{StartTimeNS: base - 1}, base+rows)
	s.Limit = rows
	page, err := ch.Scan(t.Context(), s)
	if err == nil || errors.Is(err, source.ErrTooMuch) || !strings.Contains(err.Error(), "code 159") {
		t.Errorf("%d of %d exchanges, more %v, %v; want an error that says that the time is up", len(page.Exchanges), rows, page.More, err)
	}
}

// TestScanThatNeedsTooMuchMemory has a profile that allows a query less memory than a page of large messages takes: a
// scan for fewer exchanges succeeds.
func TestScanThatNeedsTooMuchMemory(t *testing.T) {
	const rows, large = 200, 1 << 20
	db := chtest.New(t)
	insertLarge(t, db, rows, large)
	ch := openUnder(t, db, map[string]string{"max_memory_usage": "50000000", "max_threads": "1"}, clickhouse.Options{ScanBytes: 1 << 30})
	s := scan(cursor.Position{StartTimeNS: base - 1}, base+rows)
	s.Limit = rows
	if _, err := ch.Scan(t.Context(), s); !errors.Is(err, source.ErrTooMuch) {
		t.Errorf("a scan for %d exchanges: %v", s.Limit, err)
	}
	s.Limit = 1
	if page, err := ch.Scan(t.Context(), s); err != nil || len(page.Exchanges) != 1 {
		t.Errorf("a scan for one exchange: %d exchanges, %v", len(page.Exchanges), err)
	}
}

// TestLargeExchangesAreReadInParts reads the newest exchanges of groups, and searches exchanges, that are larger together than
// a scan may hold.
func TestLargeExchangesAreReadInParts(t *testing.T) {
	const groups, large, bound = 30, 1 << 20, 8 << 20
	db := chtest.New(t)
	insertLarge(t, db, groups, large)
	// So that what asks without a bound of its own fails.
	ch := openUnder(t, db, map[string]string{"max_result_bytes": strconv.Itoa(bound)}, clickhouse.Options{ScanBytes: bound})
	wanted := counting.NewestQuery{Query: counting.Query{
		TenantID: "default", FromNS: base, ToNS: base + second, StartFromNS: base, Grouping: rules.Grouping{By: rules.GroupByRoute}, Limit: groups,
		Mode: rules.CountInWindow, Filter: rules.Filter{Statuses: []rules.Status{rules.Failed}},
	}}
	for i := range groups {
		at := base + int64(i)
		wanted.Groups = append(wanted.Groups, counting.Group{Group: fmt.Sprintf("route-%d", i), NewestEndedNS: at, NewestStartNS: at})
	}
	newest, err := ch.Newest(t.Context(), []counting.NewestQuery{wanted})
	if err != nil {
		t.Fatal(err)
	}
	for i := range newest[0] {
		if e := &newest[0][i]; e.ExecutionID != strconv.Itoa(i) || len(e.ErrorMessage) != large {
			t.Errorf("the newest of group %d is %q with %d bytes", i, e.ExecutionID, len(e.ErrorMessage))
		}
	}
	sought := rules.ExchangeQuery{TenantID: "default", FromNS: base, ToNS: base + second, Limit: groups}
	_, err = ch.Search(t.Context(), sought)
	if fault.KindOf(err) != fault.Invalid {
		t.Errorf("a search of %d: %v", groups, err)
	}
	sought.Limit = 5
	if found, err := ch.Search(t.Context(), sought); err != nil || len(found) != sought.Limit {
		t.Errorf("a search of %d: %d exchanges, %v", sought.Limit, len(found), err)
	}
}
