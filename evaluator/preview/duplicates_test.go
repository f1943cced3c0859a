package preview_test

import (
	"slices"
	"testing"
	"time"

	"tocsin/evaluator/preview"
	"tocsin/rules"
)

// TestLongestRowOfAnExchangeCounts has rows of one exchange with several durations, in any order, as
// ClickHouse may return them. The evaluator takes the longest.
func TestLongestRowOfAnExchangeCounts(t *testing.T) {
	t.Parallel()
	durations := []int64{3e6, 9e6, 5e6}
	for range durations {
		durations = append(durations[1:], durations[0])
		var rows []rules.Exchange
		for _, ns := range durations {
			e := failed("1", 20, 10)
			e.DurationNS = ns
			rows = append(rows, e)
		}
		d := perExchange()
		d.FireMode, d.WindowSeconds, d.IntervalSeconds, d.MinVolume, d.Percentile, d.DurationMS = rules.DurationInWindow, 60, 1, 1, 95, 2
		got, err := newHistory(rows...).previewer().Preview(t.Context(), preview.Request{TenantID: "t", Definition: d, Last: 100 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Newest) != 1 || got.Newest[0].Count.DurationNS != slices.Max(durations) || got.Newest[0].Count.Volume != 1 {
			t.Errorf("rows that lasted %v raise %+v", durations, got.Newest)
		}
	}
}
