package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"tocsin/internal/clickhouse"
)

// sourceCheckTimeout bounds the check of the source when a replica starts.
const sourceCheckTimeout = 10 * time.Second

// openSource opens the source, with connections of its own.
func (a *App) openSource(name string) (*clickhouse.Source, error) {
	source, err := clickhouse.Open(clickhouse.Options{URL: a.options.ClickHouseURL, Mapping: a.options.Source, Version: a.options.Version})
	if err != nil {
		return nil, err
	}
	a.lifecycle.add(name, func(context.Context) error { return source.Close() })
	return source, nil
}

// checkSource refuses a mapping that does not fit the table. If ClickHouse or the table is missing,
// it only logs this, because they may appear later.
func (a *App) checkSource(ctx context.Context, source *clickhouse.Source) error {
	ctx, cancel := context.WithTimeout(ctx, sourceCheckTimeout)
	defer cancel()
	report, err := source.CheckMapping(ctx)
	switch {
	case err != nil:
		a.options.Logger.WarnContext(ctx, "the source of exchanges cannot be checked yet; run tocsin source check for the remedy", slog.Any("error", err))
		return nil
	case !report.Exists:
		a.options.Logger.WarnContext(ctx, "the table of exchanges cannot be read yet; its exchanges are evaluated as soon as it can: run tocsin source check for the remedy", slog.Any("error", report.Err()))
		return nil
	default:
		if err := report.Err(); err != nil {
			return fmt.Errorf("source of exchanges: table %s: %w", report.Table, err)
		}
		return nil
	}
}
