package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/access/oidc"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
)

// AccessMode says who is let in.
type AccessMode string

// The modes.
const (
	// AccessSignIn lets in people who have signed in, and requests with a token.
	AccessSignIn AccessMode = "sign-in"
	// AccessOpen lets everyone do everything. It is for trying out Tocsin, and is refused unless
	// the server listens on loopback.
	AccessOpen AccessMode = "open"
)

// AccessOptions say who may do what.
type AccessOptions struct {
	// Mode is [AccessSignIn] by default.
	Mode AccessMode
	// Tenant is the tenant of the first administrator, and of everybody if access is open;
	// "default" by default.
	Tenant string
	// AdminEmail and AdminPassword make the first administrator if there is no user yet.
	AdminEmail, AdminPassword string
	// PasswordCost is the cost of a password hash, [access.DefaultCost] by default.
	PasswordCost access.Cost
	// SessionIdle and SessionLifetime bound a session; see [access.AuthenticatorOptions].
	SessionIdle, SessionLifetime time.Duration
	// TrustedProxies are the proxies whose X-Forwarded-For is trusted to name the client.
	TrustedProxies []netip.Prefix
	// MetricsToken is required by /metrics; if it is empty, /metrics is open.
	MetricsToken string
	// OIDC lets people sign in through a provider; an empty issuer means that there is none.
	OIDC OIDCOptions
	// AuditRetention is how long the audit log is kept; 0 means for ever.
	AuditRetention time.Duration
}

// OIDCOptions describe an OpenID Connect provider; see [oidc.Options].
type OIDCOptions struct {
	Issuer, ClientID, ClientSecret, Name string

	Scopes      []string
	RoleClaim   string
	RoleMap     map[string]access.Role
	GroupsClaim string
	DefaultRole access.Role
	Tenant      string
}

// set reports whether an option other than the issuer is set; scopes have a default.
func (o *OIDCOptions) set() bool {
	return o.ClientID != "" || o.ClientSecret != "" || o.Name != "" || o.RoleClaim != "" || o.GroupsClaim != "" || len(o.RoleMap) > 0 || o.DefaultRole != "" || o.Tenant != ""
}

// openElsewhere returns the sign-in through a provider; nil if none is configured.
func (a *App) openElsewhere(db *postgres.DB, box *seal.Box) (*api.SingleSignOn, error) {
	o := a.options.Access.OIDC
	if o.Issuer == "" {
		return nil, nil //nolint:nilnil // most do without
	}
	provider, err := a.options.provider(box)
	if err != nil {
		return nil, err
	}
	provision := o.DefaultRole != "" || len(o.RoleMap) > 0
	return &api.SingleSignOn{Provider: provider, Name: provider.Name, Accounts: db.Accounts().Recognition(provision, o.RoleClaim != "", o.GroupsClaim != "")}, nil
}

// provider returns the one that the settings name, or what is wrong with them. It connects to nothing yet.
func (o *Options) provider(box *seal.Box) (*oidc.Provider, error) {
	const row = "oidc attempt"
	var redirect string
	if o.PublicURL != "" {
		redirect = strings.TrimSuffix(o.PublicURL, "/") + api.PathProviderCallback
	}
	of := o.Access.OIDC
	return oidc.New(oidc.Options{
		Issuer: of.Issuer, ClientID: of.ClientID, ClientSecret: of.ClientSecret, Name: of.Name, RedirectURL: redirect, Scopes: of.Scopes,
		RoleClaim: of.RoleClaim, RoleMap: of.RoleMap, GroupsClaim: of.GroupsClaim, DefaultRole: of.DefaultRole, Tenant: cmp.Or(of.Tenant, o.Access.Tenant),
		Seal: func(plain []byte) []byte { return box.Seal(plain, row) },
		Open: func(sealed []byte) ([]byte, error) { return box.Open(sealed, row) },
		Now:  o.Clock,
	})
}

// leastIdle is the least [AccessOptions.SessionIdle]: the use of a session is stored once a minute.
const leastIdle = 2 * time.Minute

// hashesAtOnce bounds the memory that sign-ins take: 32 MiB each.
const hashesAtOnce = 4

func (o *AccessOptions) applyDefaults() {
	if o.Mode == "" {
		o.Mode = AccessSignIn
	}
	if o.Tenant == "" {
		o.Tenant = "default"
	}
}

