package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"tocsin/internal/access"
)

// Identity is who makes a request.
type Identity struct {
	// Tenant owns every row that the request can see.
	Tenant string
	// Actor is the person or program that acts, as alerts show it: the e-mail
	// address of a user, or "token" and a name. No two of a tenant are the same.
	Actor string
	// Role bounds what the request may do.
	Role access.Role
	// Kind is "user", "token" or "open", and ID the user's or the token's.
	Kind string
	ID   uuid.UUID
	// Session is set for a user.
	Session *access.Session
}

// Everybody identifies every request as i, as an administrator unless i has a role.
func Everybody(i Identity) func(*http.Request) (Identity, error) {
	if i.Role == "" {
		i.Role = access.Admin
	}
	if i.Kind == "" {
		i.Kind = kindOpen
	}
	return func(*http.Request) (Identity, error) { return i, nil }
}

const (
	kindUser  = "user"
	kindToken = "token"
	kindOpen  = "open"
)

// credentials identifies a request by its token or its session.
func (s *server) credentials(r *http.Request) (Identity, error) {
	if header := r.Header.Get(echo.HeaderAuthorization); header != "" {
		scheme, secret, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return Identity{}, unauthorized("Send a token as Authorization: Bearer tcn_…")
		}
		t, err := s.Authenticator.Token(r.Context(), strings.TrimSpace(secret))
		if err != nil {
			return Identity{}, notIdentified(err, "This token is not valid: it was revoked, it has expired, or it never existed. Use another one")
		}
		return Identity{Tenant: t.TenantID, Actor: "token " + t.Name, Role: t.Role, Kind: kindToken, ID: t.ID}, nil
	}
	secret := s.sessionSecret(r)
	if secret == "" {
		return Identity{}, unauthorized("Sign in, or send a token")
	}
	if access.PlausibleToken(secret) {
		return s.display(r.Context(), secret)
	}
	session, err := s.Authenticator.Session(r.Context(), secret)
	if err != nil {
		return Identity{}, notIdentified(err, "The session has ended; sign in again")
	}
	a := &session.Account
	return Identity{Tenant: a.TenantID, Actor: a.Email, Role: a.Role, Kind: kindUser, ID: a.ID, Session: &session}, nil
}

// display identifies a wall screen: a browser that shows pages with a token. Any page of another site can make the
// browser send its cookie, and anybody in front of the screen can use it, so the token must be
// read-only.
func (s *server) display(ctx context.Context, secret string) (Identity, error) {
	t, err := s.Authenticator.Token(ctx, secret)
	if err != nil {
		return Identity{}, notIdentified(err, "The token of this wall screen is no longer valid: it was revoked or has expired. Open the wall screen with a new one")
	}
	if t.Role != access.Viewer {
		return Identity{}, echo.NewHTTPError(http.StatusForbidden, "A wall screen needs a token with the role viewer; this one has the role "+string(t.Role)+". Create one with the role viewer")
	}
	return Identity{Tenant: t.TenantID, Actor: "token " + t.Name, Role: t.Role, Kind: kindToken, ID: t.ID}, nil
}

func unauthorized(message string) error { return echo.NewHTTPError(http.StatusUnauthorized, message) }

func notIdentified(err error, message string) error {
	if errors.Is(err, access.ErrRefused) {
		return unauthorized(message)
	}
	return notChecked(err)
}

// notChecked says that callers cannot be identified at present, unless err is a fault, which is
// returned as it is.
func notChecked(err error) error {
	return echo.NewHTTPError(http.StatusServiceUnavailable, "Your identity cannot be checked now; try again").SetInternal(err)
}

// call is what is known of a request before its caller is identified.
type call struct {
	// from is where the request comes from and what it asks for.
	from access.Actor
	// secret is the secret of the session that the browser sent.
	secret string
	// holds identifies the caller again, and returns why the caller may not do this any more.
	holds func(context.Context) error
}

type (
	identityKey struct{}
	callKey     struct{}
)

// identify identifies the caller and checks whether the operation is allowed, before path and body
// are read.
func (s *server) identify(document *document) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			op, known := document.operations[r.Method+" "+c.Path()]
			if !known {
				return next(c)
			}
			this := call{
				secret: s.sessionSecret(r), from: access.Actor{
					Address: c.RealIP(), RequestID: c.Response().Header().Get(echo.HeaderXRequestID),
					Operation: op.id, ObjectKind: op.kind, ObjectID: c.Param("id"),
				},
				holds: func(ctx context.Context) error { _, err := s.allow(r.WithContext(ctx), op); return err },
			}
			ctx := r.Context()
			if op.role != access.Anyone {
				who, err := s.allow(r, op)
				if err != nil {
					return err
				}
				ctx = context.WithValue(ctx, identityKey{}, who)
				if op.changes {
					ctx = access.As(ctx, who.acting(this.from))
				}
			}
			c.SetRequest(r.WithContext(context.WithValue(ctx, callKey{}, this)))
			return next(c)
		}
	}
}

// allow returns the caller of a request, if the operation is allowed.
func (s *server) allow(r *http.Request, op described) (Identity, error) {
	who, err := s.Identify(r)
	if err != nil {
		return Identity{}, err
	}
	if !who.Role.Allows(op.role) {
		return Identity{}, who.lacks("This", op.role)
	}
	return who, nil
}

// lacks says that what needs a role that the caller does not have.
func (i *Identity) lacks(what string, role access.Role) error {
	remedy := "ask an administrator for it"
	if i.Kind == kindToken {
		remedy = "use a token with that role"
	}
	return echo.NewHTTPError(http.StatusForbidden, fmt.Sprintf("%s needs the role %s; yours is %s: %s", what, role, i.Role, remedy))
}

// acting adds the caller to from.
func (i *Identity) acting(from access.Actor) access.Actor {
	from.Tenant, from.Kind, from.Name, from.Via = i.Tenant, i.Kind, i.Actor, i.Kind
	if i.ID != uuid.Nil {
		from.ID = i.ID.String()
	}
	if i.Session != nil {
		from.Via, from.ViaID = "session", i.Session.ID.String()
	}
	return from
}

// identityOf returns the result of [server.identify]. Without it the identity is empty, and no row
// belongs to the empty tenant.
func identityOf(ctx context.Context) Identity {
	i, _ := ctx.Value(identityKey{}).(Identity)
	return i
}

func tenantOf(ctx context.Context) string { return identityOf(ctx).Tenant }

func callOf(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call)
	return c
}

// statusOfHTTP returns the HTTP status in err; 0 for another kind of error.
func statusOfHTTP(err error) int {
	if h, ok := errors.AsType[*echo.HTTPError](err); ok {
		return h.Code
	}
	return 0
}
