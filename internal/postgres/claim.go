package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// claiming is a claim in progress.
type claiming struct {
	request  dispatch.ClaimRequest
	looked   looked
	dealt    []dispatch.Slots
	webhooks map[uuid.UUID]cachedWebhook
	// claimed are the rows taken; deliveries is what was read for them.
	claimed    []pgq.OutboxClaimRow
	deliveries []notify.Delivery
	// bodyAt holds the instants that the bodies contain.
	bodyAt map[uuid.UUID]time.Time
	// needless are the messages that are of no use to their receivers any more.
	needless map[uuid.UUID]bool
	// granted are the webhooks whose messages are taken under a grant.
	granted []uuid.UUID
	// took reports that rows were taken; ended reports that some of them ended without an attempt.
	took, ended bool
	// waited says that a claim before has waited for a row that somebody keeps locked. This one hardly waits.
	waited bool
	// damaged is a message that made a claim fail, or nil.
	damaged *unreadable
	// unwanted is what the check after the commit found; unchecked is why there was no check.
	unwanted  []uuid.UUID
	unchecked error
}

// claim takes messages, stores their bodies and begins their attempts in one transaction. After its
// commit it asks once more which webhooks still want them. Without a grant it waits for Postgres
// three times: for the claimed rows, for the data that they refer to, and for the commit together
// with the last answer.
//
// A claim that panics over a message has failed.
func (s *Outbox) claim(ctx context.Context, c *claiming) error {
	return fault.Guard(func() error { return s.claimAll(ctx, c) })
}

func (s *Outbox) claimAll(ctx context.Context, c *claiming) error {
	conn, err := s.db.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	defer conn.Release()
	tx := newPipeline(conn.Conn())
	defer tx.rollback(ctx)
	lockTimeout := "1s"
	if c.waited {
		lockTimeout = "10ms"
	}
	tx.begin(lockTimeout)
	q := pgq.New(tx)
	if err := c.begin(ctx, q, s); err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	if !c.took {
		return nil
	}
	tx.commit()
	c.unwanted, err = q.WebhooksUnwanted(ctx, c.promises())
	if !tx.committed {
		return fmt.Errorf("claim: %w", err)
	}
	c.unchecked = err
	return nil
}

// addTo adds what was claimed. Messages that ended without an attempt used no slot, so the rest of
// the queue is looked at right away.
func (c *claiming) addTo(claimed *dispatch.Claimed) {
	claimed.Deliveries, claimed.Unwanted = append(claimed.Deliveries, c.deliveries...), append(claimed.Unwanted, c.unwanted...)
	claimed.Unchecked = errors.Join(claimed.Unchecked, c.unchecked)
	if c.ended {
		claimed.Next = time.Millisecond
	}
}

// promises are the webhooks of what was claimed, in the versions read by the claim.
func (c *claiming) promises() pgq.WebhooksUnwantedParams {
	var p pgq.WebhooksUnwantedParams
	for i := range c.claimed {
		p.Tokens = append(p.Tokens, c.claimed[i].ClaimToken)
	}
	for _, dealt := range c.dealt {
		p.WebhookIds, p.Versions = append(p.WebhookIds, dealt.WebhookID), append(p.Versions, c.looked.due[dealt.WebhookID].Version)
	}
	return p
}

// begin takes messages and begins their attempts.
func (c *claiming) begin(ctx context.Context, q *pgq.Queries, s *Outbox) error {
	if err := c.take(ctx, q); err != nil || len(c.claimed) == 0 {
		return err
	}
	c.took = true
	taken := len(c.claimed)
	defer func() { c.ended = len(c.deliveries) < taken }()
	if d := c.damaged; d != nil && len(c.claimed) == 1 && c.claimed[0].NotificationID == d.id {
		return endUnreadable(ctx, q, c.request.Replica, []unreadable{*d})
	}
	unreadable, err := c.read(ctx, q, s)
	if err != nil {
		return err
	}
	if err := c.endUseless(ctx, q); err != nil {
		return err
	}
	unreadable = append(unreadable, c.render()...)
	if len(unreadable) > 0 {
		if err := endUnreadable(ctx, q, c.request.Replica, unreadable); err != nil {
			return err
		}
	}
	if err := c.storeBodies(ctx, q); err != nil {
		return err
	}
	return c.noteGranted(ctx, q)
}

