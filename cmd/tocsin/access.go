package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"tocsin/internal/access"
	"tocsin/internal/app"
)

// accessFlags say who may do what.
type accessFlags struct {
	Access            app.AccessMode `help:"Who has access: sign-in (people who sign in, programs with a token) or open (everyone, only on a loopback address)." enum:"sign-in,open" default:"sign-in" env:"TOCSIN_ACCESS"`
	Tenant            string         `help:"Tenant of the first administrator." default:"default" env:"TOCSIN_TENANT"`
	AdminEmail        string         `help:"E-mail address of the first administrator, who is created while there is no user." env:"TOCSIN_ADMIN_EMAIL" placeholder:"EMAIL"`
	AdminPassword     string         `help:"The first administrator's password." env:"TOCSIN_ADMIN_PASSWORD" placeholder:"PASSWORD"`
	AdminPasswordFile string         `help:"File that contains the first administrator's password." env:"TOCSIN_ADMIN_PASSWORD_FILE" placeholder:"FILE"`
	SessionIdle       time.Duration  `help:"A session ends when it has not been used for this time." default:"12h" env:"TOCSIN_SESSION_IDLE"`
	SessionLifetime   time.Duration  `help:"A session ends after this time, even if it is in use." default:"168h" env:"TOCSIN_SESSION_LIFETIME"`
	TrustedProxies    []network      `help:"Proxies whose X-Forwarded-For header is trusted, such as 10.0.0.0/8." env:"TOCSIN_TRUSTED_PROXIES" placeholder:"CIDR,…"`
	MetricsToken      string         `help:"Token that requests to /metrics must send as Authorization: Bearer …; without it, /metrics is open." env:"TOCSIN_METRICS_TOKEN" placeholder:"TOKEN"`
	MetricsTokenFile  string         `help:"File that contains the token of /metrics." env:"TOCSIN_METRICS_TOKEN_FILE" placeholder:"FILE"`
	OIDC              oidcFlags      `embed:"" prefix:"oidc-"`
	AuditRetention    time.Duration  `help:"How long the audit log is kept; 0 means forever." default:"0" env:"TOCSIN_AUDIT_RETENTION"`
}

// oidcFlags describe an OpenID Connect provider.
type oidcFlags struct {
	Issuer           string                 `help:"OpenID Connect provider where people can sign in, such as https://login.example.com." env:"TOCSIN_OIDC_ISSUER" placeholder:"URL"`
	ClientID         string                 `help:"Tocsin's client ID at the provider." env:"TOCSIN_OIDC_CLIENT_ID" placeholder:"ID"`
	ClientSecret     string                 `help:"Tocsin's client secret at the provider." env:"TOCSIN_OIDC_CLIENT_SECRET" placeholder:"SECRET"`
	ClientSecretFile string                 `help:"File that contains Tocsin's client secret at the provider." env:"TOCSIN_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE"`
	Name             string                 `help:"Name of the provider on the sign-in button; by default its host." env:"TOCSIN_OIDC_NAME" placeholder:"NAME"`
	Scopes           []string               `help:"Scopes to request in addition to openid." default:"profile,email" env:"TOCSIN_OIDC_SCOPES"`
	RoleClaim        string                 `help:"Claim that gives the role at each sign-in, such as groups or realm_access.roles." env:"TOCSIN_OIDC_ROLE_CLAIM" placeholder:"CLAIM"`
	RoleMap          map[string]access.Role `help:"Role for each value of the claim, such as ops=operator;platform=admin. The highest role counts." env:"TOCSIN_OIDC_ROLE_MAP" placeholder:"VALUE=ROLE;…"`
	GroupsClaim      string                 `help:"Claim that gives the groups of a person at each sign-in, such as groups. Groups decide who is in which team." env:"TOCSIN_OIDC_GROUPS_CLAIM" placeholder:"CLAIM"`
	DefaultRole      access.Role            `help:"Role of people to whom the claim gives none; without it, they cannot sign in." enum:",viewer,operator,editor,admin" default:"" env:"TOCSIN_OIDC_DEFAULT_ROLE"`
	Tenant           string                 `help:"Tenant of people who sign in at the provider; by default that of the first administrator." env:"TOCSIN_OIDC_TENANT" placeholder:"TENANT"`
}

func (f *oidcFlags) options() (app.OIDCOptions, error) {
	secret, err := secretOf("oidc-client-secret", f.ClientSecret, f.ClientSecretFile)
	return app.OIDCOptions{
		Issuer: f.Issuer, ClientID: f.ClientID, ClientSecret: secret, Name: f.Name, Scopes: f.Scopes,
		RoleClaim: f.RoleClaim, RoleMap: f.RoleMap, GroupsClaim: f.GroupsClaim, DefaultRole: f.DefaultRole, Tenant: f.Tenant,
	}, err
}

func (f *accessFlags) options() (app.AccessOptions, error) {
	password, err := secretOf("admin-password", f.AdminPassword, f.AdminPasswordFile)
	if err != nil {
		return app.AccessOptions{}, err
	}
	metrics, err := secretOf("metrics-token", f.MetricsToken, f.MetricsTokenFile)
	if err != nil {
		return app.AccessOptions{}, err
	}
	elsewhere, err := f.OIDC.options()
	if err != nil {
		return app.AccessOptions{}, err
	}
	return app.AccessOptions{
		OIDC: elsewhere,
		Mode: f.Access, Tenant: f.Tenant, AdminEmail: f.AdminEmail, AdminPassword: password,
		SessionIdle: f.SessionIdle, SessionLifetime: f.SessionLifetime, TrustedProxies: prefixes(f.TrustedProxies),
		MetricsToken: metrics, AuditRetention: f.AuditRetention,
	}, nil
}

