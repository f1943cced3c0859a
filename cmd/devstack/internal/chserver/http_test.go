package chserver_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestPlainHTTP uses the protocol as curl and other programs do.
func TestPlainHTTP(t *testing.T) {
	s := startServer(t, dataDir(t))
	query := func(sql string, more ...string) url.Values {
		values := url.Values{}
		if sql != "" {
			values.Set("query", sql)
		}
		for i := 0; i < len(more); i += 2 {
			values.Set(more[i], more[i+1])
		}
		return values
	}
	want := func(t *testing.T, got answer, status int, body string) {
		t.Helper()
		if got.status != status || got.body != body || got.err != nil {
			t.Errorf("got %d %q %v, want %d %q", got.status, got.body, got.err, status, body)
		}
	}
	wantException := func(t *testing.T, got answer, status, code int) {
		t.Helper()
		if got.status != status || got.header.Get("X-ClickHouse-Exception-Code") != fmt.Sprint(code) ||
			!strings.HasPrefix(got.body, fmt.Sprintf("Code: %d. DB::Exception: ", code)) {
			t.Errorf("got %d %v %q, want %d and code %d", got.status, got.header, got.body, status, code)
		}
	}

	t.Run("ping", func(t *testing.T) {
		want(t, s.get(t, "GET", "/ping", "", nil), 200, "Ok.\n")
		if got := s.get(t, "GET", "/elsewhere", "", nil); got.status != 404 {
			t.Errorf("an unknown path is answered with %d", got.status)
		}
		want(t, s.curl(t, "GET", nil, ""), 200, "Ok.\n")
	})

	t.Run("query in URL, body or both", func(t *testing.T) {
		want(t, s.curl(t, "GET", query("SELECT 1, 'a'"), ""), 200, "1\ta\n")
		want(t, s.curl(t, "POST", nil, "SELECT 1, 'a'"), 200, "1\ta\n")
		want(t, s.curl(t, "POST", query("SELECT 1,"), "'a'"), 200, "1\ta\n")
		wantException(t, s.curl(t, "POST", nil, ""), 400, 62)
		want(t, s.curl(t, "POST", nil, "SELECT 1;\n"), 200, "1\n")
		long := strings.Repeat("/* long */ ", 20_000) + "SELECT 1"
		want(t, s.curl(t, "POST", query("", "max_query_size", "1000000"), long), 200, "1\n")
	})

	t.Run("headers", func(t *testing.T) {
		got := s.curl(t, "POST", query("", "query_id", "my-query"), "SELECT number FROM numbers(10) FORMAT JSONEachRow")
		for name, value := range map[string]string{
			"X-ClickHouse-Query-Id": "my-query", "X-ClickHouse-Format": "JSONEachRow", "Content-Type": "application/x-ndjson; charset=UTF-8",
		} {
			if got.header.Get(name) != value {
				t.Errorf("%s is %q, want %q", name, got.header.Get(name), value)
			}
		}
		var summary map[string]string
		if err := json.Unmarshal([]byte(got.header.Get("X-ClickHouse-Summary")), &summary); err != nil || summary["result_rows"] != "10" || summary["read_rows"] != "10" {
			t.Errorf("summary is %v, %v", summary, err)
		}
		if got.header.Get("X-ClickHouse-Timezone") == "" {
			t.Error("no time zone")
		}
		if other := s.curl(t, "POST", nil, "SELECT 1").header.Get("X-ClickHouse-Query-Id"); len(other) != 36 {
			t.Errorf("query id is %q, want a UUID", other)
		}
		want(t, s.curl(t, "POST", nil, "SELECT 1 AS a", "X-ClickHouse-User", "u", "X-ClickHouse-Key", "k", "X-ClickHouse-Format", "CSVWithNames"), 200, "\"a\"\n1\n")
		want(t, s.curl(t, "POST", nil, "SELECT currentDatabase()", "Authorization", "Basic dTpw", "X-ClickHouse-Database", "system"), 200, "system\n")
	})

	t.Run("formats", func(t *testing.T) {
		got := s.curl(t, "GET", query("SELECT 1 AS a FORMAT JSON"), "")
		var result struct {
			Data []map[string]any
			Rows int
		}
		if err := json.Unmarshal([]byte(got.body), &result); err != nil || result.Rows != 1 || result.Data[0]["a"] != 1.0 {
			t.Errorf("got %v, %v from %s", result, err, got.body)
		}
		got = s.curl(t, "POST", query("", "default_format", "JSONCompact"), "SELECT number % 2 AS a, count() AS n FROM numbers(1000) GROUP BY a WITH TOTALS ORDER BY a")
		var totals struct {
			Data   [][]any
			Totals []any
		}
		if err := json.Unmarshal([]byte(got.body), &totals); err != nil || len(totals.Data) != 2 || len(totals.Totals) != 2 {
			t.Errorf("got %v, %v from %s", totals, err, got.body)
		}
		got = s.curl(t, "POST", nil, "SELECT number FROM numbers(300000) FORMAT JSON")
		if err := json.Unmarshal([]byte(got.body), &result); err != nil || result.Rows != 300_000 {
			t.Errorf("a long result: got %d rows, %v", result.Rows, err)
		}
		got = s.curl(t, "POST", nil, "SELECT number FROM numbers(300000) FORMAT CSVWithNames")
		if lines := strings.Count(got.body, "\n"); lines != 300_001 || strings.Count(got.body, "number") != 1 {
			t.Errorf("a long result: got %d lines", lines)
		}
		want(t, s.curl(t, "POST", nil, "SELECT 1 WHERE 0"), 200, "")
	})

	t.Run("parameters and settings", func(t *testing.T) {
		want(t, s.curl(t, "GET", query("SELECT {a:UInt8} + {b:UInt8}", "param_a", "1", "param_b", "2"), ""), 200, "3\n")
		want(t, s.curl(t, "GET", query("SELECT getSetting('max_threads')", "max_threads", "1"), ""), 200, "1\n")
		wantException(t, s.curl(t, "GET", query("SELECT 1", "no_such_setting", "1"), ""), 404, 115)
		wantException(t, s.curl(t, "GET", query("SELECT 1", "no such; setting", "1"), ""), 404, 115)
		wantException(t, s.curl(t, "GET", query("SELECT 1", "database", "it`s\\"), ""), 404, 81)
		want(t, s.curl(t, "GET", query("SELECT getSetting('log_comment')", "log_comment", `it's \ "so"`), ""), 200, `it\'s \\ "so"`+"\n")
	})

	t.Run("exceptions", func(t *testing.T) {
		wantException(t, s.curl(t, "POST", nil, "SELECT * FROM nowhere"), 404, 60)
		wantException(t, s.curl(t, "POST", nil, "SELEC"), 400, 62)
		wantException(t, s.curl(t, "POST", query("", "max_execution_time", "0.1"), "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)"), 408, 159)
		wantException(t, s.curl(t, "GET", query("CREATE DATABASE by_get"), ""), 500, 164)
		wantException(t, s.curl(t, "POST", query("", "wait_end_of_query", "1"), "SELECT throwIf(number = 3000000) FROM numbers(5000000)"), 500, 395)
		got := s.curl(t, "POST", nil, "SELECT throwIf(number = 3000000) FROM numbers(5000000)")
		tag := got.header.Get("X-ClickHouse-Exception-Tag")
		if got.status != 200 || got.err == nil || tag == "" || !strings.Contains(got.body, "\r\n__exception__\r\n"+tag+"\r\nCode: 395.") {
			t.Errorf("an error in the middle ends in %d, %v, %q", got.status, got.err, got.body[max(0, len(got.body)-200):])
		}
	})

	t.Run("insert", func(t *testing.T) {
		count := func() string { return s.curl(t, "POST", nil, "SELECT count(), sum(a) FROM ins").body }
		want(t, s.curl(t, "POST", nil, "CREATE TABLE ins (a Int64, s String DEFAULT 'x') ENGINE = MergeTree ORDER BY a"), 200, "")
		for _, send := range []struct{ url, body string }{
			{"", "INSERT INTO ins VALUES (1, 'a'), (2, 'it''s; FORMAT')"},
			{"INSERT INTO ins VALUES", "(1, 'a'), (2, 'b')"},
			{"INSERT INTO ins VALUES (1, 'a')", ", (2, 'b')"},
			{"", "INSERT INTO ins FORMAT JSONEachRow\n{\"a\":1}\n{\"a\":2}\n"},
			{"INSERT INTO ins FORMAT JSONEachRow", "{\"a\":1}\n{\"a\":2}\n"},
			{"INSERT INTO ins (a) FORMAT CSV", "1\n2\n"},
			{"INSERT INTO default.ins (a) SETTINGS max_threads = 1 FORMAT TSV", "1\n2"},
			{"", "INSERT INTO ins (a) SELECT number + 1 FROM numbers(2)"},
		} {
			want(t, s.curl(t, "POST", nil, "TRUNCATE TABLE ins"), 200, "")
			values := query(send.url)
			want(t, s.curl(t, "POST", values, send.body), 200, "")
			if got := count(); got != "2\t3\n" {
				t.Errorf("%q with %q: got %q", send.url, send.body, got)
			}
		}
		got := s.curl(t, "POST", query("INSERT INTO ins (a) VALUES ({a:Int64})", "param_a", "7"), "")
		want(t, got, 200, "")
		if summary := got.header.Get("X-ClickHouse-Summary"); !strings.Contains(summary, `"written_rows":"1"`) {
			t.Errorf("summary is %s", summary)
		}
		wantException(t, s.curl(t, "POST", query("INSERT INTO ins FORMAT CSV"), "no number\n"), 400, 27)
		wantException(t, s.curl(t, "POST", query("INSERT INTO nowhere FORMAT CSV"), strings.Repeat("1,a\n", 4<<20)), 404, 60)
		wantException(t, s.curl(t, "POST", query("INSERT INTO ins (a) SELECT a FROM input('a Int64') FORMAT CSV"), "1\n2\n"), 501, 48)
		wantException(t, s.curl(t, "POST", nil, "INSERT INTO ins FROM INFILE '/etc/passwd' FORMAT CSV"), 501, 48)
		wantException(t, s.curl(t, "POST", nil, "SELECT 1 INTO OUTFILE '/tmp/outfile'"), 501, 48)
		wantException(t, s.curl(t, "GET", query("INSERT INTO ins VALUES (9, 'get')"), ""), 500, 164)
	})

	t.Run("content encoding", func(t *testing.T) {
		var body bytes.Buffer
		packed := gzip.NewWriter(&body)
		_, _ = io.WriteString(packed, "SELECT 1")
		if err := packed.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, s.curl(t, "POST", nil, body.String(), "Content-Encoding", "gzip"), 200, "1\n")
		wantException(t, s.curl(t, "POST", nil, "no gzip", "Content-Encoding", "gzip"), 500, 271)
		for _, encoding := range []string{"gzip", "deflate", "br", "zstd", "lz4"} {
			got := s.curl(t, "POST", query("", "enable_http_compression", "1"), "SELECT number % 10 FROM numbers(100000)", "Accept-Encoding", encoding)
			if got.header.Get("Content-Encoding") != encoding || len(got.body) == 0 || len(got.body) > 20_000 {
				t.Errorf("%s: got %q, %d bytes", encoding, got.header.Get("Content-Encoding"), len(got.body))
			}
		}
		got := s.curl(t, "POST", query("", "enable_http_compression", "0"), "SELECT 1", "Accept-Encoding", "gzip")
		want(t, got, 200, "1\n")
	})

	t.Run("session", func(t *testing.T) {
		in := func(id string) url.Values { return url.Values{"session_id": {id}} }
		want(t, s.curl(t, "POST", in("one"), "CREATE TEMPORARY TABLE mine (a Int32)"), 200, "")
		want(t, s.curl(t, "POST", in("one"), "INSERT INTO mine VALUES (1)"), 200, "")
		want(t, s.curl(t, "POST", in("one"), "SELECT * FROM mine"), 200, "1\n")
		wantException(t, s.curl(t, "POST", in("two"), "SELECT * FROM mine"), 404, 60)
		wantException(t, s.curl(t, "POST", nil, "SELECT * FROM mine"), 404, 60)
		wantException(t, s.curl(t, "POST", url.Values{"session_id": {"three"}, "session_check": {"1"}}, "SELECT 1"), 500, 372)
		want(t, s.curl(t, "POST", url.Values{"session_id": {"short"}, "session_timeout": {"0"}}, "CREATE TEMPORARY TABLE mine (a Int32)"), 200, "")
		eventually(t, "the session expires", func() bool {
			return s.curl(t, "POST", url.Values{"session_id": {"short"}, "session_check": {"1"}}, "SELECT 1").header.Get("X-ClickHouse-Exception-Code") == "372"
		})
	})

	t.Run("foreign pages are refused", func(t *testing.T) {
		if got := s.curl(t, "POST", nil, "SELECT 1", "Sec-Fetch-Site", "cross-site"); got.status != http.StatusForbidden {
			t.Errorf("got %d, want 403", got.status)
		}
	})
}
