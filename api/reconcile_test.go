package api_test

import (
	"testing"
	"time"

	"tocsin/api"
	"tocsin/evaluator/reconcile"
	"tocsin/internal/fault"
)

func TestReconcileReportsWhatIsMissing(t *testing.T) {
	var asked time.Duration
	b := newBench(t, func(o *api.Options) {
		o.Reconciler = reconcilerFunc(func(last time.Duration) (reconcile.Reconciliation, error) {
			asked = last
			if last == 2*time.Hour {
				return reconcile.Reconciliation{}, fault.New(fault.Conflict, "a rule that counts")
			}
			return reconcile.Reconciliation{
				FromNS: 1, ToNS: 2, Matching: 7, Alerted: 4, Missing: 2, MissingSample: []string{"a", "b"}, LateDropped: 1, Unexpected: 3,
			}, nil
		})
	})
	const path = "/api/v1/rules/01975d5e-7b84-7000-8000-000000000001/reconcile"
	got := into[api.Reconciliation](b.do("POST", path, "").want(200))
	if asked != 24*time.Hour || got.Matching != 7 || got.Alerted != 4 || got.Missing != 2 || len(got.MissingSample) != 2 ||
		got.OutOfReach != 1 || got.Unexpected != 3 || got.From.UnixNano() != 1 || got.To.UnixNano() != 2 {
		t.Errorf("asked for %v, got %+v", asked, got)
	}
	b.do("POST", path+"?hours=168", "").want(200)
	if asked != 168*time.Hour {
		t.Errorf("asked for %v", asked)
	}
	b.do("POST", path+"?hours=2", "").want(409)
	for _, hours := range []string{"0", "169", "x", "-1"} {
		b.do("POST", path+"?hours="+hours, "").want(400)
	}
}

// TestKindsOfFindings checks that each kind of finding is one of those of the document.
func TestKindsOfFindings(t *testing.T) {
	kinds := map[reconcile.FindingKind]api.ReconciliationFindingKind{
		reconcile.Missing: "MISSING", reconcile.Unexpected: "UNEXPECTED", reconcile.Different: "DIFFERENT", reconcile.Late: "LATE", reconcile.Unchecked: "UNCHECKED",
	}
	var kind reconcile.FindingKind
	b := newBench(t, func(o *api.Options) {
		o.Reconciler = reconcilerFunc(func(time.Duration) (reconcile.Reconciliation, error) {
			return reconcile.Reconciliation{Findings: []reconcile.Finding{{Kind: kind}}}, nil
		})
	})
	for found, want := range kinds {
		kind = found
		got := into[api.Reconciliation](b.do("POST", "/api/v1/rules/01975d5e-7b84-7000-8000-000000000001/reconcile", "").want(200))
		if list := *got.Findings; len(list) != 1 || list[0].Kind != want || !want.Valid() {
			t.Errorf("%s: %+v, want %s", found, list, want)
		}
	}
}
