// Package oidc lets people sign in through an OpenID Connect provider.
//
// It uses the authorization code flow with PKCE. The data of one attempt (state, nonce, verifier,
// where to return) is in a sealed cookie of the browser that began it. So no other browser can
// complete the attempt, no replica has to remember it, and it expires after ten minutes.
//
// The provider is authoritative for identities: issuer and subject. An e-mail address is only an
// attribute of a person, and never merges two people: an existing account with the same address is
// not taken over. If a claim gives the role, it is applied at each sign-in.
//
// The provider is not contacted before somebody signs in. A provider that cannot be reached does
// not keep other people out.
package oidc

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"tocsin/internal/access"
)

// Options describe a provider. Issuer, ClientID, RedirectURL, Seal, Open and Now
// are required.
type Options struct {
	Issuer, ClientID, ClientSecret string
	// Name is the text of the button; the issuer's host by default.
	Name string
	// RedirectURL is where the provider sends people back to.
	RedirectURL string
	// Scopes are requested in addition to "openid"; "profile" and "email" by default.
	Scopes []string
	// RoleClaim names the claim with the role; dots separate the names of nested claims. Without
	// it, everybody gets DefaultRole once, and administrators may change it.
	RoleClaim string
	// RoleMap gives the role for a value of the claim. The highest role counts.
	RoleMap map[string]access.Role
	// GroupsClaim names the claim with the groups of people, in the same way; empty means that
	// there are no groups.
	GroupsClaim string
	// DefaultRole is the role of people to whom the claim gives none. If it is empty, people
	// without an account, or without a role by the claim, are not admitted.
	DefaultRole access.Role
	// Tenant is the tenant of new accounts.
	Tenant string
	// Seal and Open keep the cookie from being read or made by others.
	Seal func(plain []byte) []byte
	Open func(sealed []byte) ([]byte, error)
	Now  func() time.Time
}

// Bounds of an attempt.
const (
	attemptLifetime = 10 * time.Minute
	providerTimeout = 10 * time.Second
	maxReturn       = 2000
	// maxCookie is how long a cookie may be. Browsers drop one that has more than 4096 bytes with its
	// name.
	maxCookie = 4000
)

// Problem is why a person was not let in, as the page shows it.
type Problem string

// The problems.
const (
	// Expired means that the attempt is unknown to this browser, or too old.
	Expired Problem = "expired"
	// Cancelled means that, according to the provider, the person cancelled or is not allowed.
	Cancelled Problem = "cancelled"
	// Unusable means that the provider cannot be reached, or that its answer is invalid.
	Unusable Problem = "provider"
	// NotAdmitted means that the person has no account here, or no role.
	NotAdmitted Problem = "not-admitted"
)

// Error is a [Problem] with the details for the log.
type Error struct {
	Problem Problem
	Err     error
}

