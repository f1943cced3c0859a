package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// Identity is whom a request is for.
type Identity struct {
	// Tenant owns every row that the request can see.
	Tenant string
	// Actor is the person or program that acts, as alerts show it.
	Actor string
}

// Everybody identifies every request as i.
func Everybody(i Identity) func(*http.Request) (Identity, error) {
	return func(*http.Request) (Identity, error) { return i, nil }
}

type identityKey struct{}

// identify puts the identity of a call into its context, before its path and
// body are looked at.
func (s *server) identify(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if !strings.HasPrefix(r.URL.Path, prefixV1) {
			return next(c)
		}
		i, err := s.Identify(r)
		if err != nil {
			return err
		}
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), identityKey{}, i)))
		return next(c)
	}
}

// identityOf returns what [server.identify] found. Without it the identity is
// empty, and no row belongs to the empty tenant.
func identityOf(ctx context.Context) Identity {
	i, _ := ctx.Value(identityKey{}).(Identity)
	return i
}

func tenantOf(ctx context.Context) string { return identityOf(ctx).Tenant }
