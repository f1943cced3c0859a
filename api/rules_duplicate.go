package api

import (
	"context"
	"fmt"

	"tocsin/internal/fault"
)

// DuplicateRule answers POST /rules/{id}/duplicate.
func (s *server) DuplicateRule(ctx context.Context, req DuplicateRuleRequestObject) (DuplicateRuleResponseObject, error) {
	r, err := s.Rules.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("duplicate rule: %w", err)
	}
	d := r.Definition
	d.Enabled = false
	for n := 1; ; n++ {
		d.Name = copyName(r.Name, n)
		made, err := s.Rules.Create(ctx, tenantOf(ctx), d)
		if fault.KindOf(err) == fault.Conflict && n < maxCopies {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("duplicate rule: %w", err)
		}
		answer := DuplicateRule201JSONResponse{Body: ruleAnswer(&made)}
		answer.Headers = DuplicateRule201ResponseHeaders{ETag: etag(made.Version), Location: "/api/v1/rules/" + made.ID.String()}
		return answer, nil
	}
}

const (
	// maxCopies bounds the number of names that are tried.
	maxCopies       = 50
	maxRuleNameChar = 200
)

// copyName names the n-th copy, from 1, within the maximum length of names.
func copyName(name string, n int) string {
	suffix := ""
	if n > 1 {
		suffix = fmt.Sprintf(" (%d)", n)
	}
	runes := []rune("Copy of " + name)
	return string(runes[:min(len(runes), maxRuleNameChar-len(suffix))]) + suffix
}
