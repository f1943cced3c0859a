package postgres_test

import (
	"encoding/json"
	"testing"
	"time"

	"tocsin/internal/pgtest"
)

// TestInstantsAfterTheLastYearCanBeShown migrates tokens and silences that were stored when requests could still name
// such instants.
func TestInstantsAfterTheLastYearCanBeShown(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	pgtest.MigrateTo(t, url, 94)
	b := &before{tb: t, url: url, conn: pgtest.Conn(t, url)}
	b.exec(`insert into api_token (token_id, tenant_id, name, role, secret_hash, hint, created_by, expires_at)
		select gen_random_uuid(), 'acme', at::text, 'viewer', convert_to(at::text, 'UTF8'), '', '', at
		from unnest('{10000-01-01 00:00:00+00, 294276-12-31 23:59:59+00, 9999-12-31 23:59:59.999+00, 2027-01-01 00:00:00+00, null}'::timestamptz[]) at where at is not null`)
	b.exec(`insert into silence (silence_id, tenant_id, name, match, starts_at, ends_at, recurrence)
		select gen_random_uuid(), 'acme', at::text, '{}', at, until, '{}'
		from unnest('{10000-01-01 00:00:00+00, 9999-12-31 23:59:59+00, 294276-12-31 00:00:00+00, 2026-01-01 00:00:00+00, 2026-01-01 00:00:00+00}'::timestamptz[],
		            '{10000-01-02 00:00:00+00, null, 294276-12-31 23:59:59+00, 20000-01-01 00:00:00+00, 2027-01-01 00:00:00+00}'::timestamptz[]) as x(at, until)`)
	pgtest.MigrateTo(t, url, 95)
	for _, sql := range []string{
		`select coalesce(expires_at, now()) from api_token`, `select starts_at + interval '7 days' from silence`, `select coalesce(ends_at, now()) from silence`,
	} {
		rows, err := b.conn.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; rows.Next(); n++ {
			var at time.Time
			if err := rows.Scan(&at); err != nil {
				t.Fatal(err)
			}
			if _, err := json.Marshal(at.UTC()); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
		if rows.Err() != nil || n < 4 {
			t.Errorf("%s: %d rows, %v", sql, n, rows.Err())
		}
	}
	for what, sql := range map[string]string{
		"what can be shown stays":        `select count(*) = 2 from api_token where expires_at = name::timestamptz`,
		"so do silences":                 `select count(*) = 2 from silence where starts_at = name::timestamptz and (ends_at = '2027-01-01 00:00:00+00' or ends_at > '9999-01-01 00:00:00+00')`,
		"what had no end still has none": `select count(*) = 1 from silence where ends_at is null`,
	} {
		if !one[bool](t, b.conn, sql) {
			t.Error(what)
		}
	}
}
