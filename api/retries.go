package api

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/notify"
)

// Retrier sends messages again when a person requests it.
type Retrier interface {
	// Retry makes a notification due at once with a new schedule. One that is already due stays as
	// it is. A webhook that accepts no messages and an attempt under way are faults of kind
	// Conflict.
	Retry(ctx context.Context, tenant string, id uuid.UUID, actor string) error
	// RetryAll does the same for many notifications, in one transaction.
	RetryAll(ctx context.Context, tenant string, order RetryOrder) (Retried, error)
}

// Discarder gives up messages when a person requests it.
type Discarder interface {
	// Discard ends the message of a notification as DISCARDED. A delivered message and an attempt
	// under way are faults of kind Conflict.
	Discard(ctx context.Context, tenant string, id uuid.UUID, actor string) error
	// DiscardAll does the same for many notifications, in one transaction.
	DiscardAll(ctx context.Context, tenant string, order RetryOrder) (Discarded, error)
}

// Discarded is the result of an order, in messages: a digest is one.
type Discarded struct {
	Discarded int
	// Skipped is the number of messages that were delivered or discarded before, or are being
	// attempted.
	Skipped int
}

// RetryOrder selects the notifications to send again or to give up: those of IDs or, if it is nil,
// those of Filter.
type RetryOrder struct {
	IDs    []uuid.UUID
	Filter NotificationFilter
	// Actor is the person, as the record shows them.
	Actor string
}

// Retried is the result of an order, in messages: a digest is one.
type Retried struct {
	Retried int
	// Skipped is the number of messages that were delivered, are already due or being attempted, or
	// whose webhook accepts no messages.
	Skipped int
}

// RetryRecord is a person's retry.
type RetryRecord struct {
	At time.Time
	By string
}

// maxRetryIDs bounds the number of ids in an order, as in openapi.yaml.
const maxRetryIDs = 1000

// maxFilterIDs bounds each list of a filter, as in openapi.yaml.
const maxFilterIDs = 100

// RetryNotification answers POST /notifications/{id}/retry.
func (s *server) RetryNotification(ctx context.Context, req RetryNotificationRequestObject) (RetryNotificationResponseObject, error) {
	i := identityOf(ctx)
	if err := s.Notifications.Retry(ctx, i.Tenant, req.ID, i.Actor); err != nil {
		return nil, fmt.Errorf("retry notification: %w", err)
	}
	n, err := s.Notifications.Get(ctx, i.Tenant, req.ID)
	if err != nil {
		return nil, fmt.Errorf("get notification: %w", err)
	}
	return RetryNotification200JSONResponse(notificationAnswer(&n, true)), nil
}

// RetryNotifications answers POST /notifications/retry.
func (s *server) RetryNotifications(ctx context.Context, req RetryNotificationsRequestObject) (RetryNotificationsResponseObject, error) {
	order, err := retryOrder(req.Body)
	if err != nil {
		return nil, err
	}
	i := identityOf(ctx)
	order.Actor = i.Actor
	done, err := s.Notifications.RetryAll(ctx, i.Tenant, order)
	if err != nil {
		return nil, fmt.Errorf("retry notifications: %w", err)
	}
	return RetryNotifications200JSONResponse(done), nil
}

// DiscardNotification answers POST /notifications/{id}/discard.
func (s *server) DiscardNotification(ctx context.Context, req DiscardNotificationRequestObject) (DiscardNotificationResponseObject, error) {
	i := identityOf(ctx)
	if err := s.Notifications.Discard(ctx, i.Tenant, req.ID, i.Actor); err != nil {
		return nil, fmt.Errorf("discard notification: %w", err)
	}
	n, err := s.Notifications.Get(ctx, i.Tenant, req.ID)
	if err != nil {
		return nil, fmt.Errorf("get notification: %w", err)
	}
	return DiscardNotification200JSONResponse(notificationAnswer(&n, true)), nil
}

// DiscardNotifications answers POST /notifications/discard.
func (s *server) DiscardNotifications(ctx context.Context, req DiscardNotificationsRequestObject) (DiscardNotificationsResponseObject, error) {
	order, err := discardOrder(req.Body)
	if err != nil {
		return nil, err
	}
	i := identityOf(ctx)
	order.Actor = i.Actor
	done, err := s.Notifications.DiscardAll(ctx, i.Tenant, order)
	if err != nil {
		return nil, fmt.Errorf("discard notifications: %w", err)
	}
	return DiscardNotifications200JSONResponse(done), nil
}

func retryOrder(b *RetryOrderBody) (RetryOrder, error) {
	return order(b.Ids, b.Filter, notify.Failed, notify.Exhausted, notify.Retrying)
}

func discardOrder(b *DiscardOrderBody) (RetryOrder, error) {
	return order(b.Ids, (*RetryFilter)(b.Filter), notify.Failed, notify.Exhausted, notify.Retrying, notify.Pending)
}

// order converts the selection of notifications. statuses are those that can be chosen.
func order(ids *[]uuid.UUID, f *RetryFilter, statuses ...notify.Status) (order RetryOrder, err error) {
	if (ids == nil) == (f == nil) {
		return order, fault.New(fault.Invalid, "give either ids or a filter")
	}
	if ids != nil {
		if len(*ids) == 0 || len(*ids) > maxRetryIDs {
			return order, invalidField("ids", "out_of_range", fmt.Sprintf("Must be from 1 to %d entries", maxRetryIDs))
		}
		order.IDs = *ids
		return order, nil
	}
	for field, ids := range map[string]*[]uuid.UUID{"webhookId": f.WebhookID, "ruleId": f.RuleID, "alertId": f.AlertID} {
		if len(deref(ids)) > maxFilterIDs {
			return order, invalidField("filter."+field, "out_of_range", fmt.Sprintf("Must be at most %d", maxFilterIDs))
		}
	}
	order.Filter = NotificationFilter{
		Webhooks: deref(f.WebhookID), Rules: deref(f.RuleID), Alerts: deref(f.AlertID), From: f.From, To: f.To,
	}
	if order.Filter.Reasons, err = reasons("filter.reason", f.Reason); err != nil {
		return order, err
	}
	if order.Filter.Statuses, err = oneOf("filter.status", f.Status, statuses...); err != nil {
		return order, err
	}
	if len(order.Filter.Statuses) == 0 {
		order.Filter.Statuses = []notify.Status{notify.Failed, notify.Exhausted}
	}
	return order, nil
}
