package product

import (
	"context"
	"fmt"
	"time"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/internal/postgres"
	"tocsin/notify"
	"tocsin/rules"
)

// Committer commits pages of alerts of one rule by the product's own store, as
// an evaluator does that shares its process with no dispatcher.
type Committer struct {
	store *postgres.Evaluation
	rule  rules.Rule
	at    evaluator.Checkpoint
	held  []int
	next  int
}

const (
	leaseFor = 10 * time.Minute
	// committer names it in leases.
	committer = "bench"
)

// Committer holds all partitions of the world, which has a single rule.
func (w *World) Committer(ctx context.Context) (*Committer, error) {
	store := w.DB.Evaluation(leaseFor)
	holding, err := store.Hold(ctx, evaluator.HoldRequest{Replica: committer, LeaseFor: leaseFor})
	if err != nil {
		return nil, err
	}
	var held []int
	for _, at := range holding.Checkpoints {
		held = append(held, at.Partition)
	}
	for _, at := range holding.Checkpoints {
		set, err := store.Rules(ctx, at.Partition, 0)
		if err != nil {
			return nil, err
		}
		if len(set.Rules) == 1 && set.Rules[0].Err == nil {
			at.RulesRevision = set.Revision
			return &Committer{store: store, rule: set.Rules[0].Rule, at: at, held: held}, nil
		}
	}
	return nil, fmt.Errorf("of %d partitions none has the only rule", len(holding.Checkpoints))
}

// Page makes the next page of so many alerts, one notification each for each webhook.
func (c *Committer) Page(size int) evaluator.Batch {
	b := evaluator.Batch{Partition: c.at.Partition, LeaseFor: leaseFor}
	for range size {
		c.next++
		start := c.rule.ArmedSinceNS + int64(c.next)*1000
		end := start + int64(time.Millisecond)
		e := rules.Exchange{
			TenantID: Tenant, StartTimeNS: start, EndTimeNS: &end, DurationNS: int64(time.Millisecond), ExecutionID: fmt.Sprintf("execution-%08d", c.next),
			Environment: "production", Application: "orders", Route: fmt.Sprint("route-", c.next%50), Status: rules.Failed, ErrorType: "ConnectException",
			ErrorMessage:  fmt.Sprintf("ERP refused order %d: 503 Service Unavailable", c.next),
			CorrelationID: fmt.Sprint("c-", c.next), Attributes: map[string]string{"customer": fmt.Sprint(c.next % 1000), "region": "eu"},
		}
		a := alerts.Instance{
			ID: alerts.ID(c.rule.ID, &e), TenantID: Tenant, RuleID: c.rule.ID, RuleVersion: c.rule.Version, Severity: c.rule.Severity, State: alerts.Firing,
			Title: "orders failed", Message: e.ErrorMessage, Exchange: e,
		}
		b.Instances = append(b.Instances, a)
		for _, hook := range c.rule.WebhookIDs {
			b.Notifications = append(b.Notifications, notify.Notification{
				ID: notify.ID(a.ID, hook, notify.ReasonFired, 0), TenantID: Tenant, AlertID: a.ID, RuleID: c.rule.ID, WebhookID: hook, Reason: notify.ReasonFired,
			})
		}
	}
	last := b.Instances[size-1].Exchange.Position()
	b.Cursor = &last
	return b
}

// Commit writes a page, and fails unless all of it was new.
func (c *Committer) Commit(ctx context.Context, b evaluator.Batch) error {
	b.Token, b.Revision, b.RulesRevision = c.at.Token, c.at.Revision, c.at.RulesRevision
	done, err := c.store.Commit(ctx, b)
	if err != nil {
		return err
	}
	c.at.Revision = done.Revision
	notifications := 0
	for _, n := range done.Notifications {
		notifications += n
	}
	if len(done.Inserted) != len(b.Instances) || notifications != len(b.Notifications) {
		return fmt.Errorf("of %d alerts and %d notifications, %d and %d were new",
			len(b.Instances), len(b.Notifications), len(done.Inserted), notifications)
	}
	return nil
}

// Pending commits so many alerts with all their notifications, which are then PENDING.
func (c *Committer) Pending(ctx context.Context, count int) error {
	for left := count; left > 0; left -= 1000 {
		if err := c.Commit(ctx, c.Page(min(left, 1000))); err != nil {
			return err
		}
	}
	return nil
}

// Release gives up what the committer holds, so that replicas may evaluate it.
func (c *Committer) Release(ctx context.Context) error {
	return c.store.Release(ctx, committer, c.held)
}
