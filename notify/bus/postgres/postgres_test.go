package postgres_test

import (
	"context"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"tocsin/internal/bustest"
	"tocsin/internal/pgtest"
	"tocsin/notify/bus"
	"tocsin/notify/bus/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pool publishes as the product does: on a pool, outside of any transaction.
type pool struct{ *pgxpool.Pool }

func (p pool) Notify(ctx context.Context, channel, payload string) error {
	_, err := p.Exec(ctx, "select pg_notify($1, $2)", channel, payload)
	return err
}

func notifier(t *testing.T, database string) pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return pool{p}
}

func open(t *testing.T, o postgres.Options) *postgres.Driver {
	t.Helper()
	o.Channel = "tocsin-wake-ups"
	driver, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return driver
}

func TestLaws(t *testing.T) {
	bustest.Run(t, func(t *testing.T) bustest.Server {
		t.Helper()
		database := pgtest.URL(t)
		return bustest.Server{
			Nature: bustest.Nature{Broadcasts: true},
			Driver: func(t *testing.T, _ string, _ time.Duration) bus.Driver {
				t.Helper()
				// The connection is checked often, which it must survive.
				return closing{open(t, postgres.Options{URL: database, Notifier: notifier(t, database), Idle: 50 * time.Millisecond})}
			},
			Stop:  func(tb testing.TB) { tb.Helper(); allow(tb, database, "false") },
			Start: func(tb testing.TB) { tb.Helper(); allow(tb, database, "true") },
		}
	})
}

// closing is a driver that is closed together with its publisher.
type closing struct{ *postgres.Driver }

func (c closing) Close() error {
	c.Notifier.(pool).Close()
	return nil
}

// allow makes the database reject new connections and ends the open ones, or accepts connections
// again.
func allow(tb testing.TB, database, connections string) {
	tb.Helper()
	u, err := url.Parse(database)
	if err != nil {
		tb.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	admin := pgtest.Conn(tb, os.Getenv("TOCSIN_TEST_POSTGRES_URL"))
	if _, err := admin.Exec(tb.Context(), "alter database "+name+" with allow_connections "+connections); err != nil {
		tb.Fatal(err)
	}
	if connections == "true" {
		return
	}
	if _, err := admin.Exec(tb.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name); err != nil {
		tb.Fatal(err)
	}
}

// A listener in another database, or behind a pooler in transaction mode, receives nothing and gets
// no error; that is detected when it subscribes.
func TestADeafSubscriptionIsRefused(t *testing.T) {
	published, elsewhere := pgtest.URL(t), pgtest.URL(t)
	driver := open(t, postgres.Options{URL: elsewhere, Notifier: notifier(t, published)})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := driver.Subscribe(ctx)
	if err == nil || !strings.Contains(err.Error(), "let TOCSIN_BUS_URL lead to the same database") {
		t.Errorf("Subscribe = %v", err)
	}
}

// Notifications of others reach a listener that does not receive those of its own publisher, as may
// happen by chance behind a pooler. They prove nothing.
func TestWhatOthersPublishIsNoProof(t *testing.T) {
	published, elsewhere := pgtest.URL(t), pgtest.URL(t)
	driver := open(t, postgres.Options{URL: elsewhere, Notifier: notifier(t, published)})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	others := notifier(t, elsewhere)
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			_ = others.Notify(ctx, driver.Channel, `{"notifications":0}`)
		}
	})
	defer group.Wait()
	if _, err := driver.Subscribe(ctx); err == nil {
		t.Error("a subscription exists that receives nothing")
	}
	cancel()
}

func TestErrorsNameNoPassword(t *testing.T) {
	const secret = "hunter2"
	for _, url := range []string{"postgres://u:" + secret + "@host:port/db", "host=x user=u password = " + secret + " sslmode=maybe"} {
		if _, err := postgres.New(postgres.Options{URL: url}); err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "TOCSIN_BUS_URL") {
			t.Errorf("New = %v", err)
		}
	}
	driver := open(t, postgres.Options{URL: "postgres://u:" + secret + "@127.0.0.1:1/db"})
	if _, err := driver.Subscribe(t.Context()); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("Subscribe = %v", err)
	}
}
