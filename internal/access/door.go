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

// Store keeps what a [Door] needs. Errors but [ErrRefused], [*ThrottledError]
// and faults are internal. Instants are of the store's clock.
type Store interface {
	Attempts
	Sessions
	Entrances
	Beginning
	Purger
}

// Attempts counts attempts to sign in.
type Attempts interface {
	// CountAttempt counts an attempt by every subject, or returns a
	// [*ThrottledError] and counts nothing.
	CountAttempt(ctx context.Context, subjects ...Subject) error
	// TakeBack forgets what was counted by the first subject, and one attempt of
	// each other one.
	TakeBack(ctx context.Context, subjects ...Subject) error
}

// Sessions keeps who is signed in.
type Sessions interface {
	// Open begins a session, or returns [ErrRefused] when the account is
	// disabled, gone, or has another password than the one that was verified.
	Open(ctx context.Context, o Opening) (Session, error)
	// Session returns the session if it is neither over nor idle for longer than idle, and if its
	// account is not disabled; else [ErrRefused].
	Session(ctx context.Context, secret Hash, idle time.Duration) (Session, error)
	// Close ends a session. One that there is not is ended already.
	Close(ctx context.Context, secret Hash) error
	// Token returns a token that has not expired, else [ErrRefused].
	Token(ctx context.Context, secret Hash) (Token, error)
}

// Entrances are what people come in through.
type Entrances interface {
	// Credentials returns the account of an e-mail address and the hash of its
	// password; both are zero where there is none.
	Credentials(ctx context.Context, email string) (Account, string, error)
	// Redeem uses a link up, or returns [ErrRefused].
	Redeem(ctx context.Context, secret Hash) (Account, error)
	// SetPassword sets a password and ends every session and link of the account.
	SetPassword(ctx context.Context, account uuid.UUID, hash string) error
}

// Beginning is what happens while there is no administrator; one who is disabled
// is none.
type Beginning interface {
	// SetUpNeeded reports whether there is no administrator.
	SetUpNeeded(ctx context.Context) (bool, error)
	// SetUp makes the first administrator. It returns [ErrRefused] when the code
	// is not a valid one, and a fault when there is an administrator already.
	SetUp(ctx context.Context, code Hash, first NewAccount) (Account, error)
}

// Purger removes what is over.
type Purger interface {
	// Purge removes sessions, links, codes and counts that are over, and entries
	// of the audit log that are older than the retention; 0 keeps them all.
	Purge(ctx context.Context, idle, auditRetention time.Duration) error
}

// NewAccount is an account that is to be made.
type NewAccount struct {
	TenantID, Email, Name string
	Role                  Role
	// PasswordHash is empty where no password is set.
	PasswordHash string
	// Issuer and Subject are empty for who does not come from a provider.
	Issuer, Subject string
	// Groups are those that the provider says the person is in.
	Groups []string
}

// Opening is a session that is to begin.
type Opening struct {
	Account uuid.UUID
	Secret  Hash
	Address string
	// Lifetime bounds the session, however much it is used.
	Lifetime time.Duration
	// Verified is the hash of the password that was shown, empty where none was.
	// Rehashed replaces it where it is not empty.
	Verified, Rehashed string
}

// Entry is a session that has begun. Secret is what the browser keeps.
type Entry struct {
	Session Session
	Secret  string
}

// DoorOptions say how people come in.
type DoorOptions struct {
	Store  Store
	Hasher *Hasher
	// Idle and Lifetime bound a session: 12 hours without a request, and 7 days,
	// by default.
	Idle, Lifetime time.Duration
	Logger         *slog.Logger
}

// Door lets people in. It is safe for concurrent use.
type Door struct{ DoorOptions }

// NewDoor returns a door.
func NewDoor(o DoorOptions) *Door {
	if o.Idle == 0 {
		o.Idle = 12 * time.Hour
	}
	if o.Lifetime == 0 {
		o.Lifetime = 7 * 24 * time.Hour
	}
	return &Door{o}
}

// SignIn begins a session if the password of the account is right. An unknown account gets the same
// answer as a wrong password, and after the same time. from says where the request comes from.
func (d *Door) SignIn(ctx context.Context, from Actor, email, password string) (Entry, error) {
	subjects := []Subject{AccountSubject(email), AddressSubject(from.Address)}
	if err := d.Store.CountAttempt(ctx, subjects...); err != nil {
		return Entry{}, err
	}
	var account Account
	var hash string
	var err error
	// A text that is no address belongs to no account, and a store may not even be able to look for
	// it.
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
func (d *Door) Redeem(ctx context.Context, from Actor, secret string) (Entry, error) {
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
func (d *Door) SetUp(ctx context.Context, from Actor, code, password string, first NewAccount) (Entry, error) {
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

// Admit begins a session for an account that somebody else vouches for.
func (d *Door) Admit(ctx context.Context, from Actor, account Account, via string) (Entry, error) {
	return d.open(ctx, from.of(account, via), account.ID, "", "")
}

// ChangePassword sets an account's password, ends all of its sessions, and
// begins another one. The present password is asked for where there is one.
func (d *Door) ChangePassword(ctx context.Context, from Actor, account Account, present, password string) (Entry, error) {
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

func (d *Door) open(ctx context.Context, as Actor, account uuid.UUID, verified, rehashed string) (Entry, error) {
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
func (d *Door) Session(ctx context.Context, secret string) (Session, error) {
	if !PlausibleSecret(secret) {
		return Session{}, ErrRefused
	}
	return d.Store.Session(ctx, HashOf(secret), d.Idle)
}

// Token returns the token of a secret, or [ErrRefused].
func (d *Door) Token(ctx context.Context, secret string) (Token, error) {
	if !PlausibleToken(secret) {
		return Token{}, ErrRefused
	}
	return d.Store.Token(ctx, HashOf(secret))
}

// SignOut ends the session of a secret.
func (d *Door) SignOut(ctx context.Context, secret string) error {
	if !PlausibleSecret(secret) {
		return nil
	}
	return d.Store.Close(ctx, HashOf(secret))
}

// Expired secrets let nobody in, so that their removal can wait until a replica has started.
const (
	firstPurge = time.Minute
	purgeEvery = 10 * time.Minute
)

// Purge removes what is over until ctx ends, first after a minute, then every ten.
func (d *Door) Purge(ctx context.Context, auditRetention time.Duration) {
	pause := time.NewTimer(firstPurge)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		if err := d.Store.Purge(ctx, d.Idle, auditRetention); err != nil && ctx.Err() == nil {
			d.Logger.WarnContext(ctx, "expired sessions and tokens not removed; this is tried again", slog.Any("error", err))
		}
		pause.Reset(purgeEvery)
	}
}

// of completes a with who turned out to act.
func (a Actor) of(account Account, via string) Actor {
	a.Tenant, a.Kind, a.ID, a.Name, a.Via = account.TenantID, "user", account.ID.String(), account.Email, via
	return a
}

// CheckEmail reports whether text can be an e-mail address: it is what people
// sign in with, and nothing is sent there.
func CheckEmail(text string) error {
	if !plausibleEmail(text) {
		return fmt.Errorf("%q is not an e-mail address", text)
	}
	return nil
}
