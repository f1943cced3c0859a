package lab_test

import (
	"slices"
	"testing"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/live"
	"tocsin/internal/bench/speed"
	"tocsin/internal/bench/strain"
)

func TestRatiosAreTakenTrialByTrial(t *testing.T) {
	same := func(v float64) float64 { return v }
	if got := lab.Ratios([]float64{2, 6, 10}, []float64{1, 2}, same); !slices.Equal(got, []float64{2, 3}) {
		t.Errorf("ratios %v, want those of the two trials that both have", got)
	}
}

func TestPercentilesOfEachTrial(t *testing.T) {
	var p lab.Percentiles
	p.Add([]float64{3, 1, 2})
	p.Add([]float64{30, 10, 20})
	p.Add([]float64{5})
	figures := p.Figures("x", nil, nil)
	if len(figures) != 2 || figures[0].Median != 5 || figures[0].Low != 2 || figures[0].High != 20 || figures[1].High != 30 {
		t.Errorf("figures %+v, want p50 2, 5, 20 and p99 3, 5, 30", figures)
	}
}

// TestEveryWorkloadHasItsOwnID states the workloads that docs/performance.md describes.
func TestEveryWorkloadHasItsOwnID(t *testing.T) {
	var ids []string
	for _, w := range slices.Concat(speed.Workloads(), strain.Workloads(), live.Workloads()) {
		if w.Run == nil {
			t.Errorf("%v cannot be run", w.IDs)
		}
		ids = append(ids, w.IDs...)
	}
	slices.Sort(ids)
	if want := []string{"B1", "B10", "B11", "B12", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9", "L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "M"}; !slices.Equal(ids, want) {
		t.Errorf("workloads %v, want %v", ids, want)
	}
}
