package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts/silences"
	"tocsin/api"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// Record is the API's view of waiting messages and past attempts.
type Record struct {
	db   *DB
	head func(d *notify.Delivery) notify.RequestHead
}

// Record returns the API's view of notifications. Head derives the request that an attempt sent.
func (db *DB) Record(head func(d *notify.Delivery) notify.RequestHead) *Record {
	return &Record{db, head}
}

// listNotifications has a placeholder for the conditions of a query.
const listNotifications = `
select s.notification_id, s.tenant_id, s.alert_id, s.rule_id, s.webhook_id, s.reason, s.created_at, s.status,
       s.next_attempt_at, s.settled_at, s.digest_id, s.digest_size, s.silence_id, s.quiet_until, w.name,
       coalesce((select a.title from alert a where a.alert_id = s.alert_id), '')
from notification_status s join webhook w using (webhook_id)
where %s
order by s.created_at desc, s.notification_id desc
limit @limit`

// List returns notifications, newest first. Of their attempts it returns only the results.
func (s *Record) List(ctx context.Context, tenant string, q api.NotificationQuery) ([]api.NotificationRecord, *api.NotificationMark, error) {
	where, args := notificationConditions(tenant, &q.NotificationFilter)
	args["limit"] = q.Limit
	if q.Before != nil {
		where = append(where, "(s.created_at, s.notification_id) < (@before_at, @before_id)")
		args["before_at"], args["before_id"] = q.Before.CreatedAt, q.Before.ID
	}
	end, err := s.searchTo(ctx, tenant, q)
	if err != nil {
		return nil, nil, fmt.Errorf("list notifications: %w", err)
	}
	if end != nil {
		where = append(where, "(s.created_at, s.notification_id) >= (@end_at, @end_id)")
		args["end_at"], args["end_id"] = end.CreatedAt, end.ID
	}
	rows, err := s.db.pool.Query(ctx, fmt.Sprintf(listNotifications, strings.Join(where, " and ")), args)
	if err != nil {
		return nil, nil, fmt.Errorf("list notifications: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (api.NotificationRecord, error) {
		var n pgq.NotificationStatus
		var webhook, title string
		err := row.Scan(&n.NotificationID, &n.TenantID, &n.AlertID, &n.RuleID, &n.WebhookID, &n.Reason, &n.CreatedAt,
			&n.Status, &n.NextAttemptAt, &n.SettledAt, &n.DigestID, &n.DigestSize, &n.SilenceID, &n.QuietUntil, &webhook, &title)
		return recordOf(n, webhook, title), err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list notifications: %w", err)
	}
	if err := s.addSilences(ctx, list); err != nil {
		return nil, nil, err
	}
	return list, end, s.addVerdicts(ctx, list)
}

// mostSearched is how many notifications a page reads to find a text, for which there is no index.
const mostSearched = 20_000

// searchTo returns the last notification that a search for a text reads. It is nil if the search
// reads all remaining ones, or if there is no text to search for.
func (s *Record) searchTo(ctx context.Context, tenant string, q api.NotificationQuery) (*api.NotificationMark, error) {
	if q.Text == "" {
		return nil, nil //nolint:nilnil // there is no end
	}
	p := pgq.NotificationNthParams{TenantID: tenant, Most: mostSearched - 1}
	if q.Before != nil {
		p.BeforeAt, p.BeforeID = &q.Before.CreatedAt, &q.Before.ID
	}
	row, err := s.db.queries.NotificationNth(ctx, p)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there are not so many
	}
	if err != nil {
		return nil, fmt.Errorf("limit search: %w", err)
	}
	return &api.NotificationMark{CreatedAt: row.CreatedAt, ID: row.NotificationID}, nil
}

// notificationConditions returns the conditions of a filter over notification_status s, with their
// arguments.
func notificationConditions(tenant string, f *api.NotificationFilter) ([]string, pgx.NamedArgs) {
	where := []string{"s.tenant_id = @tenant"}
	args := pgx.NamedArgs{"tenant": tenant}
	also := func(given bool, condition, name string, value any) {
		if given {
			where = append(where, condition)
			args[name] = value
		}
	}
	also(len(f.Statuses) > 0, "s.status = any(@statuses)", "statuses", f.Statuses)
	also(len(f.Reasons) > 0, "s.reason = any(@reasons)", "reasons", f.Reasons)
	also(len(f.Webhooks) > 0, "s.webhook_id = any(@webhooks)", "webhooks", f.Webhooks)
	also(len(f.Rules) > 0, "s.rule_id = any(@rules)", "rules", f.Rules)
	also(len(f.Alerts) > 0, "s.alert_id = any(@alerts)", "alerts", f.Alerts)
	also(len(f.Digests) > 0, "s.notification_id in (select c.notification_id from digest_content c where c.digest_id = any(@digests))", "digests", f.Digests)
	also(len(f.Silences) > 0, "s.notification_id in (select t.notification_id from settlement t where t.silence_id = any(@silences))", "silences", f.Silences)
	also(len(f.DigestsOf) > 0, "s.notification_id in (select d.notification_id from digest d where d.silence_id = any(@digests_of))", "digests_of", f.DigestsOf)
	also(f.From != nil, "s.created_at >= @from", "from", f.From)
	also(f.To != nil, "s.created_at < @to", "to", f.To)
	also(f.Text != "", `(s.notification_id::text = @text or exists (
        select from alert a where a.alert_id = s.alert_id and (strpos(lower(a.title), lower(@text)) > 0 or a.execution_id = @text)))`, "text", f.Text)
	if f.OnlyMessages {
		where = append(where, "s.digest_id is null")
	}
	return where, args
}

