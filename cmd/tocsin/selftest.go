package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	api "tocsin/client"
	"tocsin/internal/clickhouse"
)

// selfTest follows one exchange through a running Tocsin: from ClickHouse through a rule of the
// test to an alert, and from there to a webhook. The rule counts, so that it raises only one alert
// however many exchanges there are. It exists as long as the test.
type selfTest struct {
	api     *api.ClientWithResponses
	webhook uuid.UUID
	// within bounds the wait for the alert, and then the wait for its message.
	within time.Duration
	// every is the time between two requests.
	every time.Duration
}

// run runs the test. A failure of the test is also a finding; an error comes from the API.
func (s *selfTest) run(ctx context.Context) (f clickhouse.Finding, err error) {
	hook, err := s.api.GetWebhookWithResponse(ctx, s.webhook)
	if err := api.Check(hook, err); err != nil {
		return f, fmt.Errorf("webhook %s: %w", s.webhook, err)
	}
	if !hook.JSON200.Enabled {
		return f, fmt.Errorf("webhook %s is disabled; name another one with --webhook", hook.JSON200.Name)
	}
	const window = 60
	began := time.Now()
	rule, err := s.api.CreateRuleWithResponse(ctx, api.RuleDefinition{
		Name: "Self-test of " + began.UTC().Format("2006-01-02T15:04:05.000Z"), FireMode: api.FireModeCOUNTINWINDOW, Severity: api.SeverityINFO,
		Filter:    api.Filter{Statuses: new([]api.FilterStatuses{api.FilterStatusesCOMPLETED, api.FilterStatusesFAILED})},
		Threshold: 1, WindowSeconds: window, IntervalSeconds: new(1), WebhookIds: []uuid.UUID{s.webhook},
		TitleTemplate: "Self-test of Tocsin", MessageTemplate: "An operator is testing whether alerts arrive. No action is required.",
	})
	if err := api.Check(rule, err); err != nil {
		return f, fmt.Errorf("create rule: %w", err)
	}
	id := rule.JSON201.ID
	defer func() {
		// Even after an interrupt, nothing of the test remains.
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		gone, deleteErr := s.api.DeleteRuleWithResponse(after, id)
		if deleteErr := api.Check(gone, deleteErr); deleteErr != nil {
			err = errors.Join(err, fmt.Errorf("the rule %s of the self-test remains: %w; delete it", rule.JSON201.Name, deleteErr))
		}
	}()
	alert, err := s.alerted(ctx, id)
	if err != nil || alert == nil {
		return clickhouse.Finding{
			Verdict: clickhouse.Broken, About: "self-test", Text: fmt.Sprintf("no alert within %s", s.within),
			Remedy: "check that exchanges ended during this time; the Rules and System pages show errors, and how far evaluation is behind",
		}, err
	}
	raised := time.Since(began)
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		resolved, resolveErr := s.api.ResolveAlertWithResponse(after, alert.ID)
		if resolveErr := api.Check(resolved, resolveErr); resolveErr != nil {
			err = errors.Join(err, fmt.Errorf("the alert of the self-test is open: %w; resolve it in the inbox", resolveErr))
		}
	}()
	return s.delivered(ctx, alert.ID, raised)
}

// alerted waits for the rule's alert; nil means that none came.
func (s *selfTest) alerted(ctx context.Context, rule uuid.UUID) (alert *api.Alert, err error) {
	err = s.poll(ctx, func() (bool, error) {
		page, err := s.api.ListAlertsWithResponse(ctx, &api.ListAlertsParams{RuleID: new([]uuid.UUID{rule})})
		if err := api.Check(page, err); err != nil {
			return false, fmt.Errorf("list alerts: %w", err)
		}
		if len(page.JSON200.Items) > 0 {
			alert = &page.JSON200.Items[0]
		}
		return alert != nil, nil
	})
	return alert, err
}

// delivered waits for the alert's message.
func (s *selfTest) delivered(ctx context.Context, alert uuid.UUID, raised time.Duration) (f clickhouse.Finding, err error) {
	began := time.Now()
	f = clickhouse.Finding{
		Verdict: clickhouse.Broken, About: "self-test", Text: fmt.Sprintf("alerted after %s, but the message did not arrive within %s", raised.Round(time.Millisecond), s.within),
		Remedy: "the Deliveries page shows its attempts",
	}
	err = s.poll(ctx, func() (bool, error) {
		list, err := s.api.ListAlertNotificationsWithResponse(ctx, alert)
		if err := api.Check(list, err); err != nil {
			return false, fmt.Errorf("list notifications: %w", err)
		}
		for _, n := range list.JSON200.Items {
			switch {
			case n.Status == api.NotificationStatusDELIVERED:
				f.Verdict, f.Remedy = clickhouse.OK, ""
				f.Text = fmt.Sprintf("alerted after %s, delivered %s later", raised.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
				return true, nil
			case n.Status == api.NotificationStatusSUPPRESSED:
				f.Text = fmt.Sprintf("alerted after %s, but a silence suppressed the message", raised.Round(time.Millisecond))
				if s := n.SuppressedBy; s != nil {
					f.Text = fmt.Sprintf("alerted after %s, but the silence %q, created by %s, suppressed the message", raised.Round(time.Millisecond), s.Name, s.CreatedBy)
				}
				f.Remedy = "test again when it is over, or end it (tocsin silence end, or the Silences page)"
				return true, nil
			case n.QuietUntil != nil:
				f.Text = fmt.Sprintf("alerted after %s, but the quiet hours of the webhook hold the message until %s", raised.Round(time.Millisecond), n.QuietUntil.Format(time.RFC3339))
				f.Remedy = "test again when they are over, or with another webhook"
				return true, nil
			case n.LastError != nil:
				f.Text = "alerted, but the receiver did not accept the message: " + *n.LastError
				return true, nil
			}
		}
		return false, nil
	})
	return f, err
}

// poll repeats a request until ask reports that it is done or the time is over.
func (s *selfTest) poll(ctx context.Context, ask func() (done bool, err error)) error {
	within, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-within.Done():
			return ctx.Err()
		}
	}
}

// explainRefusal adds what the caller can do.
func explainRefusal(err error) error {
	if refused, ok := errors.AsType[*api.Problem](err); ok && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden) {
		return fmt.Errorf("%d: the server refuses the token; give a valid one with the role editor in TOCSIN_TOKEN, --token or --token-file", refused.Status)
	}
	return err
}
