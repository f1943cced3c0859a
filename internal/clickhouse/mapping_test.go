package clickhouse_test

import (
	"strings"
	"testing"

	"tocsin/internal/clickhouse"
)

func TestParseMapping(t *testing.T) {
	got, err := clickhouse.ParseMapping("source.yaml", []byte(`
# Only what people asked for.
preset: otel_traces
table: otel.traces
terminal: SpanKind IN ('Server', 'Consumer')
tenant_id: ResourceAttributes['tenant']
error_stack: ""
inserted_at: ~
environment: >-
  'live'
`))
	if err != nil {
		t.Fatal(err)
	}
	want := clickhouse.OtelTraces()
	want.Table, want.Terminal, want.TenantID, want.Tenant = "otel.traces", "SpanKind IN ('Server', 'Consumer')", "ResourceAttributes['tenant']", ""
	want.ErrorStack, want.Environment = "", "'live'"
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestParseMappingRefuses(t *testing.T) {
	for name, c := range map[string]struct{ document, want string }{
		"empty":                  {"", "source.yaml: is empty"},
		"no YAML":                {"preset: [", "source.yaml: line 1"},
		"a list":                 {"- preset", "source.yaml:1: must contain keys and values"},
		"unknown key":            {"preset: exchanges\n\ntabel: x", `source.yaml:3: unknown key "tabel"`},
		"two unknown keys":       {"preset: exchanges\na: x\nb: x", `source.yaml:3: unknown key "b"`},
		"key given twice":        {"preset: exchanges\nfailed: a\nfailed: b", "source.yaml:3: failed is given twice"},
		"no text":                {"preset: exchanges\nfailed: [a]", "source.yaml:2: failed: must be a string"},
		"unknown preset":         {"preset: jaeger", `source.yaml:1: unknown preset "jaeger"`},
		"without preset":         {"table: t\ntenant: a\nstart_time: s", "execution_id: an expression is needed"},
		"no table name":          {"preset: exchanges\ntable: a;b", `table: "a;b" is not the name of a table`},
		"both tenants":           {"preset: exchanges\ntenant: a\ntenant_id: b", "give either tenant or tenant_id"},
		"no tenant":              {"preset: exchanges\ntenant_id: ''", "tenant: name the tenant"},
		"needed but taken away":  {"preset: exchanges\nfailed: ''", "failed: an expression is needed"},
		"closes too much":        {"preset: exchanges\nfailed: a ) OR (b", "failed: the parenthesis at character 3 was not opened"},
		"closes too little":      {"preset: exchanges\nfailed: f(a", "failed: a parenthesis is not closed"},
		"two expressions":        {"preset: exchanges\nfailed: a[1, 2], b", "failed: the comma at character 8"},
		"open quotation":         {"preset: exchanges\nfailed: a = 'b", "failed: the quotation that begins at character 5"},
		"comment":                {"preset: exchanges\nfailed: a -- b", "failed: comments"},
		"statement":              {"preset: exchanges\nfailed: a; b", `failed: ";" is not allowed`},
		"range outside of prune": {"preset: exchanges\nfailed: a > {from}", "failed: {from} and {to}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := clickhouse.ParseMapping("source.yaml", []byte(c.document))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestQuotedTextsMayHoldAnything(t *testing.T) {
	m := clickhouse.Exchanges()
	m.Failed = `status = 'a ) ; -- \' /* #' OR "col(" = 'x'`
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
}

func TestPresetsAreValid(t *testing.T) {
	for _, p := range clickhouse.Presets() {
		m, err := p.Mapping()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}
