package app_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// lose runs f and then removes everything from Postgres that f has committed, like a failover to a
// standby that was behind.
func (w *world) lose(f func()) {
	w.t.Helper()
	tables := w.column(`select tablename::text from pg_tables where schemaname = current_schema() and tablename not like 'notification_body%' and tablename not like 'goose%'`)
	for _, table := range tables {
		w.exec(`create temporary table kept_` + table + ` as table ` + table)
	}
	f()
	w.exec(`set session_replication_role = replica`)
	for _, table := range tables {
		w.exec(`delete from ` + table)
		w.exec(`insert into ` + table + ` overriding system value select * from kept_` + table)
		w.exec(`drop table kept_` + table)
	}
	w.exec(`set session_replication_role = origin`)
}

// TestNoticesOfOperatorsKeepTheirIDs has notifications of operators that are lost by a failover and
// written again: receivers can recognise the repetition. The next incident has other ids.
func TestNoticesOfOperatorsKeepTheirIDs(t *testing.T) {
	t.Parallel()
	const ids = `select reason || ' ' || notification_id || ' ' || coalesce(alert_id::text, '') from notification where reason in
		('SOURCE_FAILING', 'SOURCE_RECOVERED', 'RULE_FAILING', 'WEBHOOK_OFF', 'WEBHOOK_FAILING') order by 1`
	for name, c := range map[string]struct{ raise, end func(w *world) }{
		"source": {
			func(w *world) { w.readable("one", false) },
			func(w *world) { w.readable("one", true) },
		},
		"webhook off": {
			func(w *world) {
				w.status(http.StatusGone)
				w.raiseFor(w.ops(), "e"+w.column(`select count(*)::text from notification`)[0])
				w.deliver()
			},
			func(w *world) {
				if _, err := w.db.Webhooks().SetEnabled(w.t.Context(), tenant, w.ops(), true); err != nil {
					w.t.Fatal(err)
				}
			},
		},
		"breaker": {
			func(w *world) {
				w.exec(`update webhook_state set opened_at = now() - interval '1 h', open_until = now() + interval '1 h', openings = 1, failures = 9, last_error = 'no' where webhook_id = $1`, w.ops())
				if _, err := w.db.Outbox().NotifyOpenBreakers(w.t.Context(), 0); err != nil {
					w.t.Fatal(err)
				}
			},
			func(w *world) {
				w.exec(`update alert set state = 'RESOLVED', resolved_at = now() where health`)
				w.exec(`delete from webhook_incident`)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.operators()
			hook := w.webhook("ops")
			w.exec(`update webhook set created_at = now() - interval '1 h' where operators`)
			w.raiseFor(hook, "a")
			var first []string
			w.lose(func() { c.raise(w); first = w.column(ids) })
			if len(first) == 0 {
				t.Fatal("nobody was notified")
			}
			w.wantColumn("lost", ids)
			c.raise(w)
			w.wantColumn("raised again", ids, first...)
			c.end(w)
			c.raise(w)
			all := w.column(ids)
			if len(all) < 2*len(first) || !slices.Equal(all, slices.Compact(slices.Clone(all))) {
				t.Errorf("with the next incident: %q", all)
			}
		})
	}
}

// readable sets whether the source can be read.
func (w *world) readable(replica string, again bool) {
	w.t.Helper()
	store := w.db.Evaluation(time.Minute)
	var err error
	if again {
		_, err = store.SourceRecovered(w.t.Context(), 0)
	} else {
		_, err = store.SourceFailed(w.t.Context(), replica, 0, "no answer")
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// ops returns the webhook of that name.
func (w *world) ops() uuid.UUID {
	w.t.Helper()
	return uuid.MustParse(w.column(`select webhook_id::text from webhook where name = 'ops'`)[0])
}