// secretOf returns a secret that is given directly or in a file. The last line end of the file is
// ignored. A file without a secret is an error: it does not mean that there is none.
func secretOf(flag, value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	if value != "" {
		return "", fmt.Errorf("give either --%[1]s or --%[1]s-file, not both", flag)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--%s-file: %w", flag, err)
	}
	if strings.TrimSpace(string(content)) == "" {
		return "", fmt.Errorf("--%s-file: %s is empty; write the secret to it, or leave the setting out", flag, file)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

type users struct {
	Add         usersAdd         `cmd:"" help:"Add a user, and print a link with which the user can sign in once."`
	List        usersList        `cmd:"" help:"List the users of every tenant."`
	Link        usersLink        `cmd:"" help:"Print a link with which a user can sign in once. It is valid for a day."`
	SetPassword usersSetPassword `cmd:"" help:"Set a user's password, read from standard input, and end all sessions of the user."`
	Disable     usersDisable     `cmd:"" help:"Disable a user: end all sessions, and refuse to sign the user in."`
	Enable      usersEnable      `cmd:"" help:"Enable a user who was disabled."`
}

type usersAdd struct {
	database
	Email     string      `arg:"" help:"E-mail address with which the user signs in."`
	Name      string      `help:"Name of the user in alerts; by default the e-mail address."`
	Role      access.Role `help:"viewer, operator, editor or admin." enum:"viewer,operator,editor,admin" required:""`
	Tenant    string      `help:"Tenant of the user." default:"default" env:"TOCSIN_TENANT"`
	PublicURL string      `help:"URL at which people reach the server; the link begins with it." env:"TOCSIN_PUBLIC_URL" placeholder:"URL"`
}

// Run adds a user.
func (u *usersAdd) Run(ctx context.Context, out io.Writer) error {
	return app.WithUsers(ctx, u.PostgresURL, func(list *app.Users) error {
		if err := list.Add(ctx, access.NewAccount{TenantID: u.Tenant, Email: u.Email, Name: u.Name, Role: u.Role}); err != nil {
			return err
		}
		return printLink(ctx, out, list, u.Email, u.PublicURL)
	})
}

type usersLink struct {
	database
	Email     string `arg:""`
	PublicURL string `help:"URL at which people reach the server; the link begins with it." env:"TOCSIN_PUBLIC_URL" placeholder:"URL"`
}

// Run prints a link.
func (u *usersLink) Run(ctx context.Context, out io.Writer) error {
	return app.WithUsers(ctx, u.PostgresURL, func(list *app.Users) error { return printLink(ctx, out, list, u.Email, u.PublicURL) })
}

func printLink(ctx context.Context, out io.Writer, list *app.Users, email, public string) error {
	link, err := list.Link(ctx, email, public)
	if err != nil {
		return err
	}
	return writeLink(out, os.Stderr, link, public)
}

// writeLink writes a link. If the link is only a path, it also explains to the person how to
// complete it.
func writeLink(out, person io.Writer, link, public string) error {
	if _, err := fmt.Fprintln(out, link); err != nil || public != "" {
		return err
	}
	_, err := fmt.Fprintln(person, "Put the server's URL before it, as in http://127.0.0.1:8080/sign-in#…, or set TOCSIN_PUBLIC_URL to that URL.")
	return err
}

type usersList struct{ database }

// Run lists users.
func (u *usersList) Run(ctx context.Context, out io.Writer) error {
	return app.WithUsers(ctx, u.PostgresURL, func(list *app.Users) error {
		all, err := list.All(ctx)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		lines := []string{"EMAIL\tNAME\tTENANT\tROLE\tSIGN-IN\tLAST SIGN-IN"}
		for _, a := range all {
			lines = append(lines, userRow(a))
		}
		if _, err := fmt.Fprintln(table, strings.Join(lines, "\n")); err != nil {
			return err
		}
		return table.Flush()
	})
}

// userRow is the row of a user in the table.
func userRow(a access.Account) string {
	return strings.Join([]string{shown(a.Email), shown(a.Name), shown(a.TenantID), string(a.Role), howSignsIn(a), lastSignIn(a)}, "\t")
}

func howSignsIn(a access.Account) string {
	switch {
	case a.Disabled:
		return "disabled"
	case a.Issuer != "":
		return "provider"
	case a.HasPassword:
		return "password"
	}
	return "link"
}

func lastSignIn(a access.Account) string {
	if a.SignedInAt == nil {
		return "never"
	}
	return a.SignedInAt.UTC().Format(time.RFC3339)
}

type usersSetPassword struct {
	database
	Email string `arg:""`
}

// Run sets a password.
func (u *usersSetPassword) Run(ctx context.Context) error {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read password from standard input: %w", err)
	}
	return app.WithUsers(ctx, u.PostgresURL, func(list *app.Users) error {
		return list.SetPassword(ctx, u.Email, strings.TrimRight(line, "\r\n"))
	})
}

type usersDisable struct {
	database
	Email string `arg:""`
}

// Run disables a user.
func (u *usersDisable) Run(ctx context.Context) error {
	return app.WithUsers(ctx, u.PostgresURL, func(list *app.Users) error { return list.SetDisabled(ctx, u.Email, true) })
}

type usersEnable struct {
	database
	Email string `arg:""`
}

// Run enables a user.
func (u *usersEnable) Run(ctx context.Context) error {
	return app.WithUsers(ctx, u.PostgresURL, func(list *app.Users) error { return list.SetDisabled(ctx, u.Email, false) })
}
