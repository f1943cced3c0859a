package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"tocsin/internal/access"
	"tocsin/internal/access/oidc"
	"tocsin/internal/fault"
)

// Provider is an identity provider through which people sign in.
type Provider interface {
	// Begin returns where to send the browser, and the cookie that it keeps.
	Begin(ctx context.Context, returnTo string) (target, cookie string, err error)
	// Finish returns the person who came back, and where to return to. Its errors are
	// [*oidc.Error].
	Finish(ctx context.Context, cookie string, query url.Values) (access.NewAccount, string, error)
}

// Recogniser finds or makes the account of a person who signs in through a provider. It returns
// [access.ErrRefused] if there is no account and none may be made, and a conflict if the e-mail
// address belongs to another account.
type Recogniser interface {
	Recognise(ctx context.Context, who access.NewAccount) (access.Account, error)
}

// SingleSignOn lets people sign in through a provider.
type SingleSignOn struct {
	Provider Provider
	Accounts Recogniser
	// Name is the text of the button.
	Name string
}

const (
	pathProviderStart = "/api/auth/oidc/start"
	// PathProviderCallback is the path to which a provider sends people back.
	PathProviderCallback = "/api/auth/oidc/callback"
	// attemptSeconds is how long the cookie of a sign-in attempt is kept.
	attemptSeconds = 600
)

// provider returns the provider that people can sign in through, or nil.
func (s *server) provider() *SignInProvider {
	if s.SingleSignOn == nil {
		return nil
	}
	return &SignInProvider{Name: s.SingleSignOn.Name, URL: pathProviderStart}
}

func (s *server) attemptCookie(value string) *http.Cookie {
	cookie := &http.Cookie{
		Name: cookieName(s.secure) + "-oidc", Value: value, Path: "/", MaxAge: attemptSeconds, HttpOnly: true, Secure: s.secure,
		SameSite: http.SameSiteLaxMode,
	}
	if value == "" {
		cookie.MaxAge = -1
	}
	return cookie
}

// beginElsewhere sends a browser to the provider.
func (s *server) beginElsewhere(c echo.Context) error {
	target, cookie, err := s.SingleSignOn.Provider.Begin(c.Request().Context(), c.QueryParam("return"))
	if err != nil {
		return s.backWith(c, "/", err)
	}
	c.SetCookie(s.attemptCookie(cookie))
	return c.Redirect(http.StatusFound, target)
}

// endElsewhere begins a session for a person who comes back from the identity provider.
func (s *server) endElsewhere(c echo.Context) error {
	ctx := c.Request().Context()
	var kept string
	if cookie, err := c.Cookie(s.attemptCookie("").Name); err == nil {
		kept = cookie.Value
	}
	c.SetCookie(s.attemptCookie(""))
	who, returnTo, err := s.SingleSignOn.Provider.Finish(ctx, kept, c.QueryParams())
	if err != nil {
		return s.backWith(c, returnTo, err)
	}
	from := access.Actor{
		Tenant: who.TenantID, Kind: kindUser, Name: who.Email, Via: "oidc", Address: c.RealIP(),
		RequestID: c.Response().Header().Get(echo.HeaderXRequestID), ObjectKind: "user",
	}
	account, err := s.SingleSignOn.Accounts.Recognise(access.As(ctx, from), who)
	if err != nil {
		return s.backWith(c, returnTo, err)
	}
	from.Operation = "createSession"
	entry, err := s.Authenticator.Admit(ctx, from, account, "oidc")
	if err != nil {
		return s.backWith(c, returnTo, err)
	}
	c.SetCookie(s.sessionCookie(entry.Secret, entry.Session.ExpiresAt))
	return c.Redirect(http.StatusFound, returnTo)
}

// backWith sends a browser back to the page, which shows the problem. The page gets only the kind
// of problem, so that nobody can make it show an arbitrary text.
func (s *server) backWith(c echo.Context, returnTo string, err error) error {
	problem := "unavailable"
	theirs, ok := errors.AsType[*oidc.Error](err)
	switch {
	case ok:
		problem = string(theirs.Problem)
	case errors.Is(err, access.ErrRefused):
		problem = string(oidc.NotAdmitted)
	case fault.KindOf(err) == fault.Conflict:
		problem = "email-taken"
	}
	s.Log.LogAttrs(c.Request().Context(), slog.LevelWarn, "sign-in at the provider failed; check the TOCSIN_OIDC settings if this repeats",
		slog.String("request_id", c.Response().Header().Get(echo.HeaderXRequestID)), slog.String("problem", problem), slog.Any("error", err))
	path, _, _ := strings.Cut(returnTo, "?")
	return c.Redirect(http.StatusFound, path+"?sign-in-problem="+url.QueryEscape(problem))
}
