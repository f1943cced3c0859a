package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/internal/postgres/pgq"
	"tocsin/notify"
)

// Evaluation is the evaluator's store. It is safe for concurrent use.
type Evaluation struct {
	db *DB
	// deadAfter is the silence after which a replica counts as dead.
	deadAfter time.Duration
	doubt     doubt
}

// Evaluation returns the evaluator's store. A replica counts as dead after a silence of deadAfter.
func (db *DB) Evaluation(deadAfter time.Duration) *Evaluation {
	return &Evaluation{db: db, deadAfter: deadAfter}
}

// Commit writes a batch in one transaction. A batch that only moves the checkpoint takes one round
// trip.
func (s *Evaluation) Commit(ctx context.Context, batch evaluator.Batch) (done evaluator.Committed, err error) {
	if movesAlone(&batch) {
		done.Revision, err = advance(ctx, pgq.New(alone{s.db.pool, bounded}), &batch)
		return done, classified(err)
	}
	rows, err := alertRows(batch.Instances)
	if err != nil {
		return done, fmt.Errorf("%w: %w", evaluator.ErrRefused, err)
	}
	err = s.doubt.settle(batch.Instances, func(someExist bool) (err error) {
		rows.someExist = someExist
		return s.db.begun(ctx, beginCommit(&batch), func(tx pgx.Tx) (err error) {
			done, err = commit(ctx, s.db.queries.WithTx(tx), &batch, rows)
			return err
		})
	})
	if err != nil {
		return evaluator.Committed{}, classified(err)
	}
	return done, nil
}

func movesAlone(b *evaluator.Batch) bool {
	return len(b.Instances)+len(b.Changes)+len(b.Backfills)+len(b.Health)+len(b.Evaluated) == 0 && b.Replay == nil
}

// fewWritten is the number of alerts up to which a commit uses a generic plan, made once for each
// connection. A plan made for the arguments costs as much as a commit of a few alerts. It pays for
// a full page, because it looks up the ids in a hash.
const fewWritten = 100

// beginCommit begins the transaction of a commit. A row that somebody keeps locked ends it before the time of the pass does: a
// smaller batch needs the same row.
func beginCommit(batch *evaluator.Batch) string {
	if len(batch.Instances) <= fewWritten && len(batch.Backfills)+len(batch.Health) <= fewWritten {
		return beginUnattended + planOnce
	}
	return beginUnattended
}

// classified separates errors about the content of the batch from errors that may pass, and names those that a smaller
// batch may avoid.
func classified(err error) error {
	said, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(said.Code) < 2 {
		return err
	}
	if isLockTimeout(err) {
		return fmt.Errorf("another session of Postgres has locked a row that the commit needs (tocsin doctor names the session): %w", err)
	}
	if said.Code == "57014" { // cancelled by a statement_timeout of the role or the database
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	switch said.Code[:2] {
	case "22", // data: a text with a zero byte, a number out of range
		"23", // constraints
		"44", // a view's check
		"54", // a limit of the program, for example the size of an index entry
		"P0": // raised by a trigger
		return fmt.Errorf("%w: %w", evaluator.ErrRefused, err)
	}
	return err
}

// commit runs the statements of the transaction.
func commit(ctx context.Context, q *pgq.Queries, batch *evaluator.Batch, rows *alertBatch) (done evaluator.Committed, err error) {
	if done.Revision, err = advance(ctx, q, batch); err != nil {
		return done, err
	}
	var look looks
	if done.Inserted, look, err = insertAlerts(ctx, q, rows); err != nil {
		return done, err
	}
	fired := pick(batch.Notifications, aboutAny(batch.Notifications, done.Inserted))
	if look.silences && len(fired) > 0 {
		if fired, done.Suppressed, err = suppress(ctx, q, batch.Instances, fired); err != nil {
			return done, err
		}
	}
	if look.quiet && batch.Replay == nil && len(fired) > 0 {
		if fired, err = holdQuiet(ctx, q, fired); err != nil {
			return done, err
		}
	}
	if done.Notifications, err = insertFired(ctx, q, batch.Replay, fired); err != nil {
		return done, err
	}
	if batch.Replay == nil {
		if err := startEscalations(ctx, q, escalatingInstances(batch.Instances, done.Inserted)); err != nil {
			return done, err
		}
	}
	if err := writeReplay(ctx, q, batch.Replay, &done); err != nil {
		return done, err
	}
	stepped, err := applyChanges(ctx, q, batch.Changes)
	if err != nil {
		return done, err
	}
	done.Inserted, done.Changed, done.Locked = append(done.Inserted, stepped.inserted...), stepped.changed, stepped.locked
	addUp(done.Notifications, stepped.notified.due)
	done.Suppressed += stepped.notified.suppressed
	if err := writeBackfills(ctx, q, batch); err != nil {
		return done, err
	}
	notified, err := writeHealth(ctx, q, batch)
	if err != nil {
		return done, err
	}
	addUp(done.Notifications, notified)
	return done, nil
}

// advance is the compare-and-set that fences the transaction.
func advance(ctx context.Context, q *pgq.Queries, batch *evaluator.Batch) (revision int64, err error) {
	p := pgq.CheckpointCommitParams{
		Cursor: textOf(batch.Cursor), ClockOffsetNs: batch.ClockOffset.Nanoseconds(), LeaseFor: batch.LeaseFor,
		Partition: int32(batch.Partition), Token: batch.Token, Revision: batch.Revision, RulesRevision: batch.RulesRevision,
		WatchedSinceNs: batch.Watch.SinceNS, WatchedUntilNs: batch.Watch.UntilNS, LateNs: batch.Watch.LateNS, AbsenceJudgedNs: batch.Watch.JudgedNS,
		WatchedShown: batch.Watch.Shown,
	}
	if batch.Backfill != nil {
		p.BackfillFromNs, p.BackfillCursorNs = &batch.Backfill.FromNS, &batch.Backfill.CursorNS
	}
	revision, err = q.CheckpointCommit(ctx, p)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, evaluator.ErrStale
	case err != nil:
		return 0, fmt.Errorf("advance checkpoint: %w", err)
	}
	return revision, nil
}

