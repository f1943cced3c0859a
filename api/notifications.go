package api

import (
	"context"
	"fmt"
	"time"

	"tocsin/notify"
)

// mostVerdicts is how many a list tells of one notification.
const mostVerdicts = 20

// ListNotifications answers GET /notifications.
func (s *server) ListNotifications(ctx context.Context, req ListNotificationsRequestObject) (ListNotificationsResponseObject, error) {
	q, err := notificationQuery(req.Params)
	if err != nil {
		return nil, err
	}
	found, err := s.Notifications.List(ctx, tenantOf(ctx), q)
	if err != nil {
		return nil, fmt.Errorf("list notifications: %w", err)
	}
	answer := ListNotifications200JSONResponse{Items: make([]Notification, len(found))}
	for i := range found {
		answer.Items[i] = notificationAnswer(&found[i], false)
	}
	answer.NextCursor, err = nextCursor(len(found), q.Limit, func() mark {
		last := &found[len(found)-1]
		return mark{List: listNotifications, At: last.CreatedAt.UTC(), ID: last.ID}
	})
	return answer, err
}

func notificationQuery(p ListNotificationsParams) (q NotificationQuery, err error) {
	if q.Limit, err = limitOf(p.Limit); err != nil {
		return q, err
	}
	m, err := decodeMark(listNotifications, p.Cursor)
	if err != nil {
		return q, err
	}
	if m != nil {
		q.Before = &NotificationMark{CreatedAt: m.At, ID: m.ID}
	}
	q.NotificationFilter = NotificationFilter{
		Webhooks: deref(p.WebhookID), Rules: deref(p.RuleID), Alerts: deref(p.AlertID), Digests: deref(p.DigestID),
		From: p.From, To: p.To, OnlyMessages: deref(p.OnlyMessages),
	}
	if q.Reasons, err = reasons("reason", p.Reason); err != nil {
		return q, err
	}
	q.Statuses, err = oneOf("status", p.Status, notify.Pending, notify.Retrying, notify.Delivered, notify.Failed, notify.Exhausted, notify.Discarded)
	return q, err
}

func reasons(parameter string, given *[]notify.Reason) ([]notify.Reason, error) {
	return oneOf(parameter, given, notify.ReasonFired, notify.ReasonReminder, notify.ReasonResolved,
		notify.ReasonRuleFailing, notify.ReasonRuleRecovered, notify.ReasonSourceFailing, notify.ReasonSourceRecovered,
		notify.ReasonWebhookOff, notify.ReasonWebhookFailing, notify.ReasonUndelivered, notify.ReasonDigest)
}

// GetNotification answers GET /notifications/{id}.
func (s *server) GetNotification(ctx context.Context, req GetNotificationRequestObject) (GetNotificationResponseObject, error) {
	n, err := s.Notifications.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("get notification: %w", err)
	}
	return GetNotification200JSONResponse(notificationAnswer(&n, true)), nil
}

func notificationAnswer(n *NotificationRecord, withHistory bool) Notification {
	answer := Notification{
		ID:            n.ID,
		AlertID:       optional(n.AlertID),
		AlertTitle:    optional(n.AlertTitle),
		RuleID:        optional(n.RuleID),
		WebhookID:     n.WebhookID,
		WebhookName:   n.WebhookName,
		Reason:        n.Reason,
		Status:        n.Status,
		AttemptCount:  n.Attempts,
		CreatedAt:     n.CreatedAt.UTC(),
		NextAttemptAt: utc(n.NextAttemptAt),
		SettledAt:     utc(n.SettledAt),
		LastError:     optional(n.LastError),
		DigestID:      n.DigestID,
		DigestSize:    optional(n.DigestSize),
	}
	if withHistory {
		history := make([]Attempt, len(n.History))
		for i := range n.History {
			history[i] = attemptAnswer(&n.History[i])
		}
		answer.Attempts = &history
	} else {
		latest := n.History[max(0, len(n.History)-mostVerdicts):]
		answer.Verdicts = make([]AttemptVerdict, len(latest))
		for i := range latest {
			answer.Verdicts[i] = verdictAnswer(&latest[i])
		}
	}
	for _, retry := range n.Retries {
		answer.Retries = append(answer.Retries, NotificationRetry{At: retry.At.UTC(), By: retry.By})
	}
	return answer
}

func attemptAnswer(a *AttemptRecord) Attempt {
	answer := Attempt{
		Number:     a.Number,
		StartedAt:  a.StartedAt.UTC(),
		FinishedAt: utc(a.FinishedAt),
		Verdict:    verdictAnswer(a),
		StatusCode: optional(a.Outcome.StatusCode),
		Error:      optional(a.Outcome.Error),
		Response:   optional(a.Outcome.Response),
		Replica:    optional(a.Replica),
		Request:    requestAnswer(a.Request),
	}
	if head := a.Outcome.Head; head != nil {
		answer.ResponseHead = &ResponseHead{StatusLine: head.StatusLine, Headers: headersAnswer(head.Headers), Truncated: optional(head.Truncated)}
	}
	if a.FinishedAt != nil {
		ms := float64(a.Outcome.Duration) / float64(time.Millisecond)
		answer.DurationMs = &ms
	}
	return answer
}

func verdictAnswer(a *AttemptRecord) AttemptVerdict {
	if a.UnderWay {
		return AttemptVerdictUNDERWAY
	}
	return AttemptVerdict(a.Outcome.Verdict.String())
}

func requestAnswer(head *notify.RequestHead) *RequestHead {
	if head == nil {
		return nil
	}
	return &RequestHead{
		Method: head.Method, Host: head.Host, Headers: headersAnswer(head.Headers), BodySha256: head.BodySHA256, BodyBytes: head.BodyBytes,
	}
}

func headersAnswer(fields []notify.HeaderField) []HeaderField {
	answer := make([]HeaderField, len(fields))
	for i, f := range fields {
		answer[i] = HeaderField{Name: f.Name, Value: optional(f.Value), Masked: optional(f.Masked)}
	}
	return answer
}
