package postgres

import (
	"context"
	"fmt"

	"tocsin/api"
)

// Names returns the names of all rules by (name, id).
func (s *Rules) Names(ctx context.Context, tenant string) ([]api.RuleName, error) {
	rows, err := s.db.queries.RuleNames(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list the names of rules: %w", err)
	}
	names := make([]api.RuleName, len(rows))
	for i, row := range rows {
		names[i] = api.RuleName{ID: row.RuleID, Name: row.Name, Enabled: row.Enabled}
	}
	return names, nil
}
