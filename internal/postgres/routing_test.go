package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/rules"
)

func critical(webhooks ...uuid.UUID) routing.Policy {
	return routing.Policy{Routes: []routing.Route{{Name: "critical", Match: severities(rules.Critical), WebhookIDs: webhooks}}}
}

// routes makes the rule use the routing policy, and returns the revision of its rules.
func (p *persist) routes(t *testing.T) int64 {
	t.Helper()
	p.exec(t, `delete from rule_webhook`)
	p.exec(t, `update rule set use_routing_policy = true`)
	p.exec(t, `insert into partition_rule (partition, rule_id, changed) values (0, $1, 1) on conflict do nothing`, p.rule)
	return one[int64](t, p.conn, `select rules_revision from checkpoint where partition = 0`)
}

// readAgain returns the rule if it changed after a revision, otherwise nil.
func (p *persist) readAgain(t *testing.T, after int64) *ruleset.Stored {
	t.Helper()
	set, err := p.store.Rules(t.Context(), 0, after)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Rules) == 0 {
		return nil
	}
	return &set.Rules[0]
}

// TestACommitAndAChangeOfThePolicyFollowEachOther starts each of the two while the other one is
// under way. No commit is written by a policy that is not in force.
func TestACommitAndAChangeOfThePolicyFollowEachOther(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := newPersist(t)
	db := p.opened(t)
	revision := p.routes(t)
	few := func(revision int64) evaluator.Batch {
		b := p.page()
		b.Instances, b.Notifications, b.RulesRevision = b.Instances[:3], nil, revision
		return b
	}

	// A change is under way: a commit waits for it, and is rejected.
	tx, err := p.conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `update checkpoint set rules_revision = rules_revision + 1 where partition = 0`); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	batch := few(revision)
	go func() {
		_, err := p.store.Commit(ctx, batch)
		refused <- err
	}()
	p.waits(t)
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, evaluator.ErrStale) {
		t.Errorf("a commit that waited for a change of the policy: %v", err)
	}

	// A commit is under way: the change waits for it, and what follows uses the new policy.
	if tx, err = p.conn.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `update checkpoint set revision = revision where partition = 0`); err != nil {
		t.Fatal(err)
	}
	changed := make(chan error, 1)
	go func() {
		_, err := db.Routing().Replace(ctx, "default", "ada", 1, critical(p.webhook))
		changed <- err
	}()
	p.waits(t)
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	if _, err := p.store.Commit(ctx, few(revision+1)); !errors.Is(err, evaluator.ErrStale) {
		t.Errorf("a commit by the former policy: %v", err)
	}
	again := p.readAgain(t, revision+1)
	if again == nil || again.Err != nil || again.Router == nil {
		t.Fatalf("the rule is read as %+v", again)
	}
	now := one[int64](t, p.conn, `select rules_revision from checkpoint where partition = 0`)
	batch = few(now)
	for i := range batch.Instances {
		a := &batch.Instances[i]
		for _, hook := range routing.Recipients(&again.Rule, again.Router, a) {
			batch.Notifications = append(batch.Notifications, notify.Notification{
				ID: notify.ID(a.ID, hook, notify.ReasonFired, 0), TenantID: a.TenantID, AlertID: a.ID, RuleID: a.RuleID, WebhookID: hook, Reason: notify.ReasonFired,
			})
		}
	}
	if got := p.write(t, batch); got.Notifications[p.webhook] != 3 {
		t.Errorf("by the new policy %v are to be sent", got.Notifications)
	}
	if n := one[int](t, p.conn, `select count(*)::int from alert where routing->'routes'->0->>'name' = 'critical' and routing->>'version' = '2'`); n != 3 {
		t.Errorf("%d alerts say how they were routed, want 3", n)
	}
}

// TestAPolicyThatCannotBeReadFailsTheRulesThatUseIt has unusable policies in the database. Nothing
// is raised by a guess, and a new policy repairs the rules.
func TestAPolicyThatCannotBeReadFailsTheRulesThatUseIt(t *testing.T) {
	t.Parallel()
	p := newPersist(t)
	db := p.opened(t)
	p.routes(t)
	version := int64(1)
	for name, broken := range map[string]string{
		"no object":                     `[]`,
		"a condition that is not known": `{"routes": [{"name": "a", "match": {"weather": "bad"}, "webhookIds": []}]}`,
		"a part that is not known":      `{"routes": [], "otherwise": []}`,
		"an expression":                 `{"routes": [{"name": "a", "match": {"filter": {"errorMessageMatches": "("}}, "webhookIds": []}]}`,
		"a webhook that is none":        `{"routes": [{"name": "a", "webhookIds": ["ops"]}]}`,
	} {
		p.exec(t, `insert into routing_policy (tenant_id, policy, version) values ('default', $1, $2)
			on conflict (tenant_id) do update set policy = excluded.policy, version = excluded.version`, broken, version+1)
		version++
		if read := p.readAgain(t, 0); read == nil || read.Err == nil || !strings.Contains(read.Err.Error(), "; save a valid routing policy on the page Routing") || read.Router != nil {
			t.Errorf("%s: the rule is read as %+v", name, read)
		}
		shown, err := db.Routing().Get(t.Context(), "default")
		if err != nil || shown.Problem == "" || shown.Version != version || shown.Rules != 1 {
			t.Errorf("%s: shown as %+v, %v", name, shown, err)
		}
		if name != "an expression" { // which does not hide the webhooks
			if err := db.Webhooks().Delete(t.Context(), "default", p.webhook); fault.KindOf(err) != fault.Conflict {
				t.Errorf("%s: a webhook is deleted beside it: %v", name, err)
			}
		}
		before := one[int64](t, p.conn, `select rules_revision from checkpoint where partition = 0`)
		repaired, err := db.Routing().Replace(t.Context(), "default", "ada", version, critical(p.webhook))
		if err != nil || repaired.Problem != "" {
			t.Fatalf("%s: repaired to %+v, %v", name, repaired, err)
		}
		version++
		if read := p.readAgain(t, before); read == nil || read.Err != nil || read.Router == nil {
			t.Errorf("%s: after the repair the rule is read as %+v", name, read)
		}
	}
}

