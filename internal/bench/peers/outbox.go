package peers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/bench/child"
)

// Outbox is a queue in Postgres that writes the minimum per message with which none is lost, none
// is repeated except after a crash, and what was sent is on record: a claim and the body, committed
// before the call, and the outcome, committed after it, with which the row leaves the queue. It
// supports a single webhook and process, and nothing else: no index but the queue's own, no rules,
// no templates, no signature, no limits, no retries. Its rate relative to the floor shows what a
// row per message costs at least.
type Outbox struct {
	// Database is the URL of an empty database.
	Database string
	Post     Post
	// Leased creates the messages already claimed and with bodies, in pages of [outboxPage]
	// committed by the same process, instead of claiming them from a queue that is full at the
	// beginning.
	Leased bool
}

const (
	outboxPage = 1000
	// outboxBatch is the largest number that is claimed, or settled, at a time: with it the queue
	// was fastest.
	outboxBatch = 256
	// outboxLinger is how long outcomes are gathered, as Tocsin does.
	outboxLinger = 2 * time.Millisecond
)

const outboxTables = `
create table queue (id bigint primary key, leased_until timestamptz, token bigint) with (fillfactor = 50);
create table body (id bigint primary key, content bytea not null);
create table attempt (id bigint, token bigint, status int, duration_us bigint, finished_at timestamptz default now());
create sequence token;`

// outboxClaim begins where the last claim ended, so that it does not skip over claimed rows.
const outboxClaim = `
update queue set leased_until = now() + interval '30 s', token = nextval('token')
where id = any(array(
    select id from queue where id > $1 and (leased_until is null or leased_until < now()) order by id limit $2 for update skip locked))
returning id, token`

const outboxBodies = `insert into body select * from unnest($1::bigint[], $2::bytea[])`

const outboxBorn = `insert into queue select id, now() + interval '30 s', 1 from unnest($1::bigint[]) id`

const outboxSettle = `
with done as (
    select * from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as t (id, token, duration_us)
), gone as (
    delete from queue where id = any($1::bigint[]) and (id, token) in (select id, token from done) returning id
)
insert into attempt (id, token, status, duration_us) select id, token, 200, duration_us from done join gone using (id)`

// OutboxDone counts the messages whose outcome is recorded and that have left the queue.
const OutboxDone = `select count(*) from attempt a where not exists (select from queue q where q.id = a.id)`

// outboxMessage is a message that is claimed.
type outboxMessage struct {
	id, token int64
	took      time.Duration
}

type outboxRun struct {
	Outbox

	pool   *pgxpool.Pool
	client *http.Client
	// ready are to be sent, sent to be settled.
	ready, sent chan outboxMessage
}

// RunOutbox is the queue in its own process: it signals that it is ready, waits for its parent,
// works, reports when it began and ended, and waits to end.
func RunOutbox(ctx context.Context, parent *child.Parent, o Outbox) error {
	pool, err := pgxpool.New(ctx, o.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, outboxTables); err != nil {
		return fmt.Errorf("make tables: %w", err)
	}
	if !o.Leased {
		if _, err := pool.Exec(ctx, "insert into queue (id) select generate_series(1, $1::bigint)", o.Post.Count); err != nil {
			return fmt.Errorf("fill the queue: %w", err)
		}
	}
	if _, err := pool.Exec(ctx, "analyze"); err != nil {
		return err
	}
	r := &outboxRun{
		Outbox: o, pool: pool, client: newClient(),
		ready: make(chan outboxMessage, outboxBatch), sent: make(chan outboxMessage, outboxPage),
	}
	if err := parent.Say(struct{}{}); err != nil {
		return err
	}
	if err := parent.Wait(); err != nil {
		return err
	}
	span := Span{BeganNS: time.Now().UnixNano()}
	if err := r.work(ctx); err != nil {
		return err
	}
	span.EndedNS = time.Now().UnixNano()
	if err := parent.Say(span); err != nil {
		return err
	}
	return untilEnd(parent)
}

// work ends when everything is settled, or with the first error.
func (r *outboxRun) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var senders, settlers sync.WaitGroup
	for range Connections {
		senders.Go(func() {
			for m := range r.ready {
				began := time.Now()
				if err := r.Post.one(ctx, r.client, strconv.FormatInt(m.id, 10)); err != nil {
					cancel(err)
					continue
				}
				m.took = time.Since(began)
				r.sent <- m
			}
		})
	}
	for range 2 {
		settlers.Go(func() {
			if err := r.settle(ctx); err != nil {
				cancel(err)
				for range r.sent { // nothing else reads it
					continue
				}
			}
		})
	}
	feed := r.claim
	if r.Leased {
		feed = r.commitClaimed
	}
	err := feed(ctx)
	close(r.ready)
	senders.Wait()
	close(r.sent)
	settlers.Wait()
	return errors.Join(err, context.Cause(ctx))
}

// claim claims what is in the queue.
func (r *outboxRun) claim(ctx context.Context) error {
	var last int64
	for {
		rows, err := r.pool.Query(ctx, outboxClaim, last, outboxBatch)
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		claimed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m outboxMessage, err error) {
			return m, row.Scan(&m.id, &m.token)
		})
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if len(claimed) == 0 {
			return nil
		}
		ids := make([]int64, len(claimed))
		for i, m := range claimed {
			ids[i] = m.id
			last = max(last, m.id)
		}
		if _, err := r.pool.Exec(ctx, outboxBodies, ids, r.bodies(len(ids))); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		if err := r.offer(ctx, claimed); err != nil {
			return err
		}
	}
}

// commitClaimed commits pages of messages that are already claimed.
func (r *outboxRun) commitClaimed(ctx context.Context) error {
	for first := 1; first <= r.Post.Count; first += outboxPage {
		page := make([]outboxMessage, min(outboxPage, r.Post.Count-first+1))
		ids := make([]int64, len(page))
		for i := range page {
			ids[i] = int64(first + i)
			page[i] = outboxMessage{id: ids[i], token: 1}
		}
		err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, outboxBorn, ids)
			if err == nil {
				_, err = tx.Exec(ctx, outboxBodies, ids, r.bodies(len(ids)))
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("commit a page: %w", err)
		}
		if err := r.offer(ctx, page); err != nil {
			return err
		}
	}
	return nil
}

func (r *outboxRun) bodies(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = r.Post.Sample.Body
	}
	return all
}

func (r *outboxRun) offer(ctx context.Context, messages []outboxMessage) error {
	for _, m := range messages {
		select {
		case r.ready <- m:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// settle records outcomes, as many together as arrive within [outboxLinger].
func (r *outboxRun) settle(ctx context.Context) error {
	for first := range r.sent {
		batch := []outboxMessage{first}
		over := time.After(outboxLinger)
		for more := true; more && len(batch) < outboxBatch; {
			var m outboxMessage
			select {
			case m, more = <-r.sent:
				if more {
					batch = append(batch, m)
				}
			case <-over:
				more = false
			}
		}
		ids, tokens, took := make([]int64, len(batch)), make([]int64, len(batch)), make([]int64, len(batch))
		for i, m := range batch {
			ids[i], tokens[i], took[i] = m.id, m.token, m.took.Microseconds()
		}
		if _, err := r.pool.Exec(ctx, outboxSettle, ids, tokens, took); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
	}
	return nil
}

// StartOutbox starts the queue in a process of its own, full unless it is leased.
func StartOutbox(ctx context.Context, o Outbox) (*child.Process, error) {
	return startWith(ctx, "outbox", o)
}
