package postgres_test

import (
	"testing"
	"time"

	"tocsin/cursor"
	"tocsin/internal/retention"
)

// TestRetentionSparesWhatMayBeRaisedAgain has an old alert of a rule with different progress.
func TestRetentionSparesWhatMayBeRaisedAgain(t *testing.T) {
	t.Parallel()
	const keep = 24 * time.Hour
	old := cursor.At(time.Now().Add(-71 * time.Hour)).String()
	for name, c := range map[string]struct {
		sql  string
		args []any
		gone int
	}{
		"evaluated long since":                {`select`, nil, 1},
		"the partition is behind":             {`update checkpoint set cursor = $1`, []any{old}, 0},
		"the partition has a backfill":        {`update checkpoint set backfill_from_ns = 5, backfill_cursor_ns = 5`, nil, 0},
		"the rule is behind":                  {`insert into rule_backfill (rule_id, position, until) select rule_id, $1, $1 from rule`, []any{old}, 0},
		"the cursor cannot be read":           {`update checkpoint set cursor = 'nonsense'`, nil, 0},
		"the position cannot be read":         {`insert into rule_backfill (rule_id, position) select rule_id, 'nonsense' from rule`, nil, 0},
		"the partition has evaluated nothing": {`update checkpoint set cursor = null`, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPersist(t)
			page := p.page()
			page.Instances, page.Notifications = page.Instances[:1], nil
			page.Instances[0].Exchange.StartTimeNS = time.Now().Add(-72 * time.Hour).UnixNano()
			p.write(t, page)
			p.exec(t, `update alert set state = 'RESOLVED', resolved_at = now() - interval '70 h'`)
			p.exec(t, c.sql, c.args...)
			result, err := openAt(t, p.url).Retention().Alerts(t.Context(), retention.Batch{Keep: keep, Most: 10})
			if err != nil || result.Looked != 1 || result.Deleted != c.gone {
				t.Errorf("deleted %+v, %v; want %d deleted", result, err, c.gone)
			}
		})
	}
}
