package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"tocsin/internal/postgres"
	"tocsin/internal/seal"
)

// keys are the commands for the keys that seal secrets.
type keys struct {
	Status keysStatus `cmd:"" help:"Show which keys are in use, and which are no longer needed."`
	Reseal keysReseal `cmd:"" help:"Encrypt all secrets with the first key. This is safe while replicas run, and can be repeated."`
}

type keyFlags struct {
	database

	EncryptionKey string `help:"The keys of the replicas, separated by commas. The first one encrypts." env:"TOCSIN_ENCRYPTION_KEY" required:"" placeholder:"KEY"`
}

func (f *keyFlags) open(ctx context.Context) (*postgres.DB, error) {
	box, err := seal.New(f.EncryptionKey)
	if err != nil {
		return nil, fmt.Errorf("TOCSIN_ENCRYPTION_KEY: %w", err)
	}
	if _, err := postgres.CheckSchema(ctx, f.PostgresURL); err != nil {
		return nil, err
	}
	return postgres.Open(ctx, f.PostgresURL, box)
}

type keysStatus struct{ keyFlags }

// Run shows which keys are in use.
func (c *keysStatus) Run(ctx context.Context, out io.Writer) error {
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return writeKeys(ctx, db, out)
}

type keysReseal struct{ keyFlags }

// errUnreadable is the error of secrets that were left as they are.
var errUnreadable = errors.New("not all secrets could be decrypted")

// Run seals all secrets with the first key.
func (c *keysReseal) Run(ctx context.Context, out io.Writer) error {
	db, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	done, err := db.Reseal(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "Encrypted again: %d\n", done.Resealed); err != nil {
		return err
	}
	if err := writeKeys(ctx, db, out); err != nil {
		return err
	}
	if len(done.Unreadable) > 0 {
		return fmt.Errorf("%w: those of the webhooks %v; add the key that was in use when they were stored, or edit these webhooks and enter their secrets again",
			errUnreadable, done.Unreadable)
	}
	return nil
}

// writeKeys lists keys and their states.
func writeKeys(ctx context.Context, db *postgres.DB, out io.Writer) error {
	uses, err := db.Keys(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tSECRETS\t") //nolint:errcheck // Flush returns the error
	for _, use := range uses {
		fmt.Fprintf(table, "%s\t%d\t%s\n", use.Key, use.Secrets, meaning(use)) //nolint:errcheck // Flush returns the error
	}
	return table.Flush()
}

func meaning(use postgres.KeyUse) string {
	switch {
	case use.Active:
		return "encrypts"
	case use.Configured && use.Secrets == 0:
		return "no longer needed; remove it from TOCSIN_ENCRYPTION_KEY of all replicas"
	case use.Configured:
		return "still in use; run: tocsin keys reseal"
	case use.Key == "":
		return "unknown format; edit these webhooks and enter their secrets again"
	default:
		return "missing; add it to TOCSIN_ENCRYPTION_KEY, or edit these webhooks and enter their secrets again"
	}
}
