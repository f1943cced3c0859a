package api_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/teams"
	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator/reconcile"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/rules"
)

// instant is the time of the fakes' clock.
func instant() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC) }

// memory stores rows of one kind, each for a tenant, ordered by name.
type memory[T any] struct {
	mu   sync.Mutex
	rows []T
	// of returns the owner of a row, and the keys by which it is found and ordered.
	of func(*T) (tenant, name string, id uuid.UUID)
}

func (m *memory[T]) add(row T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = append(m.rows, row)
	slices.SortFunc(m.rows, func(a, b T) int {
		_, nameA, idA := m.of(&a)
		_, nameB, idB := m.of(&b)
		return strings.Compare(nameA+idA.String(), nameB+idB.String())
	})
}

func (m *memory[T]) list(tenant string, page api.NamePage) (found []T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range m.rows {
		owner, name, id := m.of(&row)
		if owner != tenant || len(found) == page.Limit {
			continue
		}
		if page.After == nil || name+id.String() > page.After.Name+page.After.ID.String() {
			found = append(found, row)
		}
	}
	return found
}

// change applies do to a row, and keeps the result if there was no error.
func (m *memory[T]) change(tenant string, id uuid.UUID, do func(*T) error) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.rows {
		if owner, _, known := m.of(&m.rows[i]); owner == tenant && known == id {
			row := m.rows[i]
			if err := do(&row); err != nil {
				return row, err
			}
			m.rows[i] = row
			return row, nil
		}
	}
	var none T
	return none, fault.New(fault.NotFound, "there is no such thing")
}

func (m *memory[T]) get(tenant string, id uuid.UUID) (T, error) {
	return m.change(tenant, id, func(*T) error { return nil })
}

func (m *memory[T]) remove(tenant string, id uuid.UUID) error {
	if _, err := m.get(tenant, id); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = slices.DeleteFunc(m.rows, func(row T) bool { _, _, known := m.of(&row); return known == id })
	return nil
}

type ruleMemory struct {
	memory[rules.Rule]

	replay api.Replay
}

func newRuleMemory() *ruleMemory {
	return &ruleMemory{memory: memory[rules.Rule]{of: func(r *rules.Rule) (string, string, uuid.UUID) { return r.TenantID, r.Name, r.ID }}}
}

func (m *ruleMemory) List(_ context.Context, tenant string, page api.NamePage) ([]rules.Rule, error) {
	return m.list(tenant, page), nil
}

func (m *ruleMemory) Names(_ context.Context, tenant string) ([]api.RuleName, error) {
	var names []api.RuleName
	for _, r := range m.list(tenant, api.NamePage{Limit: math.MaxInt}) {
		names = append(names, api.RuleName{ID: r.ID, Name: r.Name, Enabled: r.Enabled})
	}
	return names, nil
}

func (m *ruleMemory) Get(_ context.Context, tenant string, id uuid.UUID) (rules.Rule, error) {
	return m.get(tenant, id)
}

func (m *ruleMemory) Health(_ context.Context, _ string, ids []uuid.UUID) (map[uuid.UUID]api.EvaluationHealth, error) {
	lag, next := 1500*time.Millisecond, instant().Add(time.Second)
	health := map[uuid.UUID]api.EvaluationHealth{}
	for _, id := range ids {
		health[id] = api.EvaluationHealth{Cursor: &cursor.Position{StartTimeNS: instant().UnixNano(), ExecutionID: "e|1"}, Lag: &lag, NextRunAt: &next}
	}
	return health, nil
}

func (m *ruleMemory) Create(_ context.Context, tenant string, d rules.Definition) (rules.Rule, error) {
	r := rules.Rule{
		Definition: d, ID: uuid.New(), TenantID: tenant, Version: 1,
		ArmedSinceNS: instant().UnixNano(), CreatedAt: instant(), UpdatedAt: instant(),
	}
	m.add(r)
	return r, nil
}

func (m *ruleMemory) Update(_ context.Context, tenant string, edit api.RuleEdit) (rules.Rule, error) {
	return m.change(tenant, edit.ID, func(r *rules.Rule) error {
		if r.Version != edit.Version {
			return fault.New(fault.Stale, "the rule has been edited since")
		}
		r.Definition, r.Version = edit.Definition, r.Version+1
		return nil
	})
}

