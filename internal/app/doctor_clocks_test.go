package app

import (
	"strings"
	"testing"
	"time"

	"tocsin/internal/clickhouse"
)

// TestSlowAnswersAreNoDifferenceOfClocks compares clocks that were read some time before their answers came.
func TestSlowAnswersAreNoDifferenceOfClocks(t *testing.T) {
	t.Parallel()
	asked := time.Unix(1_795_244_520, 0)
	at := func(took, read time.Duration) ahead { return *aheadOf(asked, asked.Add(took), asked.Add(read)) }
	exact := at(0, 0)
	for name, c := range map[string]struct {
		postgres, clickHouse ahead
		verdict              clickhouse.Verdict
		text                 string
	}{
		"equal":                       {exact, exact, clickhouse.OK, "ClickHouse none, this machine none"},
		"ahead":                       {exact, at(0, 6*time.Second), clickhouse.Warn, "ClickHouse 6s ahead"},
		"far ahead":                   {exact, at(0, 61*time.Second), clickhouse.Broken, "nothing is evaluated"},
		"far ahead, slowly":           {exact, at(20*time.Second, 81*time.Second), clickhouse.Broken, "uncertain by 10s"},
		"this machine is behind":      {at(0, 61*time.Second), at(0, 61*time.Second), clickhouse.Warn, "this machine 1m1s behind"},
		"read at once, answered late": {exact, at(20*time.Second, 0), clickhouse.OK, "uncertain by 10s, because the databases answer slowly"},
		"read late, answered at once": {exact, at(20*time.Second, 20*time.Second), clickhouse.OK, "uncertain by 10s"},
		"ahead, and read late":        {exact, at(20*time.Second, 26*time.Second), clickhouse.Warn, "ClickHouse 16s ahead"},
		"Postgres answers late":       {at(2*time.Minute, 2*time.Minute), at(2*time.Minute, 0), clickhouse.OK, "uncertain by 2m0s"},
	} {
		var d examination
		d.compareClocks(c.postgres, c.clickHouse)
		if f := d.findings[0]; f.Verdict != c.verdict || !strings.Contains(f.Text, c.text) {
			t.Errorf("%s: %+v, want %v with %q", name, f, c.verdict, c.text)
		}
	}
}