// Error returns the text for the log.
func (e *Error) Error() string { return fmt.Sprintf("sign in at provider: %s: %v", e.Problem, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Provider is an OpenID Connect provider. It is safe for concurrent use.
type Provider struct {
	Options

	client *http.Client
	mu     sync.Mutex
	// asked is what the provider is asked, or was if it answered; otherwise nil.
	asked *discovery
}

// discovery asks a provider for its addresses. The result is valid when done is closed.
type discovery struct {
	done  chan struct{}
	found *oidc.Provider
	err   error
}

// New returns a provider, or what is wrong with the options.
func New(o Options) (*Provider, error) {
	issuer, err := url.Parse(o.Issuer)
	if err != nil || issuer.Host == "" || issuer.Scheme != "https" && issuer.Scheme != "http" {
		return nil, fmt.Errorf("OpenID Connect: TOCSIN_OIDC_ISSUER %q must have the form https://host", o.Issuer)
	}
	if o.ClientID == "" {
		return nil, errors.New("OpenID Connect: set TOCSIN_OIDC_CLIENT_ID to Tocsin's client ID at the provider")
	}
	if o.RedirectURL == "" {
		return nil, errors.New("OpenID Connect: set TOCSIN_PUBLIC_URL; the provider redirects people to it")
	}
	if o.RoleClaim == "" && len(o.RoleMap) > 0 {
		return nil, errors.New("OpenID Connect: TOCSIN_OIDC_ROLE_MAP maps roles; set TOCSIN_OIDC_ROLE_CLAIM to the claim that gives them")
	}
	for value, role := range o.RoleMap {
		if _, err := access.ParseRole(string(role)); err != nil {
			return nil, fmt.Errorf("OpenID Connect: TOCSIN_OIDC_ROLE_MAP, %q: %w", value, err)
		}
	}
	if o.Name == "" {
		o.Name = issuer.Host
	}
	if len(o.Scopes) == 0 {
		o.Scopes = []string{"profile", "email"}
	}
	return &Provider{Options: o, client: &http.Client{Timeout: providerTimeout}}, nil
}

// attempt is the content of the cookie.
type attempt struct {
	State, Nonce, Verifier, Return string
	ExpiresAt                      time.Time
}

// Begin returns where to send the browser, and the cookie that it keeps until it comes back.
// returnTo is a path of the application; anything else is replaced by "/".
func (p *Provider) Begin(ctx context.Context, returnTo string) (target, cookie string, err error) {
	config, _, err := p.config(ctx)
	if err != nil {
		return "", "", err
	}
	a := attempt{
		State: access.NewSecret(), Nonce: access.NewSecret(), Verifier: oauth2.GenerateVerifier(),
		Return: CleanReturn(returnTo), ExpiresAt: p.Now().Add(attemptLifetime),
	}
	if cookie, err = p.sealed(&a); err == nil && len(cookie) > maxCookie {
		a.Return = "/"
		cookie, err = p.sealed(&a)
	}
	if err != nil {
		return "", "", err
	}
	return config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), cookie, nil
}

// sealed returns the cookie of an attempt. A path with many parameters has many characters that JSON
// for HTML writes with six bytes.
func (p *Provider) sealed(a *attempt) (string, error) {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(a); err != nil {
		return "", fmt.Errorf("encode attempt: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(p.Seal(plain.Bytes())), nil
}

// Finish returns the account of the person who comes back, and where to return to. Its arguments
// are the cookie of [Provider.Begin] and the query that the provider added. Its errors are
// [*Error].
func (p *Provider) Finish(ctx context.Context, cookie string, query url.Values) (access.NewAccount, string, error) {
	a, err := p.attemptOf(cookie, query.Get("state"))
	if err != nil {
		return access.NewAccount{}, "/", &Error{Expired, err}
	}
	if code := query.Get("error"); code != "" {
		return access.NewAccount{}, a.Return, &Error{Cancelled, fmt.Errorf("the provider answered %q: %q", code, query.Get("error_description"))}
	}
	who, err := p.redeem(ctx, a, query.Get("code"))
	if err != nil {
		return access.NewAccount{}, a.Return, err
	}
	return who, a.Return, nil
}

func (p *Provider) attemptOf(cookie, state string) (attempt, error) {
	var a attempt
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil || cookie == "" {
		return a, errors.New("this browser did not start the sign-in")
	}
	plain, err := p.Open(sealed)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(plain, &a); err != nil {
		return a, fmt.Errorf("decode attempt: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(a.State), []byte(state)) != 1 || a.State == "" {
		return a, errors.New("the state belongs to another attempt")
	}
	if !p.Now().Before(a.ExpiresAt) {
		return a, errors.New("the attempt took too long")
	}
	return a, nil
}

// redeem asks the provider who the person is.
func (p *Provider) redeem(ctx context.Context, a attempt, code string) (access.NewAccount, error) {
	config, provider, err := p.config(ctx)
	if err != nil {
		return access.NewAccount{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	answer, err := config.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return access.NewAccount{}, &Error{Unusable, fmt.Errorf("exchange code: %w", err)}
	}
	raw, ok := answer.Extra("id_token").(string)
	if !ok {
		return access.NewAccount{}, &Error{Unusable, errors.New("the answer has no id_token")}
	}
	token, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID, Now: p.Now}).Verify(ctx, raw)
	if err != nil {
		return access.NewAccount{}, &Error{Unusable, fmt.Errorf("verify id_token: %w", err)}
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(a.Nonce)) != 1 {
		return access.NewAccount{}, &Error{Unusable, errors.New("the nonce belongs to another attempt")}
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return access.NewAccount{}, &Error{Unusable, fmt.Errorf("read claims: %w", err)}
	}
	return p.account(token.Issuer, token.Subject, claims)
}

// account converts claims to an account.
func (p *Provider) account(issuer, subject string, claims map[string]any) (access.NewAccount, error) {
	text := func(name string) string { s, _ := claims[name].(string); return s }
	who := access.NewAccount{TenantID: p.Tenant, Issuer: issuer, Subject: subject, Email: text("email"), Name: text("name"), Groups: p.groups(claims)}
	if access.CheckEmail(who.Email) != nil {
		return who, &Error{Unusable, errors.New("the id_token has no e-mail address; add the scope that provides one to TOCSIN_OIDC_SCOPES")}
	}
	if subject == "" || len(subject) > maxSubjectBytes || strings.ContainsRune(subject, 0) {
		return who, &Error{Unusable, fmt.Errorf("the id_token has no subject of 1 to %d bytes; let the provider give one", maxSubjectBytes)}
	}
	if strings.TrimSpace(who.Name) == "" || len(who.Name) > maxPersonBytes || strings.ContainsFunc(who.Name, unicode.IsControl) {
		who.Name = who.Email
	}
	if who.Role = p.role(claims); who.Role == "" {
		return who, &Error{NotAdmitted, fmt.Errorf("no value of the claim %q maps to a role; give the person one at the provider, add one to TOCSIN_OIDC_ROLE_MAP, or set TOCSIN_OIDC_DEFAULT_ROLE", p.RoleClaim)}
	}
	return who, nil
}

// valuesOf returns the texts of a claim, which is one text or a list of them.
func valuesOf(claims map[string]any, claim string) []string {
	var value any = claims
	for part := range strings.SplitSeq(claim, ".") {
		object, _ := value.(map[string]any)
		value = object[part]
	}
	values, several := value.([]any)
	if !several {
		values = []any{value}
	}
	var texts []string
	for _, v := range values {
		if text, _ := v.(string); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// Bounds of what is stored about a person.
const (
	maxSubjectBytes = 1000
	maxPersonBytes  = 200
	maxGroups       = 1000
	maxGroupBytes   = 200
)

// groups returns the groups in the claim. Texts that Postgres cannot store are left out.
func (p *Provider) groups(claims map[string]any) []string {
	if p.GroupsClaim == "" {
		return nil
	}
	var kept []string
	for _, name := range valuesOf(claims, p.GroupsClaim) {
		if len(name) <= maxGroupBytes && utf8.ValidString(name) && !strings.ContainsRune(name, 0) && len(kept) < maxGroups {
			kept = append(kept, name)
		}
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// role returns the highest role in the claim, or the default role.
func (p *Provider) role(claims map[string]any) access.Role {
	given := p.DefaultRole
	for _, name := range valuesOf(claims, p.RoleClaim) {
		if role, mapped := p.RoleMap[name]; mapped && (given == "" || role.Allows(given)) {
			given = role
		}
	}
	return given
}

// config asks the provider for its addresses, until it has answered once. People who sign in meanwhile wait for the same
// answer.
func (p *Provider) config(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	d := p.discovery(ctx)
	select {
	case <-d.done:
	case <-ctx.Done():
		return nil, nil, &Error{Unusable, fmt.Errorf("read the OpenID configuration of %s: %w", p.Issuer, ctx.Err())}
	}
	if d.err != nil {
		return nil, nil, &Error{Unusable, fmt.Errorf("read the OpenID configuration of %s: %w", p.Issuer, d.err)}
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: p.RedirectURL, Endpoint: d.found.Endpoint(),
		Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...),
	}, d.found, nil
}

// discovery returns the discovery that is under way or has succeeded, or begins one. It ends within providerTimeout.
func (p *Provider) discovery(ctx context.Context) *discovery {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked != nil {
		return p.asked
	}
	d := &discovery{done: make(chan struct{})}
	p.asked = d
	go func() {
		defer close(d.done)
		if d.found, d.err = oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.Issuer); d.err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.asked = nil
		}
	}()
	return d
}

// CleanReturn returns a path of the application that may be returned to; "/" for anything that
// could lead elsewhere.
func CleanReturn(path string) string {
	u, err := url.Parse(path)
	if err != nil || len(path) > maxReturn || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\t\r\n") {
		return "/"
	}
	return path
}