// take takes rows. Webhooks with a rate, or to which a probe goes first, need a grant.
func (c *claiming) take(ctx context.Context, q *pgq.Queries) error {
	p := pgq.OutboxClaimParams{Replica: c.request.Replica, Lease: c.request.Lease, Granted: []uuid.UUID{}}
	granted, err := c.grants(ctx, q)
	if err != nil {
		return fmt.Errorf("check privileges: %w", err)
	}
	for _, dealt := range c.dealt {
		row := c.looked.due[dealt.WebhookID]
		if row.Probe || row.RatePerSecond > 0 {
			g, ok := granted[dealt.WebhookID]
			if !ok {
				continue
			}
			if dealt.Slots = min(dealt.Slots, int(g.Slots)); g.Probe {
				dealt.Slots = min(dealt.Slots, 1)
			}
			p.Granted = append(p.Granted, dealt.WebhookID)
		}
		p.WebhookIds, p.Versions = append(p.WebhookIds, dealt.WebhookID), append(p.Versions, row.Version)
		p.Slots, p.FirstAt = append(p.Slots, int32(dealt.Slots)), append(p.FirstAt, row.FirstAt)
	}
	if len(p.WebhookIds) == 0 {
		return nil
	}
	c.granted = p.Granted
	c.claimed, err = q.OutboxClaim(ctx, p)
	return err
}

// grants asks what webhooks with a rate, or to which a probe goes first, allow.
func (c *claiming) grants(ctx context.Context, q *pgq.Queries) (map[uuid.UUID]pgq.ClaimGrantRow, error) {
	var ids []uuid.UUID
	for _, dealt := range c.dealt {
		if row := c.looked.due[dealt.WebhookID]; row.Probe || row.RatePerSecond > 0 {
			ids = append(ids, dealt.WebhookID)
		}
	}
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // nothing to ask for
	}
	rows, err := q.ClaimGrant(ctx, ids)
	granted := make(map[uuid.UUID]pgq.ClaimGrantRow, len(rows))
	for _, row := range rows {
		granted[row.WebhookID] = row
	}
	return granted, err
}

// noteGranted stores what is sent under grants. A message that ended without an attempt uses up no
// rate and is no probe.
func (c *claiming) noteGranted(ctx context.Context, q *pgq.Queries) error {
	p := pgq.ClaimGrantedParams{Lease: c.request.Lease}
	for _, id := range c.granted {
		count, last := int32(0), notify.Delivery{}
		for i := range c.deliveries {
			if c.deliveries[i].Webhook.ID == id {
				count, last = count+1, c.deliveries[i]
			}
		}
		if count > 0 {
			p.WebhookIds, p.Rows = append(p.WebhookIds, id), append(p.Rows, count)
			p.NotificationIds, p.Tokens = append(p.NotificationIds, last.NotificationID), append(p.Tokens, last.Token)
		}
	}
	if len(p.WebhookIds) == 0 {
		return nil
	}
	return q.ClaimGranted(ctx, p)
}

// unreadable is a message that can never be sent.
type unreadable struct {
	id  uuid.UUID
	why error
}

// about is what is read for a message.
type about struct {
	*pgq.ClaimReadRow
	body *notify.Body
	// undelivered is the zero value if nothing is known of it.
	undelivered notify.Undelivered
}

// read reads what claimed rows refer to.
func (c *claiming) read(ctx context.Context, q *pgq.Queries, s *Outbox) (bad []unreadable, err error) {
	messages, err := c.readAbout(ctx, q)
	if err != nil {
		return nil, err
	}
	c.deliveries = make([]notify.Delivery, 0, len(c.claimed))
	for i := range c.claimed {
		claimed := &c.claimed[i]
		d, err := deliveryOf(claimed, messages[claimed.NotificationID], c.webhooks[claimed.WebhookID].webhook)
		if err != nil {
			bad = append(bad, unreadable{claimed.NotificationID, err})
			continue
		}
		if d.Reason == notify.ReasonDigest && d.Body == nil {
			if d.Digest, err = s.digest(ctx, q, d.NotificationID); err != nil {
				return nil, err
			}
		}
		c.deliveries = append(c.deliveries, d)
	}
	return bad, nil
}

