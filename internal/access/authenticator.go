package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// ErrRefused says that what was shown lets nobody in. It never says why.
var ErrRefused = errors.New("the credentials are not valid")

// Store is what a [Authenticator] needs to store. Errors other than [ErrRefused], [*ThrottledError] and
// faults are internal. Instants are by the store's clock.
type Store interface {
	Attempts
	Sessions
	Entrances
	Beginning
	Purger
}

// Attempts counts attempts to sign in.
type Attempts interface {
	// CountAttempt counts an attempt by every subject. It may return a [*ThrottledError] instead,
	// and then counts nothing.
	CountAttempt(ctx context.Context, subjects ...Subject) error
	// TakeBack forgets all attempts of the first subject, and one attempt of each other subject.
	TakeBack(ctx context.Context, subjects ...Subject) error
}

// Sessions stores who is signed in.
type Sessions interface {
	// Open begins a session. It returns [ErrRefused] if the account is disabled or deleted, or has
	// another password than the verified one.
	Open(ctx context.Context, o Opening) (Session, error)
	// Session returns the session. It returns [ErrRefused] if the session is over or was idle for
	// longer than idle, or if its account is disabled.
	Session(ctx context.Context, secret Hash, idle time.Duration) (Session, error)
	// Close ends a session. If there is none, it succeeds.
	Close(ctx context.Context, secret Hash) error
	// Token returns a token that has not expired; otherwise [ErrRefused].
	Token(ctx context.Context, secret Hash) (Token, error)
}

// Entrances are the ways in which people sign in.
type Entrances interface {
	// Credentials returns the account with an e-mail address and the hash of its password; both are
	// zero if there is none.
	Credentials(ctx context.Context, email string) (Account, string, error)
	// Redeem uses up a link, or returns [ErrRefused].
	Redeem(ctx context.Context, secret Hash) (Account, error)
	// SetPassword sets a password and ends every session and link of the account.
	SetPassword(ctx context.Context, account uuid.UUID, hash string) error
}

// Beginning is for the time while there is no administrator; a disabled one does not count.
type Beginning interface {
	// SetUpNeeded reports whether there is no administrator.
	SetUpNeeded(ctx context.Context) (bool, error)
	// SetUp makes the first administrator. It returns [ErrRefused] if the code is not valid, and a
	// fault if there is an administrator already.
	SetUp(ctx context.Context, code Hash, first NewAccount) (Account, error)
}

// Purger removes what has expired.
type Purger interface {
	// Purge removes expired sessions, links, codes and counts, and entries of the audit log that
	// are older than the retention; 0 keeps all of them.
	Purge(ctx context.Context, idle, auditRetention time.Duration) error
}

// NewAccount is an account to be made.
type NewAccount struct {
	TenantID, Email, Name string
	Role                  Role
	// PasswordHash is empty if no password is set.
	PasswordHash string
	// Issuer and Subject are empty for a person who does not come from a provider.
	Issuer, Subject string
	// Groups are the person's groups at the provider.
	Groups []string
}

// Opening is a session to be begun.
type Opening struct {
	Account uuid.UUID
	Secret  Hash
	Address string
	// Lifetime bounds the session, however much it is used.
	Lifetime time.Duration
	// Verified is the hash that the entered password was verified against; empty if there was none.
	// Rehashed, if not empty, replaces it.
	Verified, Rehashed string
}

// Entry is a session that has begun. Secret is what the browser stores.
type Entry struct {
	Session Session
	Secret  string
}

// AuthenticatorOptions say how people sign in.
type AuthenticatorOptions struct {
	Store  Store
	Hasher *Hasher
	// Idle and Lifetime bound a session: 12 hours without a request, and 7 days,
	// by default.
	Idle, Lifetime time.Duration
	Logger         *slog.Logger
}

// Authenticator lets people and programs in. It is safe for concurrent use.
type Authenticator struct{ AuthenticatorOptions }

// NewAuthenticator returns a authenticator.
func NewAuthenticator(o AuthenticatorOptions) *Authenticator {
	if o.Idle == 0 {
		o.Idle = 12 * time.Hour
	}
	if o.Lifetime == 0 {
		o.Lifetime = 7 * 24 * time.Hour
	}
	return &Authenticator{o}
}

// SignIn begins a session if the password of the account is right. An unknown account gets the same
// answer as a wrong password, and after the same time. from says where the request comes from.
func (d *Authenticator) SignIn(ctx context.Context, from Actor, email, password string) (Entry, error) {
	subjects := []Subject{AccountSubject(email), AddressSubject(from.Address)}
	if err := d.Store.CountAttempt(ctx, subjects...); err != nil {
		return Entry{}, err
	}
	var account Account
	var hash string
	var err error
	// A text that is not an address belongs to no account, and a store may not even be able to
	// search for it.
	if CheckEmail(email) == nil {
		if account, hash, err = d.Store.Credentials(ctx, email); err != nil {
			return Entry{}, err
		}
	}
	fits, outdated, err := d.Hasher.Verify(ctx, hash, password)
	if err != nil {
		return Entry{}, err
	}
	if !fits || account.Disabled {
		d.Logger.WarnContext(ctx, "sign-in refused", slog.String("remote_ip", from.Address), slog.Bool("known", account.ID != uuid.Nil))
		return Entry{}, ErrRefused
	}
	var rehashed string
	if outdated {
		if rehashed, err = d.Hasher.Hash(ctx, password); err != nil {
			return Entry{}, err
		}
	}
	entry, err := d.open(ctx, from.of(account, "password"), account.ID, hash, rehashed)
	if err != nil {
		return Entry{}, err
	}
	return entry, d.Store.TakeBack(ctx, subjects...)
}

