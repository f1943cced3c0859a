package app

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/postgres"
	"tocsin/internal/seal"
)

// CheckOptions returns everything that is wrong with options, as far as it can be checked without
// connecting, or nil. Each error names its setting.
func CheckOptions(o Options) error {
	o.applyDefaults()
	errs := []error{o.validate()}
	if o.PostgresURL != "" {
		errs = append(errs, postgres.CheckURL("TOCSIN_POSTGRES_URL", o.PostgresURL), checkExecMode(o.PostgresURL))
	}
	if o.EncryptionKey != "" {
		if _, err := seal.New(o.EncryptionKey); err != nil {
			errs = append(errs, fmt.Errorf("TOCSIN_ENCRYPTION_KEY: %w", err))
		}
	}
	if o.Source.Table != "" {
		if err := o.Source.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("mapping of the source: %w", err))
		}
	}
	return errors.Join(errs...)
}

// checkExecMode refuses modes that derive the types of query parameters from Go types: an empty
// list has no type then, and no message would be claimed any more.
func checkExecMode(url string) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil //nolint:nilerr // said by the check of the URL
	}
	if mode := config.ConnConfig.DefaultQueryExecMode; mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol {
		return errors.New("TOCSIN_POSTGRES_URL asks for default_query_exec_mode=" + execModeName(mode) + ", which Tocsin does not support; behind a pooler in transaction mode use cache_describe")
	}
	return nil
}

func execModeName(mode pgx.QueryExecMode) string {
	if mode == pgx.QueryExecModeExec {
		return "exec"
	}
	return "simple_protocol"
}
