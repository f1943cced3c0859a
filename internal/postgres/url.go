package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// unacknowledged is how long a server may leave data without acknowledgement.
const unacknowledged = 15 * time.Second

// parse parses the URL of the database.
func parse(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, malformed("TOCSIN_POSTGRES_URL", err)
	}
	config.ConnConfig.DialFunc = newDialer(unacknowledged).DialContext
	return config, nil
}

// CheckURL returns an error unless url can be a URL of Postgres. The error names the setting and
// shows nothing of the URL.
func CheckURL(setting, url string) error {
	if _, err := pgxpool.ParseConfig(url); err != nil {
		return malformed(setting, err)
	}
	return nil
}

// malformed says why a setting cannot be parsed. The error of pgx itself quotes the setting, and
// does not redact every password in it.
func malformed(setting string, err error) error {
	form := setting + " must have the form postgres://user:password@host:5432/database"
	broken, ok := errors.AsType[*pgconn.ParseConfigError](err)
	if !ok {
		return errors.New(form)
	}
	bare := *broken
	bare.ConnString = ""
	reason := strings.TrimPrefix(bare.Error(), "cannot parse ``: ")
	// The text in brackets quotes a word of the setting, which may be part of a password with a
	// blank in it.
	if text := "failed to parse as keyword/value"; strings.HasPrefix(reason, text) {
		reason = text
	}
	return fmt.Errorf("%s: %s", form, reason)
}

// Explained rewrites a connection error: it names the setting that led to the server, and each
// reason once, on one line. It returns other errors unchanged.
func Explained(err error) error {
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

// unreached is a connection error in words for people.
type unreached struct {
	reason string
	err    error
}

func (u unreached) Error() string {
	return "Postgres cannot be reached at TOCSIN_POSTGRES_URL: " + u.reason + "; check that it runs there, and that user, password and database are right"
}

func (u unreached) Unwrap() error { return u.err }