// Get returns one notification with its history.
func (s *Record) Get(ctx context.Context, tenant string, id uuid.UUID) (api.NotificationRecord, error) {
	row, err := s.db.queries.NotificationGet(ctx, pgq.NotificationGetParams{TenantID: tenant, NotificationID: id})
	if err != nil {
		return api.NotificationRecord{}, notFound(err, "notification")
	}
	list := []api.NotificationRecord{recordOf(row.NotificationStatus, row.WebhookName, row.AlertTitle)}
	if err := s.addHistory(ctx, list); err != nil {
		return api.NotificationRecord{}, err
	}
	if err := s.addSilences(ctx, list); err != nil {
		return api.NotificationRecord{}, err
	}
	retries, err := s.db.queries.RetriesOf(ctx, id)
	if err != nil {
		return api.NotificationRecord{}, fmt.Errorf("read retries: %w", err)
	}
	for _, row := range retries {
		list[0].Retries = append(list[0].Retries, api.RetryRecord{At: row.RetriedAt, By: row.RetriedBy})
	}
	return list[0], nil
}

// OfAlert returns the notifications of an alert with their history.
func (s *Record) OfAlert(ctx context.Context, tenant string, alertID uuid.UUID) ([]api.NotificationRecord, error) {
	exists, err := s.db.queries.AlertExists(ctx, pgq.AlertExistsParams{TenantID: tenant, AlertID: alertID})
	if err != nil {
		return nil, fmt.Errorf("look up alert: %w", err)
	}
	if !exists {
		return nil, noSuch("alert")
	}
	rows, err := s.db.queries.NotificationsOfAlert(ctx, pgq.NotificationsOfAlertParams{TenantID: tenant, AlertID: alertID})
	if err != nil {
		return nil, fmt.Errorf("list notifications of alert: %w", err)
	}
	list := make([]api.NotificationRecord, len(rows))
	for i, row := range rows {
		list[i] = recordOf(row.NotificationStatus, row.WebhookName, row.AlertTitle)
	}
	if err := s.addSilences(ctx, list); err != nil {
		return nil, err
	}
	return list, s.addHistory(ctx, list)
}