// Redeem begins a session for the holder of a one-time link.
func (d *Authenticator) Redeem(ctx context.Context, from Actor, secret string) (Entry, error) {
	if !PlausibleSecret(secret) {
		return Entry{}, ErrRefused
	}
	account, err := d.Store.Redeem(ctx, HashOf(secret))
	if err != nil {
		return Entry{}, err
	}
	return d.open(ctx, from.of(account, "link"), account.ID, "", "")
}

// SetUp makes the first administrator and begins a session.
func (d *Authenticator) SetUp(ctx context.Context, from Actor, code, password string, first NewAccount) (Entry, error) {
	address := AddressSubject(from.Address)
	if err := d.Store.CountAttempt(ctx, address); err != nil {
		return Entry{}, err
	}
	hash, err := d.Hasher.Hash(ctx, password)
	if err != nil {
		return Entry{}, err
	}
	first.Role, first.PasswordHash = Admin, hash
	as := from
	as.Tenant, as.Kind, as.Name, as.Via = first.TenantID, "user", first.Email, "set-up"
	account, err := d.Store.SetUp(As(ctx, as), HashOf(CleanCode(code)), first)
	if err != nil {
		return Entry{}, err
	}
	if err := d.Store.TakeBack(ctx, address); err != nil {
		return Entry{}, err
	}
	return d.open(ctx, from.of(account, "set-up"), account.ID, "", "")
}

// Admit begins a session for an account that an identity provider has confirmed.
func (d *Authenticator) Admit(ctx context.Context, from Actor, account Account, via string) (Entry, error) {
	return d.open(ctx, from.of(account, via), account.ID, "", "")
}

// ChangePassword sets an account's password, ends all of its sessions, and begins another one. If
// there is a password, the present one is required.
func (d *Authenticator) ChangePassword(ctx context.Context, from Actor, account Account, present, password string) (Entry, error) {
	if account.HasPassword {
		subject := AccountSubject(account.Email)
		if err := d.Store.CountAttempt(ctx, subject); err != nil {
			return Entry{}, err
		}
		_, hash, err := d.Store.Credentials(ctx, account.Email)
		if err != nil {
			return Entry{}, err
		}
		fits, _, err := d.Hasher.Verify(ctx, hash, present)
		if err != nil {
			return Entry{}, err
		}
		if !fits {
			return Entry{}, ErrRefused
		}
		if err := d.Store.TakeBack(ctx, subject); err != nil {
			return Entry{}, err
		}
	}
	hash, err := d.Hasher.Hash(ctx, password)
	if err != nil {
		return Entry{}, err
	}
	if err := d.Store.SetPassword(ctx, account.ID, hash); err != nil {
		return Entry{}, err
	}
	return d.open(ctx, from.of(account, "password"), account.ID, hash, "")
}

func (d *Authenticator) open(ctx context.Context, as Actor, account uuid.UUID, verified, rehashed string) (Entry, error) {
	secret := NewSecret()
	s, err := d.Store.Open(As(ctx, as), Opening{
		Account: account, Secret: HashOf(secret), Address: as.Address, Lifetime: d.Lifetime, Verified: verified, Rehashed: rehashed,
	})
	if err != nil {
		return Entry{}, err
	}
	return Entry{Session: s, Secret: secret}, nil
}

// Session returns the session of a secret, or [ErrRefused].
func (d *Authenticator) Session(ctx context.Context, secret string) (Session, error) {
	if !PlausibleSecret(secret) {
		return Session{}, ErrRefused
	}
	return d.Store.Session(ctx, HashOf(secret), d.Idle)
}

// Token returns the token of a secret, or [ErrRefused].
func (d *Authenticator) Token(ctx context.Context, secret string) (Token, error) {
	if !PlausibleToken(secret) {
		return Token{}, ErrRefused
	}
	return d.Store.Token(ctx, HashOf(secret))
}

// SignOut ends the session of a secret.
func (d *Authenticator) SignOut(ctx context.Context, secret string) error {
	if !PlausibleSecret(secret) {
		return nil
	}
	return d.Store.Close(ctx, HashOf(secret))
}

// Expired secrets are not accepted, so their removal can wait until a replica has started.
const (
	firstPurge = time.Minute
	purgeEvery = 10 * time.Minute
)

// Purge removes what has expired until ctx ends, first after a minute, then every ten.
func (d *Authenticator) Purge(ctx context.Context, auditRetention time.Duration) {
	pause := time.NewTimer(firstPurge)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		if err := d.Store.Purge(ctx, d.Idle, auditRetention); err != nil && ctx.Err() == nil {
			d.Logger.WarnContext(ctx, "expired sessions and tokens not removed; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		pause.Reset(purgeEvery)
	}
}

// of completes a with the account that acts.
func (a Actor) of(account Account, via string) Actor {
	a.Tenant, a.Kind, a.ID, a.Name, a.Via = account.TenantID, "user", account.ID.String(), account.Email, via
	return a
}

// CheckEmail reports whether text can be an e-mail address. People sign in with it; nothing is sent
// there.
func CheckEmail(text string) error {
	if !plausibleEmail(text) {
		return fmt.Errorf("%q is not an e-mail address", text)
	}
	return nil
}
