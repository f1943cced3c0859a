package postgres_test

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/alerts/silences"
	"tocsin/api"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/pgtest"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/internal/storetest"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// older shifts every stored time back by a number of seconds: for anything that compares it with
// the clock, time has passed.
const older = `
do $$
declare
    t record;
begin
    set local session_replication_role = replica;
    for t in
        select c.table_name, string_agg(format('%1$I = %1$I - interval ''%2$s s''', c.column_name, SECONDS), ', ') as changes
        from information_schema.columns c join information_schema.tables b using (table_schema, table_name)
            join pg_class p on p.oid = format('%I', c.table_name)::regclass and not p.relispartition
        where c.table_schema = 'public' and b.table_type = 'BASE TABLE' and c.data_type = 'timestamp with time zone' and c.is_generated = 'NEVER'
        group by c.table_name
    loop
        execute format('update %I set %s', t.table_name, t.changes);
    end loop;
end $$`

// TestLaw runs the same tests against the store as against the model of the simulation.
func TestLaw(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store {
		t.Helper()
		url := pgtest.URL(t)
		box, err := seal.New(base64.StdEncoding.EncodeToString(make([]byte, 32)))
		if err != nil {
			t.Fatal(err)
		}
		db, err := postgres.Open(t.Context(), url, box)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		return lawful(t, db, pgtest.Conn(t, url))
	})
}

