package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tocsin/internal/access"
	"tocsin/internal/app"
	"tocsin/internal/postgres"
)

// TestNothingThatIsPrintedMovesTheCursor prints names with a control sequence: those of exchanges come from whatever program failed.
func TestNothingThatIsPrintedMovesTheCursor(t *testing.T) {
	t.Parallel()
	const odd = "\x1b[2Jodd"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(strings.ReplaceAll(`{"exchange":{"executionId":"ODD","application":"ODD","route":"ODD","environment":"ODD","status":"FAILED","startTime":"2026-11-21T07:02:00Z"},
			"rules":[{"ruleName":"ODD","verdict":"NOT_ARMED","detail":"ODD"}],"counts":[{"verdict":"NOT_ARMED","rules":1}]}`, "ODD", `\u001b[2Jodd`)))
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	explained := explainExchange{serverFlags: serverFlags{URL: server.URL}, ExecutionID: "a", Hours: 1}
	if err := explained.Run(t.Context(), &out); err != nil {
		t.Error(err)
	}
	r, err := newReport(&out)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []int64{0, 1} {
		compared := app.Reconciliation{RuleName: odd, TenantID: odd, MissingSample: []string{odd}}
		compared.Missing, compared.ToNS = 1, to
		if err := r.add(compared); err != nil {
			t.Error(err)
		}
		compared.Findings = []app.ReconciliationFinding{{Kind: "MISSING", Why: odd}}
		if err := r.add(compared); err != nil {
			t.Error(err)
		}
	}
	if err := r.end(nil); err == nil {
		t.Error("nothing is said to be missing")
	}
	if err := printPartition(&out, &postgres.Partition{Tenant: odd, Owner: odd}); err != nil {
		t.Error(err)
	}
	out.WriteString(userRow(access.Account{Email: odd, Name: odd, TenantID: odd}))
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "\x1b") {
			t.Errorf("printed %q", line)
		}
	}
	if n := strings.Count(out.String(), `\x1b[2Jodd`); n < 16 {
		t.Errorf("%d names are shown:\n%s", n, out.String())
	}
}
