package product

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// changeRules begins a statement that stores rules of some tenants: it gives each of their
// partitions its next rules revision, as every change of rules does.
const changeRules = `
	with changed as (
		update checkpoint c
		set rules_revision = greatest(c.rules_revision + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
		where c.partition in (select partition from tenant_partition where tenant_id = any($1::text[]))
		returning c.partition, c.rules_revision
	), `

// storeRules ends it: of the rules in made it writes all but the rules themselves.
const storeRules = `, armed as (
		insert into rule_state (rule_id, armed_since_ns) select rule_id, (extract(epoch from now()) * 1e9)::bigint from made)
	insert into partition_rule (partition, rule_id, changed)
	select c.partition, m.rule_id, c.rules_revision
	from made m join tenant_partition t using (tenant_id) join changed c using (partition)`

// Crowd stores n enabled rules that match nothing which [World.Insert] writes:
// each looks at an application and a route of its own, every tenth at routes by
// wildcard, with an expression and an attribute. No pass was made before.
func (w *World) Crowd(ctx context.Context, n int) error {
	err := w.Exec(ctx, changeRules+`made as (
			insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template,
			                  targets, interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
			select gen_random_uuid(), ($1::text[])[1], 'rule ' || n, true, 'PER_EXCHANGE', 'WARNING',
			       jsonb_build_object('environments', jsonb_build_array('production'), 'applications', jsonb_build_array('app-' || n % 500),
			                          'routes', jsonb_build_array('route-' || n % 97 || case when n % 10 = 0 then '*' else '' end)),
			       '{"errorMessageMatches": "refused|timed out", "attributes": [{"key": "customer", "op": "EQUALS", "value": "42"}]}',
			       '', '', '[]', 1, 3600, 0, 0
			from generate_series(1, $2::int) n
			returning rule_id, tenant_id)`+storeRules, []string{Tenant}, n)
	if err != nil {
		return err
	}
	return w.Exec(ctx, "vacuum analyze")
}

// Windows stores n enabled window rules for each of some tenants: as many of each mode, over
// one minute and over five, grouped by route, application, environment and attribute. They look
// at applications that nobody writes. No pass was made before.
func (w *World) Windows(ctx context.Context, tenants []string, n int) error {
	err := w.Exec(ctx, changeRules+`made as (
			insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template,
			                  targets, interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds,
			                  threshold, window_seconds, measure, absence, group_by, group_attribute)
			select gen_random_uuid(), t.name, 'window rule ' || n, true, m.mode, 'WARNING',
			       jsonb_build_object('applications', jsonb_build_array('unseen-' || n % 500)), m.filter::jsonb, '', '', '[]', 1, 0, 0, 0,
			       m.threshold, (array[60, 300])[n / 4 % 2 + 1], m.measure::jsonb, m.absence::jsonb, g.field, g.attribute
			from unnest($1::text[]) t (name) cross join generate_series(0, $2::int - 1) n
			join (values
				(0, 'COUNT_IN_WINDOW', 5, '{}', '{}', '{}'),
				(1, 'RATIO_IN_WINDOW', 0, '{}', '{"percent": 5, "minVolume": 20}', '{}'),
				(2, 'DURATION_IN_WINDOW', 0, '{"statuses": ["COMPLETED", "FAILED"]}', '{"percentile": 95, "durationMs": 2000, "minVolume": 20}', '{}'),
				(3, 'ABSENT_IN_WINDOW', 1, '{"statuses": ["COMPLETED", "FAILED"]}', '{}', '{"learnDays": 1}')
			) m (nth, mode, threshold, filter, measure, absence) on m.nth = n % 4
			join (values (0, 'ROUTE', ''), (1, 'APPLICATION', ''), (2, 'ENVIRONMENT', ''), (3, 'ATTRIBUTE', 'customer')) g (nth, field, attribute) on g.nth = n / 8 % 4
			returning rule_id, tenant_id)`+storeRules, tenants, n)
	if err != nil {
		return err
	}
	return w.Exec(ctx, "vacuum analyze")
}

// TenantName names one of several tenants.
func TenantName(n int) string { return "tenant-" + strconv.Itoa(n) }

