package clickhouse

import (
	"context"
	"fmt"
)

// ServerVersion returns the version of the server that answers.
func (s *Source) ServerVersion(ctx context.Context) (string, error) {
	var version string
	if err := s.conn.QueryRow(s.bounded(ctx, query{}, 1), `SELECT version()`).Scan(&version); err != nil {
		return "", fmt.Errorf("read the version: %w", s.explain(err))
	}
	return version, nil
}
