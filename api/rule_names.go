package api

import (
	"context"
	"fmt"
)

// ListRuleNames answers GET /rules/names.
func (s *server) ListRuleNames(ctx context.Context, _ ListRuleNamesRequestObject) (ListRuleNamesResponseObject, error) {
	found, err := s.Rules.Names(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("list the names of rules: %w", err)
	}
	return ListRuleNames200JSONResponse{Items: append([]RuleName{}, found...)}, nil
}
