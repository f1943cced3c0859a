package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/silences"
	"tocsin/notify"
)

// Notifications is the record of messages.
type Notifications interface {
	NotificationReader
	Retrier
	Discarder
}

// NotificationReader reads the record of messages.
type NotificationReader interface {
	// List returns notifications by (creation, id), newest first. Their history is limited to
	// numbers and verdicts, errors, and whether an attempt is under way. A search for a text looks
	// at a bounded number of notifications. The returned mark says where to continue; it is nil at
	// the end.
	List(ctx context.Context, tenant string, q NotificationQuery) ([]NotificationRecord, *NotificationMark, error)
	// Counts counts messages by status. It uses only the statuses, the webhook and the creation of
	// the filter. complete is false if those that were delivered, discarded or suppressed were counted
	// among the newest messages only.
	Counts(ctx context.Context, tenant string, f NotificationFilter) (counts map[notify.Status]int64, complete bool, err error)
	// Flow reports how the attempts of the last 24 hours at a webhook went.
	Flow(ctx context.Context, tenant string, webhook uuid.UUID) (WebhookFlow, error)
	// Get returns one notification with its history.
	Get(ctx context.Context, tenant string, id uuid.UUID) (NotificationRecord, error)
	// OfAlert returns every notification of an alert with its history, oldest
	// first. An unknown alert is a fault of kind NotFound.
	OfAlert(ctx context.Context, tenant string, alertID uuid.UUID) ([]NotificationRecord, error)
}

// NotificationQuery selects a page of the record.
type NotificationQuery struct {
	NotificationFilter

	// Before continues a listing after its last notification; nil starts a listing.
	Before *NotificationMark
	// Limit is the number of notifications to return, 1 to 200.
	Limit int
}

// NotificationFilter selects notifications. Each list restricts them; an empty list means no
// restriction.
type NotificationFilter struct {
	Statuses []notify.Status
	Reasons  []notify.Reason
	Webhooks []uuid.UUID
	Rules    []uuid.UUID
	Alerts   []uuid.UUID
	// Digests selects the notifications in these digests.
	Digests []uuid.UUID
	// Silences selects the notifications that these silences suppressed.
	Silences []uuid.UUID
	// DigestsOf selects the digests that list what these silences suppressed.
	DigestsOf []uuid.UUID
	// From and To bound the creation, From inclusive, To exclusive; nil means no bound.
	From, To *time.Time
	// OnlyMessages leaves out notifications that are in a digest.
	OnlyMessages bool
	// Text is searched for in the titles of alerts, ignoring case, or is the id of an execution or
	// notification.
	Text string
}

// FlowHours is how many hours a [WebhookFlow] covers.
const FlowHours = 24

// WebhookFlow is how the attempts at a webhook went, by hour, oldest first. The last hour is under
// way.
type WebhookFlow struct {
	From time.Time
	// Complete is false if there are too many messages to read all of them.
	Complete      bool
	Hours         [FlowHours]FlowHour
	LastSuccessAt *time.Time
}

// FlowHour is how the attempts of an hour went. Durations are those of accepted attempts; nil if
// there are none.
type FlowHour struct {
	Delivered, Failed int64
	Median, P95       *time.Duration
}

// NotificationMark is the place of a notification in the record's order.
type NotificationMark struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

// NotificationRecord is a notification as people see it.
type NotificationRecord struct {
	notify.Notification

	// WebhookName is the webhook's present name; empty if it is deleted.
	WebhookName string
	// AlertTitle is the title of the alert; empty for a digest.
	AlertTitle string
	// Silence is the silence that suppressed the notification; nil if none did.
	Silence *silences.Silence
	// History contains the attempts, oldest first, including those of the digest that contains the
	// notification.
	History []AttemptRecord
	// Retries are the retries by people, oldest first. It is set only if a single notification is
	// read.
	Retries []RetryRecord
	// Body is the body of the last attempt, or of the next one. It is nil in lists, before the
	// first attempt, and if retention has deleted it.
	Body *notify.Body
}

// AttemptRecord is one HTTP request, as the record shows it.
type AttemptRecord struct {
	Number    int
	StartedAt time.Time
	// FinishedAt is nil while the attempt is under way, and if its process died; then the verdict
	// of the outcome is unknown.
	FinishedAt *time.Time
	// UnderWay is true if there is no outcome and the claim of the attempt is still valid.
	UnderWay bool
	// Replica is the process that made the attempt.
	Replica string
	// Request is nil if retention has deleted it; the head of the outcome is then deleted, too.
	Request *notify.RequestHead
	Outcome notify.Outcome
}

// mostVerdicts is how many verdicts of one notification a list shows.
const mostVerdicts = 20

// ListNotifications answers GET /notifications.
func (s *server) ListNotifications(ctx context.Context, req ListNotificationsRequestObject) (ListNotificationsResponseObject, error) {
	q, err := notificationQuery(req.Params)
	if err != nil {
		return nil, err
	}
	found, next, err := s.Notifications.List(ctx, tenantOf(ctx), q)
	if err != nil {
		return nil, fmt.Errorf("list notifications: %w", err)
	}
	answer := ListNotifications200JSONResponse{Items: make([]Notification, len(found))}
	for i := range found {
		answer.Items[i] = notificationAnswer(&found[i], false)
	}
	if len(found) < q.Limit && next != nil {
		answer.SearchedTo = utc(&next.CreatedAt)
		text, err := mark{List: listNotifications, At: next.CreatedAt.UTC(), ID: next.ID}.encode()
		answer.NextCursor = &text
		return answer, err
	}
	answer.NextCursor, err = nextCursor(len(found), q.Limit, func() mark {
		last := &found[len(found)-1]
		return mark{List: listNotifications, At: last.CreatedAt.UTC(), ID: last.ID}
	})
	return answer, err
}