// addSilences fills in what suppressed notifications.
func (s *Record) addSilences(ctx context.Context, list []api.NotificationRecord) error {
	var ids []uuid.UUID
	for i := range list {
		if by := list[i].Silence; by != nil && !slices.Contains(ids, by.ID) {
			ids = append(ids, by.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := s.db.queries.SilencesByID(ctx, ids)
	if err != nil {
		return fmt.Errorf("read silences: %w", err)
	}
	known := make(map[uuid.UUID]*silences.Silence, len(rows))
	for i := range rows {
		by := silenceOf(&rows[i])
		known[by.ID] = &by
	}
	for i := range list {
		if by := list[i].Silence; by != nil && known[by.ID] != nil {
			list[i].Silence = known[by.ID]
		}
	}
	return nil
}

// histories maps a message to the notifications whose attempts are its attempts. A notification in
// a digest has its own attempts and those of the digest.
type histories map[uuid.UUID][]*api.NotificationRecord

func historiesOf(list []api.NotificationRecord) (byMessage histories, ids []uuid.UUID) {
	byMessage = make(histories, len(list))
	add := func(id uuid.UUID, n *api.NotificationRecord) {
		if byMessage[id] == nil {
			ids = append(ids, id)
		}
		byMessage[id] = append(byMessage[id], n)
	}
	for i := range list {
		list[i].History = []api.AttemptRecord{}
		add(list[i].ID, &list[i])
		if list[i].DigestID != nil {
			add(*list[i].DigestID, &list[i])
		}
	}
	return byMessage, ids
}

// add appends an attempt at a message to the histories of its notifications.
func (h histories) add(message uuid.UUID, attempt api.AttemptRecord) { //nolint:gocritic // copied into each history anyway
	for _, n := range h[message] {
		n.History = append(n.History, attempt)
		n.Attempts = len(n.History)
		n.LastError = attempt.Outcome.Error
	}
}

// addVerdicts fills in only how each attempt ended.
func (s *Record) addVerdicts(ctx context.Context, list []api.NotificationRecord) error {
	byMessage, ids := historiesOf(list)
	attempts, err := s.db.queries.AttemptVerdicts(ctx, ids)
	if err != nil {
		return fmt.Errorf("read verdicts: %w", err)
	}
	for _, row := range attempts {
		attempt := api.AttemptRecord{Number: int(row.Attempt), UnderWay: row.FinishedAt == nil && row.Claimed}
		attempt.FinishedAt, attempt.Outcome.Error = row.FinishedAt, row.Error
		if row.StatusCode != nil {
			attempt.Outcome.StatusCode = int(*row.StatusCode)
		}
		if row.DurationUs != nil {
			attempt.Outcome.Duration = time.Duration(*row.DurationUs) * time.Microsecond
		}
		if row.Verdict != nil {
			attempt.Outcome.Verdict = notify.ParseVerdict(*row.Verdict)
		}
		byMessage.add(row.NotificationID, attempt)
	}
	return nil
}

// addHistory fills in the attempts of each notification.
func (s *Record) addHistory(ctx context.Context, list []api.NotificationRecord) error {
	byMessage, ids := historiesOf(list)
	attempts, err := s.db.queries.AttemptsOf(ctx, ids)
	if err != nil {
		return fmt.Errorf("read attempts: %w", err)
	}
	requests, err := s.requestsOf(ctx, ids)
	if err != nil {
		return err
	}
	for i := range list {
		message := list[i].ID
		if list[i].DigestID != nil {
			message = *list[i].DigestID
		}
		if m := requests.messages[message]; m != nil {
			list[i].Body = &m.body
		}
	}
	for _, row := range attempts {
		attempt, err := attemptOf(row.AttemptHistory)
		if err != nil {
			return fmt.Errorf("read attempts: %w", err)
		}
		attempt.UnderWay = row.AttemptHistory.FinishedAt == nil && row.Claimed
		attempt.Request = requests.of(row.AttemptHistory)
		byMessage.add(row.AttemptHistory.NotificationID, attempt)
	}
	return nil
}

func recordOf(row pgq.NotificationStatus, webhookName, alertTitle string) api.NotificationRecord {
	n := api.NotificationRecord{
		Notification: notify.Notification{
			ID: row.NotificationID, TenantID: row.TenantID, WebhookID: row.WebhookID, DigestID: row.DigestID,
			Reason: notify.Reason(row.Reason), Status: notify.Status(row.Status), CreatedAt: row.CreatedAt,
			SettledAt: row.SettledAt, NextAttemptAt: row.NextAttemptAt, QuietUntil: row.QuietUntil,
		},
		WebhookName: webhookName, AlertTitle: alertTitle,
	}
	if row.AlertID != nil && row.RuleID != nil {
		n.AlertID, n.RuleID = *row.AlertID, *row.RuleID
	}
	if row.SilenceID != nil {
		n.Silence = &silences.Silence{ID: *row.SilenceID}
	}
	if row.DigestSize != nil {
		n.DigestSize = int(*row.DigestSize)
	}
	return n
}

func attemptOf(row pgq.AttemptHistory) (api.AttemptRecord, error) {
	a := api.AttemptRecord{Number: int(row.Attempt), StartedAt: row.StartedAt, FinishedAt: row.FinishedAt, Replica: row.Replica}
	a.Outcome.Error, a.Outcome.Response = row.Error, row.Response
	if row.Verdict != nil {
		a.Outcome.Verdict = notify.ParseVerdict(*row.Verdict)
	}
	if row.StatusCode != nil {
		a.Outcome.StatusCode = int(*row.StatusCode)
	}
	if row.DurationUs != nil {
		a.Outcome.Duration = time.Duration(*row.DurationUs) * time.Microsecond
	}
	if row.ResponseHead != nil {
		a.Outcome.Head = new(notify.ResponseHead)
		if err := json.Unmarshal(row.ResponseHead, a.Outcome.Head); err != nil {
			return a, fmt.Errorf("notification %s: the stored head of a response cannot be read: %w", row.NotificationID, err)
		}
	}
	return a, nil
}

// Status returns the state of a tenant's rules and of the outbox.
func (s *Record) Status(ctx context.Context, tenant string) (api.SystemStatus, error) {
	counts, err := s.db.queries.StatusRules(ctx, tenant)
	if err != nil {
		return api.SystemStatus{}, fmt.Errorf("count rules: %w", err)
	}
	status := api.SystemStatus{Rules: counts.Rules, EnabledRules: counts.Enabled, FailingRules: counts.Failing, Now: counts.Now}
	if err := s.addProgress(ctx, tenant, &status); err != nil {
		return api.SystemStatus{}, err
	}
	waiting, err := s.db.waitingFor(ctx, tenant)
	if err != nil {
		return api.SystemStatus{}, err
	}
	status.OutboxDepth, status.OutboxEstimated, status.OldestAge = waiting.depth, waiting.estimated, waiting.oldest
	compared, err := s.db.queries.ReconciliationRead(ctx)
	if err != nil {
		return api.SystemStatus{}, fmt.Errorf("read completeness: %w", err)
	}
	for _, row := range compared {
		status.Completeness = &api.Completeness{Rules: row.Rules, Missing: row.Missing, ComparedAt: row.At, WholeSince: row.WholeSince}
	}
	return status, nil
}
