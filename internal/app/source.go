package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"tocsin/evaluator"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/clickhouse"
)

// sourceCheckTimeout bounds the check of the source when a replica starts.
const sourceCheckTimeout = 10 * time.Second

// openEvaluated opens the source for what evaluates. No partition waits for a connection that another one uses; the
// comparison every ten minutes and the search for evidence each have one query at a time.
func (a *App) openEvaluated() (*clickhouse.Source, error) {
	passes := cmp.Or(a.options.Workers, evaluator.DefaultWorkers)
	return a.openSource("clickhouse", clickhouse.Options{Connections: passes*counting.QueriesAtOnce + 2, Kept: passes})
}

// openSource opens the source, with connections of its own.
func (a *App) openSource(name string, o clickhouse.Options) (*clickhouse.Source, error) {
	o.URL, o.Mapping, o.Version = a.options.ClickHouseURL, a.options.Source, a.options.Version
	source, err := clickhouse.Open(o)
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