func (m *ruleMemory) SetEnabled(_ context.Context, tenant string, id uuid.UUID, enabled bool) (rules.Rule, error) {
	return m.change(tenant, id, func(r *rules.Rule) error {
		if r.Enabled != enabled {
			r.Enabled, r.Version = enabled, r.Version+1
		}
		return nil
	})
}

func (m *ruleMemory) Retry(_ context.Context, tenant string, id uuid.UUID) (rules.Rule, error) {
	return m.change(tenant, id, func(r *rules.Rule) error {
		if !r.Enabled {
			return fault.New(fault.Conflict, "the rule is disabled; enable it instead")
		}
		return nil
	})
}

func (m *ruleMemory) Delete(_ context.Context, tenant string, id uuid.UUID) error {
	return m.remove(tenant, id)
}

func (m *ruleMemory) StartReplay(ctx context.Context, tenant, actor string, r api.ReplayRequest) (api.Replay, error) {
	if _, err := m.Get(ctx, tenant, r.RuleID); err != nil {
		return api.Replay{}, err
	}
	m.replay = api.Replay{
		ID: uuid.New(), State: api.ReplayRunning, FromNS: r.FromNS, ToNS: r.ToNS, AtNS: r.FromNS, Messages: r.Messages, CreatedAt: instant(), CreatedBy: actor,
	}
	return m.replay, nil
}

func (m *ruleMemory) CancelReplay(_ context.Context, _, actor string, id uuid.UUID) (api.Replay, error) {
	if id != m.replay.ID {
		return api.Replay{}, fault.New(fault.NotFound, "no such replay")
	}
	m.replay.State, m.replay.EndedBy, m.replay.EndedAt = api.ReplayCancelled, actor, new(instant())
	return m.replay, nil
}

func (m *ruleMemory) Replays(ctx context.Context, tenant string, rule uuid.UUID, _ int) ([]api.Replay, error) {
	if _, err := m.Get(ctx, tenant, rule); err != nil {
		return nil, err
	}
	return []api.Replay{m.replay}, nil
}

func (m *ruleMemory) ReplayFloor(context.Context, string, uuid.UUID) (*time.Time, error) {
	return new(instant().AddDate(0, -2, 0)), nil
}

func (m *ruleMemory) Unalerted(_ context.Context, _ uuid.UUID, keys []string) ([]string, error) {
	return keys[1:], nil
}

func (m *ruleMemory) All(_ context.Context, tenant string) ([]rules.Rule, error) {
	return m.list(tenant, api.NamePage{Limit: len(m.rows)}), nil
}

// Apply creates what does not exist, and edits every rule that does; comparing is left to real
// stores.
func (m *ruleMemory) Apply(ctx context.Context, tenant string, set api.RuleSet) (done api.RulesDone, err error) {
	all, err := m.All(ctx, tenant)
	if err != nil {
		return done, err
	}
	for _, d := range set.Definitions {
		at := slices.IndexFunc(all, func(r rules.Rule) bool { return r.Name == d.Name })
		if at < 0 {
			done.Rules = append(done.Rules, api.RuleDone{Name: d.Name, Action: api.RuleAppliedActionCreated})
			if !set.DryRun {
				_, err = m.Create(ctx, tenant, d)
			}
			continue
		}
		was := all[at]
		done.Rules = append(done.Rules, api.RuleDone{ID: was.ID, Name: d.Name, Action: api.RuleAppliedActionUpdated, Before: &was.Definition})
		if !set.DryRun {
			_, err = m.Update(ctx, tenant, api.RuleEdit{ID: was.ID, Version: was.Version, Definition: d})
		}
	}
	return done, err
}

type webhookMemory struct{ memory[notify.Webhook] }

func newWebhookMemory() *webhookMemory {
	return &webhookMemory{memory[notify.Webhook]{of: func(w *notify.Webhook) (string, string, uuid.UUID) { return w.TenantID, w.Name, w.ID }}}
}

func (m *webhookMemory) List(_ context.Context, tenant string, page api.NamePage) ([]notify.Webhook, error) {
	return m.list(tenant, page), nil
}

