package chserver

import (
	"strings"
	"testing"
)

func TestSplitInsert(t *testing.T) {
	for text, want := range map[string]struct{ head, format, data string }{
		"INSERT INTO t VALUES (1)":                               {"INSERT INTO t ", "Values", " (1)"},
		"insert into t values(1)":                                {"insert into t ", "Values", "(1)"},
		"INSERT INTO t FORMAT CSV\n1\n":                          {"INSERT INTO t ", "CSV", "1\n"},
		"INSERT INTO t FORMAT CSV \r\n 1\n":                      {"INSERT INTO t ", "CSV", " 1\n"},
		"INSERT INTO t FORMAT JSONEachRow {\"a\":1}":             {"INSERT INTO t ", "JSONEachRow", "{\"a\":1}"},
		"INSERT INTO t (a, `values`) FORMAT Native":              {"INSERT INTO t (a, `values`) ", "Native", ""},
		"INSERT INTO format FORMAT TSV\nFORMAT":                  {"INSERT INTO format ", "TSV", "FORMAT"},
		"INSERT INTO db.values VALUES (1)":                       {"INSERT INTO db.values ", "Values", " (1)"},
		"INSERT INTO `a``b\\`VALUES` VALUES (1)":                 {"INSERT INTO `a``b\\`VALUES` ", "Values", " (1)"},
		"INSERT INTO t SETTINGS x = 'VALUES' VALUES (1)":         {"INSERT INTO t SETTINGS x = 'VALUES' ", "Values", " (1)"},
		"-- VALUES\n/* FORMAT x */ INSERT INTO t VALUES (1)":     {"-- VALUES\n/* FORMAT x */ INSERT INTO t ", "Values", " (1)"},
		"INSERT INTO FUNCTION file('x', 'CSV', 'a Int') VALUES1": {},
		"INSERT INTO FUNCTION file('x') FORMAT CSV\n1":           {"INSERT INTO FUNCTION file('x') ", "CSV", "1"},
		"INSERT INTO t SELECT 1 FORMAT CSV":                      {},
		"INSERT INTO t (a) SELECT 'VALUES'":                      {},
		"INSERT INTO t WITH 1 AS x SELECT x":                     {},
		"INSERT INTO t FROM INFILE 'x' FORMAT CSV":               {},
		"INSERT INTO t VALUE":                                    {},
		"SELECT 1 FORMAT CSV":                                    {},
		"EXPLAIN INSERT INTO t VALUES (1)":                       {},
		"INSERT INTO 't":                                         {},
		"INSERT":                                                 {},
		"":                                                       {},
	} {
		got, ok := splitInsert(text)
		if ok != (want.head != "") {
			t.Errorf("%q: got %v, %+v", text, ok, got)
		} else if ok && (got.head != want.head || got.format != want.format || text[got.data:] != want.data) {
			t.Errorf("%q: got %q, %q, %q", text, got.head, got.format, text[got.data:])
		}
	}
}

func FuzzSplitInsert(f *testing.F) {
	f.Add("INSERT INTO t VALUES (1)")
	f.Add("INSERT INTO `t' (\"a\\") // quotes that do not end
	f.Add("INSERT INTO t /* FORMAT -- x")
	f.Fuzz(func(t *testing.T, text string) {
		outputFormat(text)
		clientClause(text)
		hasWord(text, "TOTALS")
		if split, ok := splitInsert(text); ok && (!strings.HasPrefix(text, split.head) || split.data <= len(split.head) || split.data > len(text)) {
			t.Errorf("%q is cut at %d and %d", text, len(split.head), split.data)
		}
	})
}

func TestOutputFormat(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1":                                   "",
		"SELECT 1 FORMAT JSON":                       "JSON",
		"SELECT 1 format JSON;":                      "JSON",
		"SELECT 1 FORMAT JSON SETTINGS a = 1":        "JSON",
		"SELECT 'FORMAT CSV'":                        "",
		"SELECT * FROM (SELECT 1 FORMAT CSV)":        "",
		"SELECT 1 -- FORMAT CSV":                     "",
		"SELECT 1 # FORMAT CSV\nFORMAT JSONCompact ": "JSONCompact",
	} {
		if got := outputFormat(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestClientClause(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1 INTO OUTFILE 'x'":                      "INTO OUTFILE",
		"INSERT INTO t FROM INFILE 'x' FORMAT CSV":       "FROM INFILE",
		"INSERT INTO t SELECT * FROM input('a Int')":     "input()",
		"INSERT INTO t WITH x AS (SELECT 1) SELECT x":    "",
		"SELECT input FROM t":                            "",
		"SELECT 'INTO OUTFILE', outfile FROM t /* . */":  "",
		"INSERT INTO input (a) SELECT infile FROM input": "input()", // a table named input with columns: rejected, not misread
	} {
		if got := clientClause(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestNegotiate(t *testing.T) {
	for accept, want := range map[string]string{
		"": "", "gzip": "gzip", "identity": "", "snappy, br;q=0.5, gzip": "br", "gzip;q=0, zstd": "zstd", "GZIP": "gzip",
	} {
		if got := negotiate(accept); got != want {
			t.Errorf("%q: got %q, want %q", accept, got, want)
		}
	}
}
