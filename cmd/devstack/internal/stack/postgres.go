//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"

	"tocsin/cmd/devstack/internal/pgserver"
)

// supervisePostgres starts Postgres and supervises it. It keeps the port that it chose at its first
// start, so that addresses stay valid.
func supervisePostgres(
	ctx context.Context, console *Console, opts pgserver.Options,
) (*supervisor, *pgserver.Server, error) {
	var first *pgserver.Server
	supervised, err := supervise(ctx, console, "Postgres", func(ctx context.Context) (process, error) {
		server, err := pgserver.Start(ctx, opts)
		if err != nil {
			return nil, err
		}
		if first != nil && server.Port() != first.Port() {
			return nil, errors.Join(
				fmt.Errorf("start Postgres again: somebody else took its port %d", first.Port()), server.Stop(ctx))
		}
		if first == nil {
			first, opts.Port = server, server.Port()
		}
		return server, nil
	})
	return supervised, first, err
}