func (m *webhookMemory) Get(_ context.Context, tenant string, id uuid.UUID) (notify.Webhook, error) {
	return m.get(tenant, id)
}

func (m *webhookMemory) Names(_ context.Context, tenant string) (found []api.WebhookName, err error) {
	for _, w := range m.list(tenant, api.NamePage{Limit: len(m.rows)}) {
		found = append(found, api.WebhookName{ID: w.ID, Name: w.Name, Enabled: w.Enabled, Preset: w.Preset, QuietHours: w.QuietHours})
	}
	return found, nil
}

func (m *webhookMemory) Create(_ context.Context, tenant string, w notify.Webhook) (notify.Webhook, error) {
	w.ID, w.TenantID, w.Version, w.CreatedAt, w.UpdatedAt = uuid.New(), tenant, 1, instant(), instant()
	m.add(w)
	return w, nil
}

func (m *webhookMemory) Delete(_ context.Context, tenant string, id uuid.UUID) error {
	if w, err := m.get(tenant, id); err == nil && w.Name == "bound" {
		return fault.New(fault.Conflict, "the webhook is used by the rules Failed orders and Failed invoices")
	}
	return m.remove(tenant, id)
}

type inboxMemory struct {
	memory[alerts.Instance]
	asked alerts.Query
	err   error
}

func newInboxMemory() *inboxMemory {
	return &inboxMemory{memory: memory[alerts.Instance]{of: func(a *alerts.Instance) (string, string, uuid.UUID) {
		return a.TenantID, a.FiredAt.Format("2006-01-02T15:04:05.000000000"), a.ID
	}}}
}

func (m *inboxMemory) List(_ context.Context, tenant string, q alerts.Query) (alerts.Page, error) {
	m.asked = q
	found := m.list(tenant, api.NamePage{Limit: 1000})
	slices.Reverse(found)
	if q.Before != nil {
		found = slices.DeleteFunc(found, func(a alerts.Instance) bool { return !a.FiredAt.Before(q.Before.FiredAt) })
	}
	page := alerts.Page{Alerts: found[:min(len(found), q.Limit)]}
	if len(page.Alerts) == q.Limit {
		page.Next = &alerts.Mark{FiredAt: found[q.Limit-1].FiredAt, ID: found[q.Limit-1].ID}
	}
	return page, m.err
}

func (m *inboxMemory) Counts(context.Context, string) (alerts.Counts, error) {
	return alerts.Counts{Firing: 3, Acknowledged: 2, Resolved: 1}, m.err
}

// Raised has two rules, one of which raised something in two minutes.
func (m *inboxMemory) RaisedBy(context.Context, string, uuid.UUID) (api.RaisedDay, error) {
	day := api.RaisedDay{From: instant(), Complete: true}
	day.Steps[0], day.Steps[api.DaySteps-1] = 3, 1
	return day, m.err
}

func (m *inboxMemory) Raised(context.Context, string) (api.Raised, error) {
	quick, slow := new([api.RaisedMinutes]int64), new([api.RaisedMinutes]int64)
	quick[0], quick[59], slow[59] = 1, 2, 40
	return api.Raised{
		From: instant(), Complete: true,
		Rules: map[uuid.UUID]*[api.RaisedMinutes]int64{{1}: quick, {2}: slow},
	}, m.err
}

func (m *inboxMemory) Get(_ context.Context, tenant string, id uuid.UUID) (alerts.Instance, error) {
	return m.get(tenant, id)
}

func (m *inboxMemory) Act(_ context.Context, tenant string, act api.AlertAction) (alerts.Instance, error) {
	return m.change(tenant, act.AlertID, func(a *alerts.Instance) error {
		state, err := a.State.After(act.Action)
		if err != nil {
			return err
		}
		now := instant()
		a.State = state
		if state == alerts.Acknowledged {
			a.AcknowledgedAt, a.AcknowledgedBy = &now, act.Actor
		} else {
			a.ResolvedAt, a.ResolvedBy = &now, act.Actor
		}
		return nil
	})
}

func (m *inboxMemory) Assign(_ context.Context, tenant string, of api.Assignment) (alerts.Instance, error) {
	return m.change(tenant, of.AlertID, func(a *alerts.Instance) error {
		passes, err := a.State.Reassign(a.Assignee, of.Was, of.Assignee)
		if passes {
			now := instant()
			a.Assignee, a.AssignedBy, a.AssignedAt = of.Assignee, of.Actor, &now
		}
		return err
	})
}

