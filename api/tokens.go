package api

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/access"
	"tocsin/internal/fault"
)

// TokenStore stores the tokens of a tenant.
type TokenStore interface {
	// List returns tokens by (name, id).
	List(ctx context.Context, tenant string, page NamePage) ([]access.Token, error)
	// Create stores a token by the hash of its secret. A name that is taken is a conflict.
	Create(ctx context.Context, t access.Token, secret access.Hash) (access.Token, error)
	Revoke(ctx context.Context, tenant string, id uuid.UUID) error
}

// ListTokens answers GET /tokens.
func (s *server) ListTokens(ctx context.Context, req ListTokensRequestObject) (ListTokensResponseObject, error) {
	page, err := namePage(listTokens, req.Params.Cursor, req.Params.Limit)
	if err != nil {
		return nil, err
	}
	found, err := s.Tokens.List(ctx, tenantOf(ctx), page)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	answer := ListTokens200JSONResponse{Items: make([]Token, len(found))}
	for i := range found {
		answer.Items[i] = tokenAnswer(&found[i])
	}
	answer.NextCursor, err = nextCursor(len(found), page.Limit, func() mark {
		last := &found[len(found)-1]
		return mark{List: listTokens, Name: last.Name, ID: last.ID}
	})
	return answer, err
}

// CreateToken answers POST /tokens.
func (s *server) CreateToken(ctx context.Context, req CreateTokenRequestObject) (CreateTokenResponseObject, error) {
	who := identityOf(ctx)
	b := req.Body
	fields := nameAndRoleFaults(b.Name, b.Role)
	if len(fields) == 0 && !who.Role.Allows(b.Role) {
		fields = append(fields, fault.Field{Field: "role", Code: "above_own", Message: fmt.Sprintf("Must not be higher than your own role, %s", who.Role)})
	}
	if b.ExpiresAt != nil {
		now, err := s.Clock(ctx)
		if err != nil {
			return nil, fmt.Errorf("create token: %w", err)
		}
		if !b.ExpiresAt.After(now.Add(time.Minute)) {
			fields = append(fields, fault.Field{Field: "expiresAt", Code: "past", Message: "Must be in the future"})
		}
	}
	if err := fault.InvalidFields("the token", fields); err != nil {
		return nil, err
	}
	secret, hint := access.NewToken()
	made, err := s.Tokens.Create(ctx, access.Token{
		TenantID: who.Tenant, Name: b.Name, Role: b.Role, Hint: hint, CreatedBy: who.Actor, ExpiresAt: b.ExpiresAt,
	}, access.HashOf(secret))
	if err != nil {
		return nil, fmt.Errorf("create token: %w", err)
	}
	return CreateToken201JSONResponse{Token: tokenAnswer(&made), Secret: secret}, nil
}

// RevokeToken answers DELETE /tokens/{id}.
func (s *server) RevokeToken(ctx context.Context, req RevokeTokenRequestObject) (RevokeTokenResponseObject, error) {
	if err := s.Tokens.Revoke(ctx, tenantOf(ctx), req.ID); err != nil {
		return nil, fmt.Errorf("revoke token: %w", err)
	}
	return RevokeToken204Response{}, nil
}

func tokenAnswer(t *access.Token) Token {
	return Token{
		ID: t.ID, Name: t.Name, Role: t.Role, Hint: t.Hint, CreatedBy: t.CreatedBy, CreatedAt: t.CreatedAt.UTC(),
		ExpiresAt: utc(t.ExpiresAt), UsedAt: utc(t.UsedAt),
	}
}