// looks says what a commit has to check: whether a silence may be in force, and whether a webhook
// has quiet hours.
type looks struct{ silences, quiet bool }

// insertAlerts inserts the new alerts and returns their ids. It leaves out alerts before the
// retention floors of their rules.
func insertAlerts(ctx context.Context, q *pgq.Queries, rows *alertBatch) (inserted []uuid.UUID, look looks, err error) {
	if len(rows.rows.RuleIds) == 0 {
		return nil, look, nil
	}
	ids := slices.Collect(maps.Keys(setOf(rows.rows.RuleIds)))
	stored, err := q.RulesRetentionFloor(ctx, ids)
	if err != nil {
		return nil, look, fmt.Errorf("read retention floors: %w", err)
	}
	floors := make(map[uuid.UUID]int64, len(stored))
	for _, row := range stored {
		floors[row.RuleID], look = row.SweptBeforeNs, looks{row.Silences, row.Quiet}
	}
	inserted, err = rows.insert(ctx, q, floors)
	return inserted, look, err
}

// setOf returns a set of ids.
func setOf(ids []uuid.UUID) map[uuid.UUID]bool {
	set := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// aboutAny returns the indexes of the notifications about some alerts.
func aboutAny(notifications []notify.Notification, alerts []uuid.UUID) []int {
	set := setOf(alerts)
	at := make([]int, 0, len(alerts))
	for i := range notifications {
		if set[notifications[i].AlertID] {
			at = append(at, i)
		}
	}
	return at
}

// errNoWebhook refuses notifications that have no receiver.
var errNoWebhook = fmt.Errorf("%w: a webhook of the rule does not exist", evaluator.ErrRefused)

// insertNotifications writes notifications, with the first of their reasons, to the record and the
// outbox. It returns how many, by webhook.
func insertNotifications(ctx context.Context, q *pgq.Queries, list []notify.Notification) (map[uuid.UUID]int, error) {
	written := make(map[uuid.UUID]int)
	if len(list) == 0 {
		return written, nil
	}
	n := len(list)
	p := pgq.NotificationInsertParams{
		NotificationIds: make([]uuid.UUID, n), TenantIds: make([]string, n), AlertIds: make([]uuid.UUID, n),
		RuleIds: make([]uuid.UUID, n), WebhookIds: make([]uuid.UUID, n), Reasons: make([]string, n), CommitSpans: make([][]byte, n),
	}
	for i := range list {
		p.NotificationIds[i], p.TenantIds[i], p.AlertIds[i] = list[i].ID, list[i].TenantID, list[i].AlertID
		p.RuleIds[i], p.WebhookIds[i], p.Reasons[i] = list[i].RuleID, list[i].WebhookID, string(list[i].Reason)
		p.CommitSpans[i] = list[i].CommitSpan
		written[list[i].WebhookID]++
	}
	p.HeldIds = slices.Collect(maps.Keys(written))
	inserted, err := q.NotificationInsert(ctx, p)
	if err == nil && int(inserted) != n {
		err = errNoWebhook
	}
	if err != nil {
		return nil, fmt.Errorf("insert notifications: %w", err)
	}
	return written, nil
}

// addUp adds more to sum, by webhook.
func addUp(sum, more map[uuid.UUID]int) {
	for webhook, n := range more {
		sum[webhook] += n
	}
}

func writeBackfills(ctx context.Context, q *pgq.Queries, batch *evaluator.Batch) error {
	p := pgq.BackfillWriteParams{}
	var done []uuid.UUID
	for i := range batch.Backfills {
		b := &batch.Backfills[i]
		if b.Done() {
			done = append(done, b.RuleID)
			continue
		}
		until := ""
		if b.Until != nil {
			until = b.Until.String()
		}
		p.RuleIds, p.Positions = append(p.RuleIds, b.RuleID), append(p.Positions, b.At.String())
		p.Untils, p.Failing = append(p.Untils, until), append(p.Failing, b.Failing)
		refused := cursor.Range{}
		if b.Refused != nil {
			refused = *b.Refused
		}
		p.RefusedFromNs, p.RefusedToNs = append(p.RefusedFromNs, refused.FromNS), append(p.RefusedToNs, refused.ToNS)
	}
	if len(p.RuleIds) > 0 {
		if err := q.BackfillWrite(ctx, p); err != nil {
			return fmt.Errorf("write backfills: %w", err)
		}
	}
	if len(done) > 0 {
		if err := q.BackfillDelete(ctx, done); err != nil {
			return fmt.Errorf("delete backfills: %w", err)
		}
	}
	return nil
}
