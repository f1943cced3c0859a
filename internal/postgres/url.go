package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// parse reads the URL of the database.
func parse(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The error of pgx masks the password.
		return nil, fmt.Errorf("TOCSIN_POSTGRES_URL is not of the form postgres://user:password@host:5432/database: %w", err)
	}
	return config, nil
}

// explained says of an error which setting led to a server that was not reached
// or let nobody in, and each reason once, on one line. Other errors it returns as
// they are.
func explained(err error) error {
	refused, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return err
	}
	var reasons []string
	for line := range strings.Lines(refused.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(reasons, line) {
			reasons = append(reasons, line)
		}
	}
	return unreached{reason: strings.Join(reasons, " "), err: err}
}

// unreached is an error of connecting, in words for a person.
type unreached struct {
	reason string
	err    error
}

func (u unreached) Error() string {
	return "Postgres lets nobody in at TOCSIN_POSTGRES_URL; does it run there, and are user, password and database right? " + u.reason
}

func (u unreached) Unwrap() error { return u.err }