func (m *inboxMemory) Snooze(_ context.Context, tenant string, z api.Snooze) (alerts.Instance, error) {
	return m.change(tenant, z.AlertID, func(a *alerts.Instance) error {
		a.SnoozedUntil, a.SnoozedBy = z.Until, z.Actor
		return a.State.Snoozable()
	})
}

func (*inboxMemory) Assignees(_ context.Context, tenant string, most int) ([]string, error) {
	return []string{"ada@" + tenant, "bo@" + tenant}[:min(2, most)], nil
}

// anAlert returns an alert with every field set.
func anAlert(firedAt time.Time) alerts.Instance {
	end := instant().UnixNano() + 7
	return alerts.Instance{
		ID: uuid.New(), TenantID: "acme", RuleID: uuid.New(), RuleVersion: 2, RuleName: "Failed orders", Severity: rules.Critical,
		State: alerts.Firing, Title: "orders · order-to-erp: FAILED", Message: "ConnectException: ERP refused",
		Exchange: rules.Exchange{
			TenantID: "acme", StartTimeNS: instant().UnixNano(), ExecutionID: "exec-1", Environment: "production", Application: "orders",
			Route: "order-to-erp", Status: rules.Failed, EndTimeNS: &end, DurationNS: 9_007_199_254_740_993, ErrorType: "ConnectException",
			ErrorMessage: "ERP refused", ErrorStack: "at Erp.connect", CorrelationID: "c-1", Attributes: map[string]string{"order": "4711"},
		},
		FiredAt: firedAt,
	}
}

type recordMemory struct {
	records []api.NotificationRecord
	orders  []api.RetryOrder
	// counted are the requested counts, searched the limit of a search.
	counted  api.NotificationFilter
	searched *api.NotificationMark
}

func newRecordMemory() *recordMemory {
	next, done := instant().Add(time.Minute), instant().Add(time.Second)
	retrying := api.NotificationRecord{
		Notification: notify.Notification{
			ID: uuid.New(), TenantID: "acme", AlertID: uuid.New(), RuleID: uuid.New(), WebhookID: uuid.New(), Reason: notify.ReasonFired,
			Status: notify.Retrying, Attempts: 2, CreatedAt: instant(), NextAttemptAt: &next, LastError: "503 Service Unavailable",
		},
		WebhookName: "#ops", AlertTitle: "orders failed",
		History: []api.AttemptRecord{
			{Number: 1, StartedAt: instant(), FinishedAt: &done, Outcome: notify.Outcome{
				Verdict: notify.VerdictRetry, StatusCode: 503, Response: "busy", Error: "503 Service Unavailable", Duration: 12 * time.Millisecond,
			}},
			{Number: 2, StartedAt: done},
		},
	}
	return &recordMemory{records: []api.NotificationRecord{retrying}}
}

func (m *recordMemory) Counts(_ context.Context, _ string, f api.NotificationFilter) (map[notify.Status]int64, bool, error) {
	m.counted = f
	return map[notify.Status]int64{notify.Retrying: 1, notify.Delivered: 10_000}, len(f.Webhooks) == 0, nil
}

func (m *recordMemory) Flow(context.Context, string, uuid.UUID) (api.WebhookFlow, error) {
	median, p95 := 12*time.Millisecond, 250*time.Millisecond
	flow := api.WebhookFlow{From: instant(), Complete: true, LastSuccessAt: new(instant())}
	flow.Hours[0] = api.FlowHour{Delivered: 7, Failed: 1, Median: &median, P95: &p95}
	return flow, nil
}

func (m *recordMemory) List(_ context.Context, _ string, q api.NotificationQuery) ([]api.NotificationRecord, *api.NotificationMark, error) {
	if q.Text != "" {
		return nil, m.searched, nil
	}
	return slices.DeleteFunc(slices.Clone(m.records), func(r api.NotificationRecord) bool {
		return q.Before != nil && !r.CreatedAt.Before(q.Before.CreatedAt) ||
			len(q.Rules) > 0 && !slices.Contains(q.Rules, r.RuleID) || len(q.Reasons) > 0 && !slices.Contains(q.Reasons, r.Reason) ||
			q.From != nil && r.CreatedAt.Before(*q.From) || q.To != nil && !r.CreatedAt.Before(*q.To)
	}), nil, nil
}

