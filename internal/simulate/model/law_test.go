package model_test

import (
	"flag"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/alerts/silences"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/simulate/model"
	"tocsin/internal/storetest"
	"tocsin/notify"
	"tocsin/rules"
)

var without = flag.String("without", "", "a guard to take away, which the law has to notice") //nolint:gochecknoglobals // a flag of the test binary

// TestLaw holds the model to what the real store does.
func TestLaw(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Store {
		now := time.Unix(1_795_244_520, 0)
		tick := func() time.Time { now = now.Add(time.Millisecond); return now }
		db := model.NewPostgres(8, tick, func(string) int { return 3 })
		db.Without[model.Guard(*without)] = true
		ids := byte(0)
		next := func() uuid.UUID { ids++; return uuid.UUID{15: ids} }
		return storetest.Store{
			Evaluation: db, Outbox: db, Retention: db, Replicas: db, Resolution: model.Resolution{DB: db}, Partition: 3,
			CreateWebhook: func(w notify.Webhook) (uuid.UUID, error) {
				w.ID, w.TenantID = next(), storetest.Tenant
				return w.ID, db.CreateWebhook(model.Webhook{Webhook: w})
			},
			EnableWebhook: db.EnableWebhook,
			CreateRule:    func(d rules.Definition) (rules.Rule, error) { return db.CreateRule(storetest.Tenant, next(), d) },
			UpdateRule:    func(r rules.Rule) (rules.Rule, error) { return db.UpdateRule(r.ID, r.Definition) },
			EnableRule:    db.EnableRule, Resolve: db.Resolve, Retry: db.RetryNotification, Discard: db.DiscardNotification,
			CreateSilence: func(d silences.Definition) (uuid.UUID, error) {
				id := next()
				return id, db.CreateSilence(storetest.Tenant, id, d)
			},
			EndSilence: db.EndSilence, UpdateSilence: db.UpdateSilence, ListedIn: db.ListedIn,
			DigestSilences: func() (map[uuid.UUID]int, error) {
				due := map[uuid.UUID]int{}
				for _, id := range db.SilencesToDigest() {
					some, err := db.DigestSilence(id)
					if err != nil {
						return nil, err
					}
					for webhook, n := range some {
						due[webhook] += n
					}
				}
				return due, nil
			},
			ExpireHeld: db.ExpireHeld,
			EndQuiet:   db.EndQuiet, EditQuietHours: db.EditQuietHours,
			Act: func(act uuid.UUID, action alerts.Action, ids ...uuid.UUID) (int, error) {
				to := map[alerts.Action]alerts.State{alerts.Acknowledge: alerts.Acknowledged, alerts.Resolve: alerts.Resolved}[action]
				changed, err := db.Act(act, to, ids...)
				return len(changed), err
			},
			Undo: func(act uuid.UUID) (int, error) {
				restored, err := db.Undo(act)
				return len(restored), err
			},
			Snooze: func(id uuid.UUID, d time.Duration) error { return db.Snooze(id, now.Add(d)) },
			CancelSnooze: func(id uuid.UUID) error {
				db.CancelSnooze(id)
				return nil
			},
			Escalate: func() (map[uuid.UUID]int, error) { return db.Escalate(db.EscalationsDue()) },
			Remind: func() (map[uuid.UUID]int, error) {
				due := map[uuid.UUID]int{}
				for _, id := range db.SnoozesOver() {
					some, err := db.Remind(id)
					if err != nil {
						return nil, err
					}
					for webhook, n := range some {
						due[webhook] += n
					}
				}
				return due, nil
			},
			ReplacePolicy: func(version int64, p routing.Policy) error { return db.ReplacePolicy(storetest.Tenant, version, p) },
			Routing: func(id uuid.UUID) *alerts.Routing {
				a, _ := db.Alert(id)
				return a.Routing
			},
			StartReplay: func(rule uuid.UUID, fromNS, toNS int64, messages ruleset.ReplayMessages) error {
				return db.StartReplay(rule, next(), fromNS, toNS, messages)
			},
			CancelReplay: func(rule, _ uuid.UUID) error { return db.CancelReplay(rule) },
			Replay: func(id uuid.UUID) (matched, raised int, state string) {
				p, _ := db.Replay(id)
				return p.Matched, p.Alerts, p.State
			},
			SuppressedBy: func(id uuid.UUID) uuid.UUID { m, _ := db.Message(id); return m.SuppressedBy() },
			Advance:      func(d time.Duration) { now = now.Add(d) },
			Alert: func(id uuid.UUID) alerts.State {
				a, _ := db.Alert(id)
				return a.State
			},
			Alerts:  func() int { return len(db.AlertIDs()) },
			Message: db.Status,
		}
	})
}