// readAbout reads alerts and rules, the bodies that were rendered before, and what operators are
// notified of.
func (c *claiming) readAbout(ctx context.Context, q *pgq.Queries) (map[uuid.UUID]*about, error) {
	ids := make([]uuid.UUID, len(c.claimed))
	var rendered pgq.BodyReadParams
	c.bodyAt = make(map[uuid.UUID]time.Time, len(c.claimed))
	for i := range c.claimed {
		claimed := &c.claimed[i]
		c.bodyAt[claimed.NotificationID] = claimed.BodyAt
		if ids[i] = claimed.NotificationID; !claimed.BodyAt.Equal(claimed.BegunAt) {
			rendered.NotificationIds, rendered.WrittenAt = append(rendered.NotificationIds, claimed.NotificationID), append(rendered.WrittenAt, claimed.BodyAt)
			rendered.WebhookIds = append(rendered.WebhookIds, claimed.WebhookID)
		}
	}
	rows, err := q.ClaimRead(ctx, pgq.ClaimReadParams{UndoWithin: needlessAfter, NotificationIds: ids})
	if err != nil {
		return nil, fmt.Errorf("read claimed messages: %w", err)
	}
	messages := make(map[uuid.UUID]*about, len(rows))
	c.needless = map[uuid.UUID]bool{}
	var undelivered []uuid.UUID
	for i := range rows {
		if rows[i].Needless {
			c.needless[rows[i].NotificationID] = true
		}
		if messages[rows[i].NotificationID] = (&about{ClaimReadRow: &rows[i]}); rows[i].Reason == string(notify.ReasonUndelivered) {
			undelivered = append(undelivered, rows[i].NotificationID)
		}
	}
	if len(rendered.NotificationIds) > 0 {
		if err := c.readBodies(ctx, q, rendered, messages); err != nil {
			return nil, err
		}
	}
	if len(undelivered) > 0 {
		failed, err := q.UndeliveredAbout(ctx, undelivered)
		if err != nil {
			return nil, fmt.Errorf("read undelivered messages: %w", err)
		}
		for _, f := range failed {
			messages[f.NotificationID].undelivered = notify.Undelivered{Webhook: f.Webhook, Status: notify.Status(f.Status), Error: f.Error}
		}
	}
	return messages, nil
}

// readBodies reads the bodies that were rendered before and are still to be sent, and deletes the others: they are rendered
// again for the attempts that begin.
func (c *claiming) readBodies(ctx context.Context, q *pgq.Queries, rendered pgq.BodyReadParams, messages map[uuid.UUID]*about) error {
	bodies, err := q.BodyRead(ctx, rendered)
	if err != nil {
		return fmt.Errorf("read bodies: %w", err)
	}
	read := make(map[uuid.UUID]bool, len(bodies))
	for _, b := range bodies {
		read[b.NotificationID] = true
		if m := messages[b.NotificationID]; m != nil {
			m.body = &notify.Body{ContentType: b.ContentType, Content: b.Content}
		}
	}
	var forget pgq.BodyForgetParams
	for i := range c.claimed {
		row := &c.claimed[i]
		if at := c.bodyAt[row.NotificationID]; !at.Equal(row.BegunAt) && !read[row.NotificationID] {
			forget.NotificationIds, forget.WrittenAt = append(forget.NotificationIds, row.NotificationID), append(forget.WrittenAt, at)
			c.bodyAt[row.NotificationID] = row.BegunAt
		}
	}
	if len(forget.NotificationIds) == 0 {
		return nil
	}
	if err := q.BodyForget(ctx, forget); err != nil {
		return fmt.Errorf("delete former bodies: %w", err)
	}
	return nil
}