func (m *recordMemory) Get(_ context.Context, tenant string, id uuid.UUID) (api.NotificationRecord, error) {
	for _, r := range m.records {
		if r.ID == id && r.TenantID == tenant {
			return r, nil
		}
	}
	return api.NotificationRecord{}, fault.New(fault.NotFound, "there is no such notification")
}

func (m *recordMemory) Retry(_ context.Context, tenant string, id uuid.UUID, actor string) error {
	for i := range m.records {
		if r := &m.records[i]; r.ID == id && r.TenantID == tenant {
			if r.Status == notify.Delivered {
				return fault.New(fault.Conflict, "the webhook #ops is disabled; enable it, then send the message again")
			}
			r.Retries = append(r.Retries, api.RetryRecord{At: instant(), By: actor})
			return nil
		}
	}
	return fault.New(fault.NotFound, "there is no such notification")
}

func (m *recordMemory) RetryAll(_ context.Context, _ string, order api.RetryOrder) (api.Retried, error) {
	m.orders = append(m.orders, order)
	return api.Retried{Retried: 3, Skipped: 1}, nil
}

func (m *recordMemory) Discard(_ context.Context, tenant string, id uuid.UUID, _ string) error {
	for i := range m.records {
		if r := &m.records[i]; r.ID == id && r.TenantID == tenant {
			if r.Status == notify.Delivered {
				return fault.New(fault.Conflict, "the message was delivered; there is nothing to discard")
			}
			r.Status = notify.Discarded
			return nil
		}
	}
	return fault.New(fault.NotFound, "there is no such notification")
}

func (m *recordMemory) DiscardAll(_ context.Context, _ string, order api.RetryOrder) (api.Discarded, error) {
	m.orders = append(m.orders, order)
	return api.Discarded{Discarded: 2, Skipped: 1}, nil
}

func (m *recordMemory) OfAlert(context.Context, string, uuid.UUID) ([]api.NotificationRecord, error) {
	return m.records, nil
}

type statusFunc func() (api.SystemStatus, error)

func (f statusFunc) Status(context.Context, string) (api.SystemStatus, error) { return f() }

type replicasFunc func() ([]api.ReplicaRecord, error)

func (f replicasFunc) List(context.Context) ([]api.ReplicaRecord, error) { return f() }

type keysFunc func() ([]api.KeyUse, error)

func (f keysFunc) Keys(context.Context) ([]api.KeyUse, error) { return f() }

type reconcilerFunc func(last time.Duration) (reconcile.Reconciliation, error)

func (f reconcilerFunc) Rule(_ context.Context, _ string, id uuid.UUID, last time.Duration) (reconcile.Reconciliation, error) {
	r, err := f(last)
	r.RuleID = id
	return r, err
}

// beat is an inbox whose fingerprint is set by the test.
type beat struct {
	mu          sync.Mutex
	fingerprint string
	changed     []uuid.UUID
}

func (b *beat) set(fingerprint string, changed ...uuid.UUID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fingerprint, b.changed = fingerprint, changed
}

func (b *beat) InboxState(context.Context, string) (api.InboxState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return api.InboxState{Fingerprint: b.fingerprint, Counts: alerts.Counts{Firing: 1}, Changed: b.changed}, nil
}

// teamMemory stores the teams of one tenant.
type teamMemory struct{ record api.TeamRecord }

func (m *teamMemory) Get(context.Context, string) (api.TeamRecord, error) { return m.record, nil }

func (m *teamMemory) Replace(_ context.Context, _, actor string, version int64, list teams.List) (api.TeamRecord, error) {
	if version != m.record.Version {
		return m.record, fault.New(fault.Stale, "the teams were changed")
	}
	m.record = api.TeamRecord{List: list, Version: version + 1, UpdatedAt: instant(), UpdatedBy: actor}
	return m.record, nil
}

func (m *teamMemory) Of(_ context.Context, _, email string) ([]string, error) {
	return m.record.List.Of(email, []string{"sre"}), nil
}
