// Package product drives Tocsin by its real parts: the program tocsin as
// processes, its store of evaluation, and its databases.
//
// Every run has a database of its own in each engine, which is dropped
// afterwards. What was done is counted in the tables notification and alert and
// in the view notification_status, never in the tables by which the dispatcher
// keeps its work.
package product

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/internal/bench/meter"
	"tocsin/internal/postgres"
)

// Engines are the databases that `devstack run` started.
type Engines struct {
	// Program is the path of tocsin.
	Program string
	// PostgresPID and ClickHousePID are the processes whose descendants do the work.
	PostgresPID, ClickHousePID int
	// Authority is a file with the certificate that replicas trust, "" where there is none.
	Authority string

	postgres, clickHouse *url.URL
	template             string
	http                 *http.Client
	made                 atomic.Int64
}

// Open finds the engines in the environment and migrates a template database.
func Open(ctx context.Context, program string) (*Engines, error) {
	e := &Engines{Program: program, http: &http.Client{}}
	for name, into := range map[string]**url.URL{"TOCSIN_TEST_POSTGRES_URL": &e.postgres, "TOCSIN_TEST_CLICKHOUSE_URL": &e.clickHouse} {
		text := os.Getenv(name)
		if text == "" {
			return nil, fmt.Errorf("%s is not set: run `make bench`, or `bin/devstack run --durable -- go -C internal/bench run .`", name)
		}
		u, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		*into = u
	}
	for _, each := range []struct {
		u    *url.URL
		into *int
	}{{e.postgres, &e.PostgresPID}, {e.clickHouse, &e.ClickHousePID}} {
		port, err := strconv.Atoi(each.u.Port())
		if err == nil {
			*each.into, err = meter.Listener(port)
		}
		if err != nil {
			return nil, fmt.Errorf("find the process of %s: %w", each.u.Host, err)
		}
	}
	e.template = fmt.Sprintf("bench_template_%d", os.Getpid())
	if err := e.admin(ctx, "create database "+e.template); err != nil {
		return nil, err
	}
	return e, postgres.Migrate(ctx, e.postgresURL(e.template), slog.New(slog.DiscardHandler))
}

// Close drops the template.
func (e *Engines) Close(ctx context.Context) error {
	return e.admin(ctx, "drop database if exists "+e.template+" with (force)")
}

// Versions returns the versions of both engines.
func (e *Engines) Versions(ctx context.Context) (postgres, clickHouse string, err error) {
	conn, err := pgx.Connect(ctx, e.postgres.String())
	if err != nil {
		return "", "", err
	}
	err = conn.QueryRow(ctx, "show server_version").Scan(&postgres)
	err = errors.Join(err, conn.Close(ctx))
	if err != nil {
		return "", "", err
	}
	clickHouse, err = e.ask(ctx, "default", "SELECT version()")
	return postgres, strings.TrimSpace(clickHouse), err
}

// Durable says whether Postgres waits for the disk, as in production.
func (e *Engines) Durable(ctx context.Context) (durable bool, err error) {
	conn, err := pgx.Connect(ctx, e.postgres.String())
	if err != nil {
		return false, err
	}
	err = conn.QueryRow(ctx, "select current_setting('fsync')::bool and current_setting('synchronous_commit') = 'on'").Scan(&durable)
	return durable, errors.Join(err, conn.Close(ctx))
}

func (e *Engines) postgresURL(database string) string {
	u := *e.postgres
	u.Path = "/" + database
	return u.String()
}

func (e *Engines) clickHouseURL(database string) string {
	u := *e.clickHouse
	u.Path = "/" + database
	return u.String()
}

func (e *Engines) admin(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, e.postgres.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // a throw-away connection
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// ask runs a statement in ClickHouse.
func (e *Engines) ask(ctx context.Context, database, statement string) (string, error) {
	u := *e.clickHouse
	u.Path, u.RawQuery, u.User = "/", url.Values{"database": {database}}.Encode(), nil
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	if user := e.clickHouse.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	got, err := e.http.Do(request)
	if err != nil {
		return "", err
	}
	said, err := io.ReadAll(got.Body)
	err = errors.Join(err, got.Body.Close())
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("ClickHouse answers %s: %.500s", got.Status, said)
	}
	return string(said), err
}

// Empty makes an empty Postgres database, and returns its URL and what drops it.
func (e *Engines) Empty(ctx context.Context) (address string, drop func() error, err error) {
	return e.database(ctx, "")
}

func (e *Engines) database(ctx context.Context, template string) (address string, drop func() error, err error) {
	name := fmt.Sprintf("bench_%d_%d", os.Getpid(), e.made.Add(1))
	statement := "create database " + name
	if template != "" {
		statement += " template " + template
	}
	if err := e.admin(ctx, statement); err != nil {
		return "", nil, err
	}
	return e.postgresURL(name), func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		// What a run leaves behind is written before the next one is measured.
		return e.admin(ctx, "drop database if exists "+name+" with (force)", "checkpoint")
	}, nil
}
