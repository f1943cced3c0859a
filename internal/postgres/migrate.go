package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"tocsin/migrations"
)

// Migrate brings the schema of the database at url to the newest version and logs each step.
// Several processes may call it at once: an advisory lock lets one work while the others wait, for
// at most five minutes.
func Migrate(ctx context.Context, url string, logger *slog.Logger) error {
	db, provider, err := migrator(url)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing is pending on it
	results, err := provider.Up(ctx)
	for _, r := range results {
		logger.InfoContext(ctx, "migration applied", slog.Int64("version", r.Source.Version), slog.Duration("took", r.Duration))
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", Explained(err))
	}
	return nil
}

// Schema is the schema version of a database, and the version that this program knows.
type Schema struct{ Version, Known int64 }

// Newer reports whether the schema is newer than the one that this program knows.
func (s Schema) Newer() bool { return s.Version > s.Known }

// CheckSchema returns an error with the remedy if this program cannot work with the schema of the
// database at url. It can work with the schema that it knows, and with a newer one that declares
// this program compatible.
func CheckSchema(ctx context.Context, url string) (Schema, error) {
	db, provider, err := migrator(url)
	if err != nil {
		return Schema{}, err
	}
	defer db.Close() //nolint:errcheck // nothing is pending on it
	have, want, err := provider.GetVersions(ctx)
	switch {
	case err != nil:
		return Schema{}, fmt.Errorf("read schema version: %w", Explained(err))
	case have < want:
		return Schema{}, fmt.Errorf("the database schema is at version %d, this program needs %d; run `tocsin migrate`", have, want)
	case have == want:
		return Schema{have, want}, nil
	}
	var least int64
	if err := db.QueryRowContext(ctx, `select least from schema_compatibility`).Scan(&least); err != nil {
		return Schema{}, fmt.Errorf("read what the schema works with: %w", err)
	}
	if least > want {
		return Schema{}, fmt.Errorf("the database schema is at version %d, which needs a program for version %d or later, and this one is for %d; run a newer program", have, least, want)
	}
	return Schema{have, want}, nil
}

func migrator(url string) (*sql.DB, *goose.Provider, error) {
	// The URL may contain parameters of the pool, which only this parser knows.
	config, err := parse(url)
	if err != nil {
		return nil, nil, err
	}
	db := stdlib.OpenDB(*config.ConnConfig)
	// Tries once a second, for 300 seconds.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, nil, fmt.Errorf("migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, nil, fmt.Errorf("migrations: %w", err)
	}
	return db, provider, nil
}
