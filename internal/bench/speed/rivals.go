package speed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/internal/bench/child"
	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/peers"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/trial"
)

func (d *delivering) needsSample(ctx context.Context) error {
	if d.sample == nil {
		_, err := d.drain(ctx, 0)
		return err
	}
	return nil
}

// post is the floor.
func (d *delivering) post(ctx context.Context, _ int) (trial.Measure, error) {
	if err := d.needsSample(ctx); err != nil {
		return trial.Measure{}, err
	}
	book := d.Book()
	poster, err := peers.StartPost(ctx, peers.Post{URL: d.Receiver.URL(book), Count: d.posts, Sample: *d.sample})
	if err != nil {
		return trial.Measure{}, err
	}
	defer lab.End(poster)
	done, err := spanned(ctx, poster, map[string]int{"client": poster.PID(), "receiver": d.ReceiverPID})
	if err != nil {
		return done, err
	}
	return d.settled(ctx, book, d.posts, d.posts, done)
}

// bare lets the bare outbox do the same POST.
func (d *delivering) bare(leased bool) func(context.Context, int) (trial.Measure, error) {
	return func(ctx context.Context, _ int) (trial.Measure, error) {
		return d.queued(ctx, func(database string, conn *pgx.Conn, post peers.Post, book string) (trial.Measure, error) {
			outbox, err := peers.StartOutbox(ctx, peers.Outbox{Database: database, Leased: leased, Post: post})
			if err != nil {
				return trial.Measure{}, err
			}
			defer lab.End(outbox)
			done, err := spanned(ctx, outbox, map[string]int{"client": outbox.PID(), "Postgres": d.Engines.PostgresPID, "receiver": d.ReceiverPID})
			if err != nil {
				return done, err
			}
			var recorded int
			if err := conn.QueryRow(ctx, peers.OutboxDone).Scan(&recorded); err != nil {
				return done, err
			}
			return d.settled(ctx, book, d.count, recorded, done)
		})
	}
}

// river lets River do the same POST.
func (d *delivering) river(ctx context.Context, _ int) (trial.Measure, error) {
	return d.queued(ctx, func(database string, conn *pgx.Conn, post peers.Post, book string) (m trial.Measure, err error) {
		river, err := peers.StartRiver(ctx, peers.River{Database: database, Workers: peers.RiverWorkers, Post: post})
		if err != nil {
			return m, err
		}
		defer lab.End(river)
		used, err := lab.Metered(map[string]int{"River": river.PID(), "Postgres": d.Engines.PostgresPID, "receiver": d.ReceiverPID})
		if err != nil {
			return m, err
		}
		began := time.Now()
		if err := river.WriteLine("go"); err != nil {
			return m, err
		}
		if _, err := d.AwaitReceived(ctx, book, d.count); err != nil {
			return m, errors.Join(err, errors.New(river.Said()))
		}
		var completed int
		recorded, err := product.Await(ctx, func() (bool, error) {
			err := conn.QueryRow(ctx, peers.RiverDone).Scan(&completed)
			return completed >= d.count, err
		})
		if err != nil {
			return m, err
		}
		m.Elapsed = recorded.Sub(began)
		if m.CPU, err = used(); err != nil {
			return m, err
		}
		return d.settled(ctx, book, d.count, completed, m)
	})
}

// queued gives a queue a database of its own, and what it is to send.
func (d *delivering) queued(
	ctx context.Context, run func(database string, conn *pgx.Conn, post peers.Post, book string) (trial.Measure, error),
) (m trial.Measure, err error) {
	if err := d.needsSample(ctx); err != nil {
		return m, err
	}
	database, drop, err := d.Engines.Empty(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return m, err
	}
	defer conn.Close(ctx) //nolint:errcheck // the database is dropped
	book := d.Book()
	return run(database, conn, peers.Post{URL: d.Receiver.URL(book), Count: d.count, Sample: *d.sample}, book)
}

// spanned has a process do its work, which reports itself when it started and ended.
func spanned(ctx context.Context, process *child.Process, pids map[string]int) (m trial.Measure, err error) {
	used, err := lab.Metered(pids)
	if err != nil {
		return m, err
	}
	var span peers.Span
	if err := errors.Join(process.WriteLine("go"), process.Read(ctx, &span)); err != nil {
		return m, err
	}
	m.Elapsed = span.Elapsed()
	m.CPU, err = used()
	return m, err
}

// settled adds to a measure its results: how many messages were asked for, received
// and recorded.
func (d *delivering) settled(ctx context.Context, book string, asked, recorded int, done trial.Measure) (trial.Measure, error) {
	m, err := d.Counted(ctx, book, asked, recorded)
	m.Elapsed, m.CPU = done.Elapsed, done.CPU
	return m, err
}

// alertmanager lets Alertmanager send a message for each alert that it is given.
func (d *delivering) alertmanager(ctx context.Context, _ int) (m trial.Measure, err error) {
	book := d.Book()
	manager, err := peers.StartAlertmanager(ctx, d.Alertmanager, d.Receiver.ExecutionURL(book))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, manager.End()) }()
	used, err := lab.Metered(map[string]int{"Alertmanager": manager.PID(), "receiver": d.ReceiverPID})
	if err != nil {
		return m, err
	}
	ids := make([]string, d.alerts)
	for i := range ids {
		ids[i] = fmt.Sprintf("execution-%08d", i)
	}
	began := time.Now()
	for page := range slices.Chunk(ids, 500) {
		if err := manager.Alerts(ctx, page...); err != nil {
			return m, err
		}
	}
	count, err := d.AwaitReceived(ctx, book, d.alerts)
	if err != nil {
		return m, err
	}
	m.Elapsed = time.Unix(0, count.LastNS).Sub(began)
	if m.CPU, err = used(); err != nil {
		return m, err
	}
	return d.settled(ctx, book, d.alerts, d.alerts, m)
}
