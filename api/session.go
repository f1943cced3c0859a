package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/access"
	"tocsin/internal/fault"
)

// cookieName is the name of the session's cookie. The prefix makes a browser refuse a cookie with
// that name that another host of the same domain sets.
func cookieName(secure bool) string {
	if secure {
		return "__Host-tocsin"
	}
	return "tocsin"
}

// sessionSecret returns the secret that the browser sent, if any.
func (s *server) sessionSecret(r *http.Request) string {
	cookie, err := r.Cookie(cookieName(s.secure))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// sessionCookie keeps a secret until the session ends. An empty secret ends it at once.
func (s *server) sessionCookie(secret string, until time.Time) *http.Cookie {
	cookie := &http.Cookie{
		Name: cookieName(s.secure), Value: secret, Path: "/", Expires: until.UTC(), HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	}
	if secret == "" {
		cookie.MaxAge = -1
	}
	return cookie
}

// GetSession answers GET /session.
func (s *server) GetSession(ctx context.Context, _ GetSessionRequestObject) (GetSessionResponseObject, error) {
	answer := GetSession200JSONResponse{Open: s.Open, SignedIn: s.Open, Provider: s.provider()}
	if s.Open {
		return answer, nil
	}
	err := callOf(ctx).holds(ctx)
	if answer.SignedIn = err == nil; answer.SignedIn {
		return answer, nil
	}
	if statusOfHTTP(err) != http.StatusUnauthorized {
		return nil, err
	}
	if answer.SetupNeeded, err = s.Authenticator.Store.SetUpNeeded(ctx); err != nil {
		return nil, notChecked(fmt.Errorf("look for administrators: %w", err))
	}
	return answer, nil
}

// CreateSession answers POST /session.
func (s *server) CreateSession(ctx context.Context, req CreateSessionRequestObject) (CreateSessionResponseObject, error) {
	entry, err := s.Authenticator.SignIn(ctx, callOf(ctx).from, req.Body.Email, req.Body.Password)
	if errors.Is(err, access.ErrRefused) {
		return nil, unauthorized("The e-mail address or the password is wrong; correct them, or ask an administrator for a sign-in link")
	}
	signedIn, err := s.signedIn(ctx, entry, err)
	return CreateSession200JSONResponse{signedIn}, err
}

// displayFor is how long a browser keeps the token of a wall screen. The token itself may expire
// earlier.
const displayFor = 400 * 24 * time.Hour

// BeginDisplay answers POST /session/display.
func (s *server) BeginDisplay(ctx context.Context, req BeginDisplayRequestObject) (BeginDisplayResponseObject, error) {
	secret := req.Body.Token
	if s.Authenticator == nil || !access.PlausibleToken(secret) {
		return nil, unauthorized("Must be a token, which begins with " + access.TokenPrefix)
	}
	// A link sent by somebody else must not replace a person's session.
	this := callOf(ctx)
	if this.secret != "" && !access.PlausibleToken(this.secret) && this.holds(ctx) == nil {
		return nil, fault.New(fault.Conflict, "this browser is signed in; sign out before you use the token of a wall screen")
	}
	if _, err := s.display(ctx, secret); err != nil {
		return nil, err
	}
	cookie := s.sessionCookie(secret, s.Now().Add(displayFor))
	return BeginDisplay204Response{Headers: BeginDisplay204ResponseHeaders{SetCookie: cookie.String()}}, nil
}

// RedeemLink answers POST /session/link.
func (s *server) RedeemLink(ctx context.Context, req RedeemLinkRequestObject) (RedeemLinkResponseObject, error) {
	entry, err := s.Authenticator.Redeem(ctx, callOf(ctx).from, req.Body.Secret)
	if errors.Is(err, access.ErrRefused) {
		return nil, unauthorized("This link has already been used, or has expired; ask for another one")
	}
	signedIn, err := s.signedIn(ctx, entry, err)
	return RedeemLink200JSONResponse{signedIn}, err
}

// SetUp answers POST /setup.
func (s *server) SetUp(ctx context.Context, req SetUpRequestObject) (SetUpResponseObject, error) {
	b := req.Body
	fields := append(userFaults(b.Email, b.Name, access.Admin), access.CheckPassword("password", b.Password, b.Email)...)
	if err := fault.InvalidFields("the administrator", fields); err != nil {
		return nil, err
	}
	entry, err := s.Authenticator.SetUp(ctx, callOf(ctx).from, b.Code, b.Password, access.NewAccount{TenantID: s.Tenant, Email: b.Email, Name: b.Name})
	if errors.Is(err, access.ErrRefused) {
		return nil, invalidField("code", "refused", "Not a valid code; use the newest one in Tocsin's log")
	}
	signedIn, err := s.signedIn(ctx, entry, err)
	return SetUp200JSONResponse{signedIn}, err
}

// ChangePassword answers PUT /me/password.
func (s *server) ChangePassword(ctx context.Context, req ChangePasswordRequestObject) (ChangePasswordResponseObject, error) {
	who := identityOf(ctx)
	if who.Session == nil {
		return nil, fault.New(fault.Conflict, "this needs a session; tokens and open access have no password: sign in first")
	}
	account := who.Session.Account
	if account.Issuer != "" && !account.HasPassword {
		return nil, fault.New(fault.Conflict, "you sign in at %s; only an administrator can give you a password as well", account.Issuer)
	}
	if err := fault.InvalidFields("the password", access.CheckPassword("newPassword", req.Body.NewPassword, account.Email)); err != nil {
		return nil, err
	}
	entry, err := s.Authenticator.ChangePassword(ctx, callOf(ctx).from, account, req.Body.CurrentPassword, req.Body.NewPassword)
	if errors.Is(err, access.ErrRefused) {
		return nil, invalidField("currentPassword", "refused", "This is not your password; enter the present one")
	}
	signedIn, err := s.signedIn(ctx, entry, err)
	return ChangePassword200JSONResponse{signedIn}, err
}

// DeleteSession answers DELETE /session.
func (s *server) DeleteSession(ctx context.Context, _ DeleteSessionRequestObject) (DeleteSessionResponseObject, error) {
	if err := s.signOut(ctx); err != nil {
		return nil, err
	}
	return DeleteSession204Response{Headers: DeleteSession204ResponseHeaders{SetCookie: s.sessionCookie("", s.Now()).String()}}, nil
}

// signOut ends the session that the browser sent, on behalf of its user.
func (s *server) signOut(ctx context.Context) error {
	this := callOf(ctx)
	if this.secret == "" || s.Authenticator == nil {
		return nil
	}
	session, err := s.Authenticator.Session(ctx, this.secret)
	if errors.Is(err, access.ErrRefused) {
		return nil
	}
	if err != nil {
		return notChecked(fmt.Errorf("read session: %w", err))
	}
	who := Identity{Tenant: session.Account.TenantID, Actor: session.Account.Email, Kind: kindUser, ID: session.Account.ID, Session: &session}
	from := this.from
	from.Operation, from.ObjectKind, from.ObjectID = "deleteSession", "session", session.ID.String()
	if err := s.Authenticator.SignOut(access.As(ctx, who.acting(from)), this.secret); err != nil {
		return notChecked(fmt.Errorf("sign out: %w", err))
	}
	return nil
}

// signedIn answers a person who has signed in, and ends the previous session.
func (s *server) signedIn(ctx context.Context, entry access.Entry, err error) (SignedInJSONResponse, error) {
	if err != nil {
		return SignedInJSONResponse{}, notChecked(fmt.Errorf("sign in: %w", err))
	}
	if err := s.signOut(ctx); err != nil {
		return SignedInJSONResponse{}, err
	}
	a := &entry.Session.Account
	who := Identity{Tenant: a.TenantID, Actor: a.Email, Role: a.Role, Kind: kindUser, ID: a.ID, Session: &entry.Session}
	return SignedInJSONResponse{
		Body: meAnswer(&who), Headers: SignedInResponseHeaders{SetCookie: s.sessionCookie(entry.Secret, entry.Session.ExpiresAt).String()},
	}, nil
}

// GetMe answers GET /me.
func (s *server) GetMe(ctx context.Context, _ GetMeRequestObject) (GetMeResponseObject, error) {
	who := identityOf(ctx)
	return GetMe200JSONResponse(meAnswer(&who)), nil
}

func meAnswer(who *Identity) Me {
	me := Me{Kind: MeKind(who.Kind), Name: who.Actor, Role: who.Role, Tenant: who.Tenant}
	if who.ID != uuid.Nil {
		me.ID = &who.ID
	}
	if who.Session != nil {
		a := &who.Session.Account
		me.Name = a.Name
		me.Email, me.HasPassword, me.Issuer, me.SessionExpiresAt = &a.Email, &a.HasPassword, optional(a.Issuer), utc(&who.Session.ExpiresAt)
	}
	return me
}
