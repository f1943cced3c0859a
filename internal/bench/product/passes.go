package product

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Crowd stores n enabled rules that match nothing which [World.Insert] writes:
// each looks at an application and a route of its own, every tenth at routes by
// wildcard, with an expression and an attribute.
func (w *World) Crowd(ctx context.Context, n int) error {
	err := w.Exec(ctx, `
		with made as (
			insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template,
			                  targets, interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
			select gen_random_uuid(), $2, 'rule ' || n, true, 'PER_EXCHANGE', 'WARNING',
			       jsonb_build_object('environments', jsonb_build_array('production'), 'applications', jsonb_build_array('app-' || n % 500),
			                          'routes', jsonb_build_array('route-' || n % 97 || case when n % 10 = 0 then '*' else '' end)),
			       '{"errorMessageMatches": "refused|timed out", "attributes": [{"key": "customer", "op": "EQUALS", "value": "42"}]}',
			       '', '', '[]', 3600, 3600, 0, 0
			from generate_series(1, $1::int) n
			returning rule_id)
		insert into rule_state (rule_id, armed_since_ns, next_run_at)
		select rule_id, (extract(epoch from now()) * 1e9)::bigint, now() from made`, n, Tenant)
	if err != nil {
		return err
	}
	return w.Exec(ctx, "vacuum analyze")
}

// Fresh writes exchanges that begin from now on, a microsecond apart, and waits
// until the last has ended.
func (w *World) Fresh(ctx context.Context, x Exchanges) error {
	now, err := w.NowNS(ctx)
	if err != nil {
		return err
	}
	x.StartNS, x.StepNS, x.EndNS = now, 1000, now+int64(x.Count)*1000
	if err := w.Insert(ctx, x); err != nil {
		return err
	}
	_, err = Await(ctx, func() (bool, error) {
		at, err := w.NowNS(ctx)
		return at > x.EndNS, err
	})
	return err
}

// DueIn makes all rules due after a while, and returns that instant by Postgres's clock.
func (w *World) DueIn(ctx context.Context, after time.Duration) (due time.Time, err error) {
	if err := w.Pool.QueryRow(ctx, "select clock_timestamp() + $1::interval", after).Scan(&due); err != nil {
		return due, err
	}
	// In this order: rules that are just joining a cohort are waited for.
	if err := w.Exec(ctx, "update rule_state set next_run_at = $1 where next_run_at is not null", due); err != nil {
		return due, err
	}
	return due, w.Exec(ctx, "with company as (update cohort set next_run_at = $1) "+announce, due)
}

// Reads is what ClickHouse says that it has read, of everything that asks it.
type Reads struct{ Queries, Rows, Parts int64 }

// Since returns what was read between an earlier reading and this one, without
// what the reading itself reads.
func (r Reads) Since(earlier Reads) Reads {
	return Reads{r.Queries - earlier.Queries - 1, r.Rows - earlier.Rows, r.Parts - earlier.Parts}
}

// Reads asks ClickHouse for its counters.
func (w *World) Reads(ctx context.Context) (Reads, error) {
	said, err := w.ClickHouse(ctx, `SELECT sumIf(value, event = 'SelectQuery') AS queries, sumIf(value, event = 'SelectedRows') AS rows,
		sumIf(value, event = 'SelectedParts') AS parts FROM system.events FORMAT JSONEachRow SETTINGS output_format_json_quote_64bit_integers = 0`)
	if err != nil {
		return Reads{}, err
	}
	var read struct{ Queries, Rows, Parts int64 }
	if err := json.Unmarshal([]byte(strings.TrimSpace(said)), &read); err != nil {
		return Reads{}, fmt.Errorf("read ClickHouse's counters: %w: %.200s", err, said)
	}
	return Reads(read), nil
}

// History writes exchanges of the month that ended two hours ago, before any rule was armed.
func (w *World) History(ctx context.Context, count int64) error {
	const span, ago = int64(30 * 24 * time.Hour), int64(2 * time.Hour)
	now, err := w.NowNS(ctx)
	if err != nil {
		return err
	}
	begin, step := now-ago-span, max(1, span/count)
	const page = 5_000_000
	for from := int64(0); from < count; from += page {
		if _, err := w.ClickHouse(ctx, fmt.Sprintf(`
			INSERT INTO exchanges (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status,
			                       error_type, error_message, correlation_id)
			SELECT '%s', fromUnixTimestamp64Nano(toInt64(%d) + toInt64(number) * %d, 'UTC') AS s, 'production', concat('app-', toString(number %% 20)),
			       concat('route-', toString(number %% 50)), toString(number), s + toIntervalMillisecond(2), 2000000,
			       if(number %% 50 = 0, 'FAILED', 'COMPLETED'), if(number %% 50 = 0, 'ConnectException', ''),
			       if(number %% 50 = 0, 'ERP refused', ''), ''
			FROM numbers(%d, %d)`, Tenant, begin, step, from, min(page, count-from))); err != nil {
			return err
		}
	}
	return nil
}