func (o *AccessOptions) validate() error {
	var errs []error
	if o.Mode != AccessSignIn && o.Mode != AccessOpen {
		errs = append(errs, fmt.Errorf("TOCSIN_ACCESS is %q; it must be sign-in or open", o.Mode))
	}
	if (o.AdminEmail == "") != (o.AdminPassword == "") {
		errs = append(errs, errors.New("only one of TOCSIN_ADMIN_EMAIL and TOCSIN_ADMIN_PASSWORD is set; set both, or none"))
	}
	if o.AdminEmail != "" {
		if err := access.CheckEmail(o.AdminEmail); err != nil {
			errs = append(errs, fmt.Errorf("TOCSIN_ADMIN_EMAIL: %w", err))
		}
		for _, f := range access.CheckPassword("TOCSIN_ADMIN_PASSWORD", o.AdminPassword, o.AdminEmail) {
			errs = append(errs, fmt.Errorf("%s: %s", f.Field, f.Message))
		}
	}
	if o.OIDC.Issuer == "" && o.OIDC.set() {
		errs = append(errs, errors.New("TOCSIN_OIDC_ISSUER is not set, but TOCSIN_OIDC_CLIENT_ID or another setting of a provider is; set both, or none"))
	}
	if o.SessionIdle < 0 || o.SessionLifetime < 0 || o.AuditRetention < 0 {
		errs = append(errs, errors.New("TOCSIN_SESSION_IDLE, TOCSIN_SESSION_LIFETIME and TOCSIN_AUDIT_RETENTION must not be negative"))
	}
	if o.SessionIdle > 0 && o.SessionIdle < leastIdle {
		errs = append(errs, fmt.Errorf("TOCSIN_SESSION_IDLE is %v; it must be at least %v", o.SessionIdle, leastIdle))
	}
	return errors.Join(errs...)
}

// checkOpen refuses open access where others than this machine's users come in.
func (o *Options) checkOpen(listen string, ip netip.Addr) error {
	if o.Access.Mode != AccessOpen {
		return nil
	}
	if !ip.Unmap().IsLoopback() {
		return fmt.Errorf("TOCSIN_ACCESS=open lets everyone do everything, so it needs a loopback address to listen on, such as 127.0.0.1:8080, not %s", listen)
	}
	if o.PublicURL == "" {
		return nil
	}
	public, err := url.Parse(o.PublicURL)
	if err != nil {
		return fmt.Errorf("public URL: %w", err)
	}
	if ip, err := netip.ParseAddr(public.Hostname()); public.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("TOCSIN_ACCESS=open lets everyone do everything, so the public URL must not be that of another host, %s", public.Host)
	}
	return nil
}

// openAuthenticator returns the authenticator. If there is no administrator, it also provides a way to create the first
// one.
func (a *App) openAuthenticator(ctx context.Context, db *postgres.DB) (*access.Authenticator, error) {
	o := a.options.Access
	logger := a.options.Logger.With(slog.String("part", "access"))
	store := db.Access()
	cost := o.PasswordCost
	if cost == (access.Cost{}) {
		cost = access.DefaultCost()
	}
	authenticator := access.NewAuthenticator(access.AuthenticatorOptions{
		Store: store, Hasher: access.NewHasher(cost, hashesAtOnce), Idle: o.SessionIdle, Lifetime: o.SessionLifetime, Logger: logger,
	})
	needed, err := store.SetUpNeeded(ctx)
	if err != nil || !needed {
		return authenticator, err
	}
	if o.AdminEmail != "" {
		if err := addFirst(ctx, authenticator, store, o, logger); err != nil {
			return nil, err
		}
	}
	if o.Mode == AccessOpen {
		return authenticator, nil
	}
	code := access.NewCode()
	added, err := store.AddSetUpCode(ctx, access.HashOf(code))
	if err != nil {
		return nil, err
	}
	if added {
		logger.WarnContext(ctx, "there is no administrator yet: open the web application and create the first one with this code; it is valid for a day, and each start prints a new one",
			slog.String("set_up_code", code))
	}
	return authenticator, nil
}

// addFirst makes the first user, an administrator. Of several replicas, one succeeds.
func addFirst(ctx context.Context, authenticator *access.Authenticator, store *postgres.Access, o AccessOptions, logger *slog.Logger) error {
	hash, err := authenticator.Hasher.Hash(ctx, o.AdminPassword)
	if err != nil {
		return err
	}
	ctx = access.As(ctx, access.Actor{Tenant: o.Tenant, Kind: "program", Name: "tocsin", Via: "set-up"})
	added, err := store.AddFirst(ctx, access.NewAccount{
		TenantID: o.Tenant, Email: o.AdminEmail, Name: o.AdminEmail, Role: access.Admin, PasswordHash: hash,
	})
	if added {
		logger.InfoContext(ctx, "first administrator created")
	}
	return err
}

// identify returns how requests are identified; nil means by the authenticator.
func (o *AccessOptions) identify() func(*http.Request) (api.Identity, error) {
	if o.Mode != AccessOpen {
		return nil
	}
	return api.Everybody(api.Identity{Tenant: o.Tenant, Actor: "operator"})
}
