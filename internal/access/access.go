// Package access decides who may do what.
//
// A person has an [Account] in one tenant and signs in with a password, with a one-time link, or at
// an OpenID Connect provider. From then on a [Session] identifies the person. A program carries a
// token. Both are secrets of 256 random bits, and the database keeps only their SHA-256. A reader
// of the database cannot use them, and a lookup by that hash needs no comparison whose duration
// could reveal something. Accounts and tokens have one role each. Roles are ranks: each role may do
// everything that lower roles may.
//
//	password ──┐
//	link ──────┼─▶ Authenticator ─▶ session ─┐
//	OIDC ──────┘                    ├─▶ who: tenant, role, name
//	                       token ───┘
//
// The database is authoritative, and is asked for each request: if an account is disabled or a
// token is revoked, the next request is refused, on every replica. Setting a password or disabling
// an account ends the sessions of the account in the same transaction.
//
// Attempts to sign in are counted before the password is checked, so that many simultaneous
// attempts cannot outrun the count; a success takes its count back. A process that dies in between
// leaves one attempt too many, which costs a moment. Unknown accounts are counted and hashed like
// known ones.
//
// While there is no account at all, the log shows a code. With it, a person can create the first
// administrator, once.
//
// Changes are recorded in the audit log: the [Actor] travels in the context, and the store writes
// it in the transaction of the change.
package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Role is what a person or a program may do. Each role may do what the roles before it may.
type Role string

// The roles, lowest first.
const (
	// Viewer may read.
	Viewer Role = "viewer"
	// Operator may also act on alerts and deliveries.
	Operator Role = "operator"
	// Editor may also write rules and webhooks.
	Editor Role = "editor"
	// Admin may also manage users and tokens.
	Admin Role = "admin"
)

// Anyone marks what needs no sign-in. Nobody has this role.
const Anyone Role = "anyone"

// Roles returns the roles, lowest first.
func Roles() []Role { return []Role{Viewer, Operator, Editor, Admin} }

// ParseRole parses a role.
func ParseRole(text string) (Role, error) {
	if r := Role(text); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", fmt.Errorf("unknown role %q; it must be viewer, operator, editor or admin", text)
}

// Allows reports whether r may do what requires a role. An unknown role only allows what [Anyone]
// may do, and an unknown requirement is never met.
func (r Role) Allows(need Role) bool {
	if need == Anyone {
		return true
	}
	wanted := slices.Index(Roles(), need)
	return wanted >= 0 && slices.Index(Roles(), r) >= wanted
}

// Account is a person who may sign in.
type Account struct {
	ID       uuid.UUID
	TenantID string
	Email    string
	// Name is the name of the person in alerts.
	Name     string
	Role     Role
	Disabled bool
	// HasPassword says whether a password has been set.
	HasPassword bool
	// Issuer and Subject identify the person at an OpenID Connect provider; both are empty if that
	// is unknown.
	Issuer, Subject string
	// SignedInAt is the time of the last sign-in; nil means never.
	SignedInAt           *time.Time
	Version              int64
	CreatedAt, UpdatedAt time.Time
}

// Session is a person who is signed in.
type Session struct {
	ID        uuid.UUID
	Account   Account
	ExpiresAt time.Time
}

// Token is a token of a program.
type Token struct {
	ID       uuid.UUID
	TenantID string
	Name     string
	Role     Role
	// Hint is the end of the secret.
	Hint      string
	CreatedBy string
	CreatedAt time.Time
	// ExpiresAt is nil for a token that is valid until it is revoked.
	ExpiresAt *time.Time
	// UsedAt is the last use, to about a minute; nil means never.
	UsedAt *time.Time
}

// Actor is a person or a program that acts, as the audit log shows it.
type Actor struct {
	Tenant string `json:"tenant"`
	// Kind is "user", "token" or "program".
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	// Name is the e-mail address of a person, or the name of a program.
	Name string `json:"name"`
	// Via says how the actor is known: "session", "token", "link", "password",
	// "set-up", "oidc", "command" or "open". ViaID names the session.
	Via   string `json:"via"`
	ViaID string `json:"viaId,omitempty"`
	// Address is where the request came from.
	Address   string `json:"address,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	// Operation is the operation of the API; empty if there is none. ObjectKind and ObjectID are
	// the object of the operation, as far as its path shows.
	Operation  string `json:"operation,omitempty"`
	ObjectKind string `json:"objectKind,omitempty"`
	ObjectID   string `json:"objectId,omitempty"`
}

type actorKey struct{}

// As returns a context in which a acts: the audit log records every transaction that a store makes
// with it on behalf of a.
func As(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, actorKey{}, a) }

// ActorOf returns the actor of a context, and whether there is one.
func ActorOf(ctx context.Context) (Actor, bool) {
	a, found := ctx.Value(actorKey{}).(Actor)
	return a, found
}

func plausibleEmail(text string) bool {
	local, host, found := strings.Cut(text, "@")
	clean := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '@' || r == utf8.RuneError
	}
	return found && local != "" && host != "" && len(text) <= 254 && !strings.ContainsFunc(local, clean) && !strings.ContainsFunc(host, clean)
}
