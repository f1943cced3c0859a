package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tocsin/internal/app"
)

func TestAFindingIsALine(t *testing.T) {
	t.Parallel()
	const at = 1_700_000_000_000_000_000
	id := uuid.MustParse("0190d8b2-0000-7000-8000-000000000001")
	unexpected := app.ReconciliationFinding{Kind: app.ReconciledUnexpected, AlertID: id, Group: "tax", AtNS: at, Why: "it fired"}
	unexpected.Stored.Observed, unexpected.Stored.Volume = 5, 9
	unexpected.Found.Observed, unexpected.Found.Volume = 2, 9
	for _, c := range []struct {
		finding app.ReconciliationFinding
		want    string
	}{
		{
			unexpected,
			`unexpected "tax" at 2023-11-14T22:13:20Z: it fired; alert 0190d8b2-0000-7000-8000-000000000001 says 5 of 9, there are 2 of 9`,
		},
		{app.ReconciliationFinding{Kind: "MISSING", AtNS: at, Why: "the threshold was reached"}, "missing at 2023-11-14T22:13:20Z: the threshold was reached"},
		{app.ReconciliationFinding{Kind: "UNCHECKED", Why: "the rule was edited"}, "unchecked: the rule was edited"},
	} {
		if got := findingLine(&c.finding); got != c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
}

// TestARuleThatCannotBeComparedHidesNothing prints comparisons of which one failed.
func TestARuleThatCannotBeComparedHidesNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r, err := newReport(&out)
	if err != nil {
		t.Fatal(err)
	}
	compared := app.Reconciliation{RuleName: "Orders", MissingSample: []string{"7f3a"}}
	compared.Missing, compared.ToNS = 1, 1_700_000_000_000_000_000
	if err := r.add(compared); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("rule 9: clickhouse: timeout")
	if err := r.end(failed); !errors.Is(err, failed) || !strings.Contains(err.Error(), "have no alert: 1") {
		t.Errorf("the command says: %v", err)
	}
	for _, want := range []string{"missing for Orders: 7f3a", "until 2023-11-14T22:13:20Z were compared"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, &out)
		}
	}
}