func lawful(t *testing.T, db *postgres.DB, conn *pgx.Conn) storetest.Store {
	t.Helper()
	ctx := t.Context()
	record := db.Record(nil)
	return storetest.Store{
		Evaluation: db.Evaluation(time.Minute), Outbox: wholeLooks{db.Outbox()}, Retention: db.Retention(), Replicas: db.Replicas(), Resolution: db.Resolution(),
		Partition: int(xxhash.Sum64String(storetest.Tenant) % 8),
		CreateWebhook: func(w notify.Webhook) (uuid.UUID, error) {
			w, err := db.Webhooks().Create(ctx, storetest.Tenant, w)
			return w.ID, err
		},
		EnableWebhook: func(id uuid.UUID, enabled bool) error {
			_, err := db.Webhooks().SetEnabled(ctx, storetest.Tenant, id, enabled)
			return err
		},
		CreateRule: func(d rules.Definition) (rules.Rule, error) { return db.Rules().Create(ctx, storetest.Tenant, d) },
		UpdateRule: func(r rules.Rule) (rules.Rule, error) {
			return db.Rules().Update(ctx, storetest.Tenant, api.RuleEdit{ID: r.ID, Version: r.Version, Definition: r.Definition})
		},
		EnableRule: func(id uuid.UUID, enabled bool) (rules.Rule, error) {
			return db.Rules().SetEnabled(ctx, storetest.Tenant, id, enabled)
		},
		Resolve: func(id uuid.UUID) error {
			_, err := db.Inbox().Act(ctx, storetest.Tenant, api.AlertAction{AlertID: id, Action: alerts.Resolve, Actor: "somebody"})
			return err
		},
		Retry: func(id uuid.UUID) error {
			_, err := record.Retry(ctx, storetest.Tenant, id, "somebody")
			return err
		},
		Discard: func(id uuid.UUID) error { return record.Discard(ctx, storetest.Tenant, id, "somebody") },
		CreateSilence: func(d silences.Definition) (uuid.UUID, error) {
			r, err := db.Silences().Create(ctx, storetest.Tenant, "somebody", d)
			return r.ID, err
		},
		UpdateSilence: func(id uuid.UUID, d silences.Definition) error {
			is, err := db.Silences().Get(ctx, storetest.Tenant, id)
			if err == nil {
				_, err = db.Silences().Update(ctx, storetest.Tenant, "somebody", api.SilenceEdit{ID: id, Version: is.Version, Definition: d})
			}
			return err
		},
		DigestSilences: func() (map[uuid.UUID]int, error) {
			return db.Outbox().DigestSilences(ctx, nil, func(string) bool { return true })
		},
		ListedIn: func(id uuid.UUID) uuid.UUID {
			return one[uuid.UUID](t, conn, `select coalesce((select digest_id from digest_listing where notification_id = $1), '00000000-0000-0000-0000-000000000000')`, id)
		},
		EndQuiet: func() (released int, err error) {
			due, err := db.Outbox().EndQuiet(ctx, nil)
			for _, n := range due {
				released += n
			}
			return released, err
		},
		EditQuietHours: func(id uuid.UUID, hours notify.QuietHours) error {
			w, err := db.Webhooks().Get(ctx, storetest.Tenant, id)
			if err == nil {
				w.QuietHours = hours
				_, err = db.Webhooks().Update(ctx, storetest.Tenant, w)
			}
			return err
		},
		ExpireHeld: func(after time.Duration) (int, error) {
			ended, _, err := db.Outbox().ExpireHeld(ctx, after)
			return ended, err
		},
		Act: func(act uuid.UUID, action alerts.Action, ids ...uuid.UUID) (int, error) {
			done, err := db.Inbox().ActOnMany(ctx, storetest.Tenant, api.BulkAction{ID: act, Action: action, Actor: "somebody", Filter: alerts.Filter{IDs: ids}})
			return int(done.Changed), err
		},
		Undo: func(act uuid.UUID) (int, error) {
			done, err := db.Inbox().Undo(ctx, storetest.Tenant, api.Undo{ActionID: act, Actor: "somebody"})
			return int(done.Restored), err
		},
		Snooze: func(id uuid.UUID, d time.Duration) error {
			var now time.Time
			if err := conn.QueryRow(ctx, `select now()`).Scan(&now); err != nil {
				return err
			}
			_, err := db.Inbox().Snooze(ctx, storetest.Tenant, api.Snooze{AlertID: id, Until: new(now.Add(d)), Actor: "somebody"})
			return err
		},
		CancelSnooze: func(id uuid.UUID) error {
			_, err := db.Inbox().Snooze(ctx, storetest.Tenant, api.Snooze{AlertID: id, Actor: "somebody"})
			return err
		},
		Escalate: func() (map[uuid.UUID]int, error) {
			done, err := db.Outbox().Escalate(ctx, nil)
			return done.Due, err
		},
		Remind: func() (map[uuid.UUID]int, error) {
			due, _, err := db.Outbox().Remind(ctx, nil)
			return due, err
		},
		EndSilence: func(id uuid.UUID) error {
			_, err := db.Silences().End(ctx, storetest.Tenant, "somebody", id)
			return err
		},
		ReplacePolicy: func(version int64, p routing.Policy) error {
			_, err := db.Routing().Replace(ctx, storetest.Tenant, "somebody", version, p)
			return err
		},
		Routing: func(id uuid.UUID) *alerts.Routing {
			a, err := db.Inbox().Get(ctx, storetest.Tenant, id)
			if err != nil {
				t.Fatal(err)
			}
			return a.Routing
		},
		StartReplay: func(rule uuid.UUID, fromNS, toNS int64, messages ruleset.ReplayMessages) error {
			_, err := db.Rules().StartReplay(ctx, storetest.Tenant, "somebody", api.ReplayRequest{RuleID: rule, FromNS: fromNS, ToNS: toNS, Messages: messages})
			return err
		},
		CancelReplay: func(_, id uuid.UUID) error {
			_, err := db.Rules().CancelReplay(ctx, storetest.Tenant, "somebody", id)
			return err
		},
		Replay: func(id uuid.UUID) (matched, raised int, state string) {
			return one[int](t, conn, `select matched from replay where replay_id = $1`, id), one[int](t, conn, `select alerts from replay where replay_id = $1`, id),
				one[string](t, conn, `select state from replay where replay_id = $1`, id)
		},
		SuppressedBy: func(id uuid.UUID) uuid.UUID {
			return one[uuid.UUID](t, conn, `select coalesce((select silence_id from notification_status where notification_id = $1), '00000000-0000-0000-0000-000000000000')`, id)
		},
		Advance: func(d time.Duration) { advance(ctx, t, conn, d) },
		Alert: func(id uuid.UUID) alerts.State {
			return one[alerts.State](t, conn, `select coalesce((select state from alert where alert_id = $1), '')`, id)
		},
		Alerts: func() int { return one[int](t, conn, `select count(*) from alert`) },
		Message: func(id uuid.UUID) (notify.Status, []string) {
			return one[notify.Status](t, conn, `select status from notification_status where notification_id = $1`, id),
				one[[]string](t, conn, `
					select coalesce(array_agg(coalesce(h.verdict, 'UNKNOWN') order by h.attempt), '{}')
					from notification_status s join attempt_history h on h.notification_id = coalesce(s.digest_id, s.notification_id)
					where s.notification_id = $1`, id)
		},
	}
}

// wholeLooks makes every claim look at the whole queue. After a slow look, as on a busy machine,
// later looks begin at remembered bounds, behind which no row moves in production; in these tests
// all rows do as time passes.
type wholeLooks struct{ *postgres.Outbox }

func (o wholeLooks) Claim(ctx context.Context, request dispatch.ClaimRequest) (dispatch.Claimed, error) {
	o.EndPeriod()
	return o.Outbox.Claim(ctx, request)
}

func advance(ctx context.Context, t *testing.T, conn *pgx.Conn, d time.Duration) {
	t.Helper()
	if _, err := conn.Exec(ctx, strings.ReplaceAll(older, "SECONDS", strconv.FormatFloat(d.Seconds(), 'f', -1, 64))); err != nil {
		t.Fatal(err)
	}
}