// Tenants stores so many tenants with so many rules each, of which one matches what
// [World.Insert] writes for its tenant, and gives them a number of partitions. No pass
// was made before.
func (w *World) Tenants(ctx context.Context, tenants, each, partitions int) error {
	now, err := w.Number(ctx, "select count(*) from checkpoint where share_of > 0")
	if err == nil && now != int64(partitions) {
		err = w.DB.Partitions().Count(ctx, partitions)
	}
	if err != nil {
		return err
	}
	names, shares := make([]string, tenants), make([]int32, tenants)
	for n := range tenants {
		names[n] = TenantName(n)
		shares[n] = int32(xxhash.Sum64String(names[n]) % uint64(partitions)) //nolint:gosec // below the number of partitions
	}
	err = w.Exec(ctx, `
		insert into tenant_partition (tenant_id, partition)
		select t.name, c.partition from unnest($1::text[], $2::integer[]) t (name, share) join checkpoint c on c.share_of > 0 and c.share_index = t.share`,
		names, shares)
	if err != nil {
		return err
	}
	err = w.Exec(ctx, changeRules+`made as (
			insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template,
			                  targets, interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
			select gen_random_uuid(), t.name, 'rule ' || n, true, 'PER_EXCHANGE', 'WARNING',
			       jsonb_build_object('applications', jsonb_build_array(case when n = 1 then 'orders' else 'app-' || n end)),
			       '{}', '', '', '[]', 1, 3600, 0, 0
			from unnest($1::text[]) t (name) cross join generate_series(1, $2::int) n
			returning rule_id, tenant_id)`+storeRules, names, each)
	if err != nil {
		return err
	}
	return w.Exec(ctx, "vacuum analyze")
}

// Fresh writes exchanges that begin from now on, a microsecond apart, and end at once.
// The machine's clock is that of the databases.
func (w *World) Fresh(ctx context.Context, x Exchanges) error {
	x.StartNS, x.StepNS = time.Now().UnixNano(), 1000
	x.EndNS = x.StartNS + int64(x.Count)*1000
	return w.Insert(ctx, x)
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

// Past describes exchanges of the past, of which every FailedEvery-th failed.
type Past struct {
	Count int64
	// Tenants are as many as that, and [Tenant] alone where it is 0.
	Tenants int
	// The exchanges are spread evenly over Span, which ended Ago.
	Span, Ago time.Duration
	// FailedEvery is 50 by default, Applications 20, as many as are named app-0, app-1 …
	FailedEvery, Applications int
}

// History writes exchanges of the past.
func (w *World) History(ctx context.Context, p Past) error {
	if p.FailedEvery == 0 {
		p.FailedEvery = 50
	}
	if p.Applications == 0 {
		p.Applications = 20
	}
	now, err := w.NowNS(ctx)
	if err != nil {
		return err
	}
	begin, step := now-int64(p.Ago+p.Span), max(1, int64(p.Span)/p.Count)
	const page = 5_000_000
	for from := int64(0); from < p.Count; from += page {
		if _, err := w.ClickHouse(ctx, fmt.Sprintf(`
			INSERT INTO exchanges (tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status,
			                       error_type, error_message, correlation_id)
			SELECT %[1]s, fromUnixTimestamp64Nano(toInt64(%[2]d) + toInt64(number) * %[3]d, 'UTC') AS s, 'production',
			       concat('app-', toString(intDiv(number, %[4]d) %% %[5]d)),
			       concat('route-', toString(number %% 50)), concat('past-', toString(number)), s + toIntervalMillisecond(2), 2000000,
			       if(number %% %[4]d = 0, 'FAILED', 'COMPLETED'), if(number %% %[4]d = 0, 'ConnectException', ''),
			       if(number %% %[4]d = 0, 'ERP refused', ''), ''
			FROM numbers(%[6]d, %[7]d)`, tenantColumn(p.Tenants), begin, step, p.FailedEvery, p.Applications, from, min(page, p.Count-from))); err != nil {
			return err
		}
	}
	return nil
}

// tenantColumn is the tenant of an exchange by its number.
func tenantColumn(tenants int) string {
	if tenants == 0 {
		return "'" + Tenant + "'"
	}
	return fmt.Sprintf("concat('tenant-', toString(number %% %d))", tenants)
}
