// Package postgres is the wake-up bus over LISTEN and NOTIFY. It is the default, because it needs
// only the database.
//
// Every listener receives each message, and no message is kept: a replica misses what is published
// while it does not listen, so each subscription begins with a wake-up. A replica listens on its
// own connection, which is checked after half a minute of silence. It publishes on the pool, after
// the transaction that wrote the notifications: a NOTIFY inside would hold a lock on the whole
// database while the transaction commits.
//
// Behind a pooler in transaction mode, LISTEN receives nothing and returns no error. Therefore a
// subscription succeeds only after it has received a message of its own. A message of another
// process proves nothing: a pooler may deliver it with an answer.
package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/notify/bus"
)

// Notifier publishes on a channel of the database, outside any transaction.
type Notifier interface {
	Notify(ctx context.Context, channel, payload string) error
}

// Options configures a [Driver]. All fields except Idle are required.
type Options struct {
	// URL is the database that Notifier notifies. There must be no pooler in transaction mode in
	// between.
	URL string
	// Channel is at most 63 bytes long.
	Channel  string
	Notifier Notifier
	// Idle is the silence after which the connection is checked, 30 s by default.
	Idle time.Duration
}

// Driver listens and notifies. It is safe for concurrent use.
type Driver struct {
	Options
	config *pgx.ConnConfig
}

// New does not connect. Its error names the invalid setting.
func New(o Options) (*Driver, error) {
	// The URL may contain parameters of a pool, which the server does not know.
	pool, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		// The error quotes the URL, perhaps with its password.
		return nil, errors.New("TOCSIN_BUS_URL must have the form postgres://user:password@host:5432/database")
	}
	config := pool.ConnConfig
	config.RuntimeParams["application_name"] = "tocsin wake-ups"
	if o.Idle == 0 {
		o.Idle = 30 * time.Second
	}
	return &Driver{Options: o, config: config}, nil
}

// Publish notifies.
func (d *Driver) Publish(ctx context.Context, payload []byte) error {
	return d.Notifier.Notify(ctx, d.Channel, string(payload))
}

// Subscribe connects, listens, and checks that messages arrive.
func (d *Driver) Subscribe(ctx context.Context) (bus.Subscription, error) {
	conn, err := pgx.ConnectConfig(ctx, d.config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s := &subscription{conn: conn, idle: d.Idle}
	if err := d.tryOut(ctx, conn); err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

func (d *Driver) tryOut(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{d.Channel}.Sanitize()); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	// A wake-up without an effect.
	probe := `{"notifications":0,"probe":"` + rand.Text() + `"}`
	if err := d.Notifier.Notify(ctx, d.Channel, probe); err != nil {
		return err
	}
	for {
		heard, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("LISTEN does not receive what is published: %w; let TOCSIN_BUS_URL lead to the same database, "+
				"without a pooler in transaction mode", err)
		}
		if heard.Payload == probe {
			return nil
		}
	}
}

// subscription is a connection that listens.
type subscription struct {
	conn *pgx.Conn
	idle time.Duration
}

// Next waits for a message, and checks the connection if none comes.
func (s *subscription) Next(ctx context.Context) (bus.Batch, error) {
	for {
		heard, err := s.wait(ctx)
		switch {
		case err == nil:
			return bus.Batch{Payloads: [][]byte{[]byte(heard)}}, nil
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || s.conn.IsClosed():
			return bus.Batch{}, fmt.Errorf("wait for a notification: %w", err)
		}
		if err := s.ping(ctx); err != nil {
			return bus.Batch{}, err
		}
	}
}

func (s *subscription) wait(ctx context.Context) (payload string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.idle)
	defer cancel()
	heard, err := s.conn.WaitForNotification(ctx)
	if err != nil {
		return "", err
	}
	return heard.Payload, nil
}

func (s *subscription) ping(ctx context.Context) error {
	const bound = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	if err := s.conn.Ping(ctx); err != nil {
		return fmt.Errorf("try the connection: %w", err)
	}
	return nil
}

// Close ends the connection.
func (s *subscription) Close(ctx context.Context) { _ = s.conn.Close(ctx) }