// CountNotifications answers GET /notifications/counts.
func (s *server) CountNotifications(ctx context.Context, req CountNotificationsRequestObject) (CountNotificationsResponseObject, error) {
	p := req.Params
	statuses, err := notificationStatuses(p.Status)
	if err != nil {
		return nil, err
	}
	counts, complete, err := s.Notifications.Counts(ctx, tenantOf(ctx), NotificationFilter{
		Statuses: statuses, Webhooks: deref(p.WebhookID), From: p.From, To: p.To,
	})
	if err != nil {
		return nil, fmt.Errorf("count notifications: %w", err)
	}
	return CountNotifications200JSONResponse{
		Pending: counts[notify.Pending], Retrying: counts[notify.Retrying], Delivered: counts[notify.Delivered],
		Failed: counts[notify.Failed], Exhausted: counts[notify.Exhausted], Discarded: counts[notify.Discarded],
		Suppressed: counts[notify.Suppressed], Complete: complete,
	}, nil
}

func notificationStatuses(values *[]NotificationStatus) ([]notify.Status, error) {
	return oneOf("status", values, notify.Pending, notify.Retrying, notify.Delivered, notify.Failed, notify.Exhausted, notify.Discarded, notify.Suppressed)
}

// GetWebhookActivity answers GET /webhooks/{id}/activity.
func (s *server) GetWebhookActivity(ctx context.Context, req GetWebhookActivityRequestObject) (GetWebhookActivityResponseObject, error) {
	webhook, err := s.Webhooks.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("get webhook: %w", err)
	}
	flow, err := s.Notifications.Flow(ctx, tenantOf(ctx), webhook.ID)
	if err != nil {
		return nil, fmt.Errorf("read activity of webhook: %w", err)
	}
	answer := GetWebhookActivity200JSONResponse{
		From: flow.From.UTC(), BucketSeconds: int(time.Hour.Seconds()), Complete: flow.Complete, LastSuccessAt: utc(flow.LastSuccessAt),
		Buckets: make([]DeliveryBucket, len(flow.Hours)),
	}
	for i, h := range flow.Hours {
		answer.Buckets[i] = DeliveryBucket{Delivered: h.Delivered, Failed: h.Failed, MedianMs: milliseconds(h.Median), P95Ms: milliseconds(h.P95)}
	}
	return answer, nil
}

func milliseconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(float64(*d) / float64(time.Millisecond))
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
		Webhooks: deref(p.WebhookID), Rules: deref(p.RuleID), Alerts: deref(p.AlertID), Digests: deref(p.DigestID), Silences: deref(p.SilenceID), DigestsOf: deref(p.DigestOfSilenceID),
		From: p.From, To: p.To, OnlyMessages: deref(p.OnlyMessages),
	}
	q.Text = deref(p.Q)
	if err := texts("q", []string{q.Text}, maxTextBytes); err != nil {
		return q, err
	}
	if q.Reasons, err = reasons("reason", p.Reason); err != nil {
		return q, err
	}
	q.Statuses, err = notificationStatuses(p.Status)
	return q, err
}

func reasons(parameter string, given *[]notify.Reason) ([]notify.Reason, error) {
	return oneOf(parameter, given, notify.ReasonFired, notify.ReasonReminder, notify.ReasonSnoozeEnded, notify.ReasonEscalated, notify.ReasonResolved, notify.ReasonAcknowledged, notify.ReasonReopened,
		notify.ReasonRuleFailing, notify.ReasonRuleRecovered, notify.ReasonSourceFailing, notify.ReasonSourceRecovered,
		notify.ReasonWebhookOff, notify.ReasonWebhookFailing, notify.ReasonUndelivered, notify.ReasonDigest)
}

// GetNotification answers GET /notifications/{id}.
func (s *server) GetNotification(ctx context.Context, req GetNotificationRequestObject) (GetNotificationResponseObject, error) {
	n, err := s.Notifications.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("get notification: %w", err)
	}
	answer := notificationAnswer(&n, true)
	answer.Body = bodyAnswer(n.Body)
	return GetNotification200JSONResponse(answer), nil
}

// mostShown is how many bytes of a body are shown.
const mostShown = 64 << 10

func bodyAnswer(b *notify.Body) *MessageBody {
	if b == nil {
		return nil
	}
	shown := b.Content[:min(len(b.Content), mostShown)]
	return &MessageBody{
		ContentType: b.ContentType, Text: strings.ToValidUTF8(string(shown), "\uFFFD"), Truncated: len(shown) < len(b.Content),
	}
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
		QuietUntil:    utc(n.QuietUntil),
		SettledAt:     utc(n.SettledAt),
		LastError:     optional(n.LastError),
		DigestID:      n.DigestID,
		DigestSize:    optional(n.DigestSize),
	}
	if by := n.Silence; by != nil {
		answer.SuppressedBy = &SuppressedBy{ID: by.ID, Name: by.Name, Reason: by.Reason, CreatedBy: by.CreatedBy, EndsAt: utc(by.Over())}
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
			answered := &latest[i]
			if answered.Outcome.StatusCode != 0 {
				answer.LastStatusCode = &answered.Outcome.StatusCode
			}
			if answered.FinishedAt != nil {
				answer.LastDurationMs = milliseconds(&answered.Outcome.Duration)
			}
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