// TestAWebhookOfThePolicyIsNotDeleted checks that a policy that refers to a webhook prevents its
// deletion, and where alerts go that were routed to a deleted one.
func TestAWebhookOfThePolicyIsNotDeleted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWindowAlerts(t)
	second, err := w.db.Webhooks().Create(ctx, tenant, notify.Webhook{Name: "second", Kind: notify.KindGeneric, URL: "https://example.com", Enabled: true, Timeout: time.Second, MaxConcurrent: 1})
	if err != nil {
		t.Fatal(err)
	}
	replace := func(version int64, p routing.Policy) error {
		_, err := w.db.Routing().Replace(ctx, tenant, "ada", version, p)
		return err
	}
	if err := replace(1, routing.Policy{Routes: critical(second.ID).Routes, DefaultWebhookIDs: []uuid.UUID{second.ID}}); err != nil {
		t.Fatal(err)
	}
	err = w.db.Webhooks().Delete(ctx, tenant, second.ID)
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), `the route "critical", the default`) {
		t.Errorf("its deletion: %v", err)
	}
	// An open alert is routed there, but no policy refers to it any more.
	c := w.change(alerts.Raise, uuid.Nil, "a", notify.ReasonFired)
	c.Instance.Routing = &alerts.Routing{
		Version: 2, Routes: []alerts.RouteTaken{{Name: "critical", WebhookIDs: []uuid.UUID{w.webhook, second.ID}}}, DefaultWebhookIDs: []uuid.UUID{second.ID},
	}
	raised := w.apply(1, 0, 1, c)[0].Instance
	if err := replace(2, routing.Policy{}); err != nil {
		t.Fatal(err)
	}
	before := one[int64](t, w.conn, `select rules_revision from checkpoint join tenant_partition using (partition) where tenant_id = $1`, tenant)
	if err := w.db.Webhooks().Delete(ctx, tenant, second.ID); err != nil {
		t.Fatal(err)
	}
	// An evaluation that has already read where the alert goes has to read it again.
	if after := one[int64](t, w.conn, `select rules_revision from checkpoint join tenant_partition using (partition) where tenant_id = $1`, tenant); after <= before {
		t.Errorf("the revision is %d after a deletion, and was %d", after, before)
	}
	open, err := w.db.Evaluation(time.Minute).OpenAlerts(ctx, []uuid.UUID{raised.RuleID})
	if err != nil || len(open) != 1 || open[0].Routing == nil {
		t.Fatalf("open: %+v, %v", open, err)
	}
	if got := open[0].Routing.WebhookIDs(); len(got) != 1 || got[0] != w.webhook {
		t.Errorf("it goes to %v, want to %s alone", got, w.webhook)
	}
	// What is stored describes the past.
	if n := one[int](t, w.conn, `select count(*)::int from alert where strpos(routing::text, $1) > 0`, second.ID.String()); n != 1 {
		t.Errorf("%d alerts say that they were routed there", n)
	}
}

// TestPoliciesAreKept checks what the store rejects.
func TestPoliciesAreKept(t *testing.T) {
	t.Parallel()
	w := newWindowAlerts(t)
	ctx, s := t.Context(), w.db.Routing()
	first, err := s.Get(ctx, tenant)
	if err != nil || first.Version != 1 || len(first.Routes) != 0 || !first.UpdatedAt.IsZero() || first.Rules != 0 {
		t.Fatalf("that nobody has edited: %+v, %v", first, err)
	}
	made, err := s.Replace(ctx, tenant, "ada", 1, critical(w.webhook))
	if err != nil || made.Version != 2 || made.UpdatedBy != "ada" || made.UpdatedAt.IsZero() || made.Routes[0].WebhookIDs[0] != w.webhook {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err = s.Replace(ctx, tenant, "bob", 1, routing.Policy{}); fault.KindOf(err) != fault.Stale {
		t.Errorf("an edit of an older version: %v", err)
	}
	if _, err = s.Replace(ctx, tenant, "bob", 2, critical(uuid.New())); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a webhook that there is not: %v", err)
	}
	if _, err = s.Replace(ctx, "elsewhere", "bob", 1, critical(w.webhook)); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a webhook of another tenant: %v", err)
	}
	if other, err := s.Get(ctx, "elsewhere"); err != nil || other.Version != 1 {
		t.Errorf("of another tenant: %+v, %v", other, err)
	}
	if kept, err := s.Get(ctx, tenant); err != nil || kept.Version != 2 || kept.UpdatedBy != "ada" {
		t.Errorf("after what was refused: %+v, %v", kept, err)
	}
	entries := column(t, w.conn, `select action || ' ' || object_kind || ' ' || object_id from audit where object_kind = 'routing'`)
	if len(entries) != 1 || entries[0] != "create routing "+tenant {
		t.Errorf("the audit log has %q", entries)
	}
}
