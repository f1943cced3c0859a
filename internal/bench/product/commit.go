package product

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
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
	token int64
	from  *cursor.Position
	next  int
}

const claimFor = 10 * time.Minute

// Committer claims the only rule of the world.
func (w *World) Committer(ctx context.Context) (*Committer, error) {
	store := w.DB.Evaluation()
	loaded, err := store.Load(ctx, evaluator.ClaimRequest{Replica: "bench", Most: 1, For: claimFor})
	if err != nil {
		return nil, err
	}
	claims := loaded.Claims
	if len(claims) != 1 || claims[0].Err != nil {
		return nil, fmt.Errorf("claim the rule: %d claims", len(claims))
	}
	return &Committer{store: store, rule: claims[0].Rule, token: claims[0].Token, from: claims[0].From}, nil
}

// Page makes the next page of so many alerts, one notification each for each webhook.
func (c *Committer) Page(size int) evaluator.Batch {
	b := evaluator.Batch{ClaimFor: claimFor}
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
			ID: newID(), TenantID: Tenant, RuleID: c.rule.ID, RuleVersion: c.rule.Version, Severity: c.rule.Severity, State: alerts.Firing,
			Title: "orders failed", Message: e.ErrorMessage, Exchange: e,
		}
		b.Instances = append(b.Instances, a)
		for _, hook := range c.rule.WebhookIDs {
			b.Notifications = append(b.Notifications, notify.Notification{
				ID: newID(), TenantID: Tenant, AlertID: a.ID, RuleID: c.rule.ID, WebhookID: hook, Reason: notify.ReasonFired,
			})
		}
	}
	last := b.Instances[size-1].Exchange.Position()
	b.Advances = []evaluator.Advance{{RuleID: c.rule.ID, Token: c.token, Version: c.rule.Version, From: c.from, To: last}}
	c.from = &last
	return b
}

// Commit writes a page, and fails unless all of it was new.
func (c *Committer) Commit(ctx context.Context, b evaluator.Batch) error {
	done, err := c.store.Commit(ctx, b)
	if err == nil && (len(done.Inserted) != len(b.Instances) || done.Notifications != len(b.Notifications)) {
		err = fmt.Errorf("of %d alerts and %d notifications, %d and %d were new",
			len(b.Instances), len(b.Notifications), len(done.Inserted), done.Notifications)
	}
	return err
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

// newID makes ids as the evaluator does.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