// deliveryOf builds what an attempt needs. The delivery is empty if the alert of the message is
// gone or cannot be read.
func deliveryOf(claimed *pgq.OutboxClaimRow, m *about, webhook notify.Webhook) (notify.Delivery, error) {
	if m == nil {
		return notify.Delivery{}, errors.New("the alert that it is about is gone")
	}
	d := notify.Delivery{
		Webhook: webhook, NotificationID: claimed.NotificationID, Reason: notify.Reason(m.Reason), Token: claimed.ClaimToken, Body: m.body,
		Attempt: int(claimed.Attempts), Try: int(claimed.Tries), CountedAttempts: int(claimed.Counted), Generation: int(claimed.Generation), AfterUnknown: claimed.Unknown,
		At: claimed.BegunAt, Waited: waitedOf(claimed), CommitSpan: m.CommitSpan,
	}
	if claimed.Reached != "" {
		d.Reached = strings.Split(claimed.Reached, "\n")
	}
	if d.Reason == notify.ReasonDigest {
		return d, nil
	}
	if d.Reason != notify.ReasonUndelivered {
		d.Reference, d.Thread = m.Reference, m.Thread
	}
	alert, err := alertOf(m.Alert, m.RuleName, m.RuleAbout)
	switch d.Alert = alert; {
	case d.Reason == notify.ReasonUndelivered:
		d.Alert = m.undelivered.Tell(alert)
	case d.Reason.IsEvent():
		d.Event = &notify.Event{At: m.CreatedAt, By: m.Actor}
		d.Alert = d.Event.Tell(d.Reason, alert)
	}
	if d.Body != nil {
		return d, nil // a frozen body needs no alert
	}
	return d, err
}

// waitedOf returns how long ago a message became due for the first time.
func waitedOf(row *pgq.OutboxClaimRow) time.Duration {
	return time.Duration(row.Waited * float64(time.Second))
}

// render makes the bodies that were not made before.
func (c *claiming) render() (bad []unreadable) {
	readable := c.deliveries[:0]
	for i := range c.deliveries {
		d := c.deliveries[i]
		if d.Body == nil {
			body, problem, err := c.request.Render(&d)
			if err != nil {
				bad = append(bad, unreadable{d.NotificationID, err})
				continue
			}
			if body.Content != nil {
				d.Body, d.Fresh = &body, true
			}
			d.Problem = problem
		}
		readable = append(readable, d)
	}
	c.deliveries = readable
	return bad
}

func (c *claiming) storeBodies(ctx context.Context, q *pgq.Queries) error {
	var p pgq.BodyInsertParams
	for i := range c.deliveries {
		d := &c.deliveries[i]
		if d.Fresh {
			p.NotificationIds, p.ContentTypes = append(p.NotificationIds, d.NotificationID), append(p.ContentTypes, d.Body.ContentType)
			p.Contents, p.Problems = append(p.Contents, d.Body.Content), append(p.Problems, rules.CleanText(d.Problem, 2000))
			p.WrittenAt, p.WebhookVersions = append(p.WrittenAt, c.bodyAt[d.NotificationID]), append(p.WebhookVersions, d.Webhook.Version)
		}
	}
	if len(p.NotificationIds) == 0 {
		return nil
	}
	if err := q.BodyInsert(ctx, p); err != nil {
		return fmt.Errorf("store bodies: %w", err)
	}
	return nil
}

// endUnreadable ends messages that cannot be sent, and notifies operators of them.
func endUnreadable(ctx context.Context, q *pgq.Queries, replica string, list []unreadable) error {
	return endNotMade(ctx, q, pgq.SettleNotMadeParams{Replica: replica, Status: string(notify.Failed)}, list)
}

// endNotMade ends claimed messages without an attempt, and notifies operators of them.
func endNotMade(ctx context.Context, q *pgq.Queries, p pgq.SettleNotMadeParams, list []unreadable) error {
	for _, bad := range list {
		p.Ids, p.Errors = append(p.Ids, bad.id), append(p.Errors, rules.CleanText("Not sent: "+bad.why.Error(), 2000))
	}
	if err := q.SettleNotMade(ctx, p); err != nil {
		return fmt.Errorf("end messages that are not sent: %w", err)
	}
	_, err := notifyUndelivered(ctx, q, p.Ids)
	return err
}
