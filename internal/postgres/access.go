package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// Access is the store of sessions, tokens, sign-in links and attempts to sign in.
type Access struct{ db *DB }

// Access returns the store of sessions, tokens, sign-in links and attempts to sign in.
func (db *DB) Access() *Access { return &Access{db} }

// CountAttempt counts an attempt by each subject. Call it before the attempt is made.
func (s *Access) CountAttempt(ctx context.Context, subjects ...access.Subject) error {
	by := make(map[access.Hash]access.Throttle, len(subjects))
	keys := make([][]byte, len(subjects))
	for i, subject := range subjects {
		by[subject.Key] = subject.Throttle
		keys[i] = subject.Key[:]
	}
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		if err := q.SignInFailureMake(ctx, keys); err != nil {
			return err
		}
		rows, err := q.SignInFailureLock(ctx, keys)
		if err != nil {
			return err
		}
		var wait time.Duration
		for _, row := range rows {
			wait = max(wait, by[access.Hash(row.Subject)].Wait(int(row.Failures), row.LastAt, row.At))
		}
		if wait > 0 {
			return &access.ThrottledError{Wait: wait}
		}
		for _, row := range rows {
			counted := by[access.Hash(row.Subject)].Counts(int(row.Failures), row.LastAt, row.At)
			if err := q.SignInFailureSet(ctx, pgq.SignInFailureSetParams{Subject: row.Subject, Failures: int32(counted)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("count attempt: %w", err)
	}
	return nil
}

// TakeBack forgets the first subject, and one attempt of each other subject.
func (s *Access) TakeBack(ctx context.Context, subjects ...access.Subject) error {
	for i, subject := range subjects {
		var err error
		if i == 0 && len(subjects) > 1 {
			err = s.db.queries.SignInFailureForget(ctx, subject.Key[:])
		} else {
			err = s.db.queries.SignInFailureTakeBack(ctx, subject.Key[:])
		}
		if err != nil {
			return fmt.Errorf("undo count of attempt: %w", err)
		}
	}
	return nil
}

// Credentials returns an account and the hash of its password.
func (s *Access) Credentials(ctx context.Context, email string) (access.Account, string, error) {
	row, err := s.db.queries.AccountByEmail(ctx, email)
	if errors.Is(err, pgx.ErrNoRows) {
		return access.Account{}, "", nil
	}
	if err != nil {
		return access.Account{}, "", fmt.Errorf("find account: %w", err)
	}
	if row.PasswordHash == nil {
		return accountOf(row), "", nil
	}
	return accountOf(row), *row.PasswordHash, nil
}

// Open begins a session. The lock on the account makes it wait for a transaction
// that disables the account or sets its password, and then see its effect.
func (s *Access) Open(ctx context.Context, o access.Opening) (access.Session, error) {
	session := access.Session{ID: uuid.Must(uuid.NewV7())}
	if actor, known := access.ActorOf(ctx); known {
		actor.ViaID, actor.ObjectKind, actor.ObjectID = session.ID.String(), "session", session.ID.String()
		ctx = access.As(ctx, actor)
	}
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		row, err := q.AccountLock(ctx, o.Account)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && (row.Disabled || o.Verified != "" && (row.PasswordHash == nil || *row.PasswordHash != o.Verified)) {
			return access.ErrRefused
		}
		if err != nil {
			return err
		}
		signedIn := pgq.AccountSignedInParams{AccountID: o.Account}
		if o.Rehashed != "" {
			signedIn.Rehashed = &o.Rehashed
		}
		if err := q.AccountSignedIn(ctx, signedIn); err != nil {
			return err
		}
		session.Account = accountOf(row)
		session.ExpiresAt, err = q.SessionInsert(ctx, pgq.SessionInsertParams{
			SecretHash: o.Secret[:], SessionID: session.ID, AccountID: o.Account, Address: o.Address, Lifetime: o.Lifetime,
		})
		return err
	})
	if err != nil {
		return access.Session{}, fmt.Errorf("open session: %w", err)
	}
	return session, nil
}

// Session returns a session. Once a minute it stores that the session is in use.
func (s *Access) Session(ctx context.Context, secret access.Hash, idle time.Duration) (access.Session, error) {
	row, err := s.db.queries.SessionGet(ctx, pgq.SessionGetParams{SecretHash: secret[:], Idle: idle})
	if errors.Is(err, pgx.ErrNoRows) {
		return access.Session{}, access.ErrRefused
	}
	if err == nil && row.Stale {
		err = s.db.queries.SessionSeen(ctx, secret[:])
	}
	if err != nil {
		return access.Session{}, fmt.Errorf("read session: %w", err)
	}
	return access.Session{ID: row.Session.SessionID, Account: accountOf(row.Account), ExpiresAt: row.Session.ExpiresAt}, nil
}

// Close ends a session.
func (s *Access) Close(ctx context.Context, secret access.Hash) error {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		_, err := q.SessionClose(ctx, secret[:])
		return err
	})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// Token returns a token. Once a minute it stores that the token is in use.
func (s *Access) Token(ctx context.Context, secret access.Hash) (access.Token, error) {
	row, err := s.db.queries.TokenGetBySecret(ctx, secret[:])
	if errors.Is(err, pgx.ErrNoRows) {
		return access.Token{}, access.ErrRefused
	}
	if err == nil && row.Stale {
		err = s.db.queries.TokenUsed(ctx, row.ApiToken.TokenID)
	}
	if err != nil {
		return access.Token{}, fmt.Errorf("read token: %w", err)
	}
	return tokenOf(row.ApiToken), nil
}

// Redeem uses up a link.
func (s *Access) Redeem(ctx context.Context, secret access.Hash) (access.Account, error) {
	var account access.Account
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		id, err := q.LinkRedeem(ctx, secret[:])
		if errors.Is(err, pgx.ErrNoRows) {
			return access.ErrRefused
		}
		if err != nil {
			return err
		}
		row, err := q.AccountLock(ctx, id)
		account = accountOf(row)
		return err
	})
	if err != nil {
		return access.Account{}, fmt.Errorf("redeem link: %w", err)
	}
	return account, nil
}

// SetUp makes the first administrator. Other accounts may exist: an identity provider may have made
// them.
func (s *Access) SetUp(ctx context.Context, code access.Hash, first access.NewAccount) (access.Account, error) {
	var account access.Account
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		made, err := firstAdministrator(ctx, q)
		if err != nil {
			return err
		}
		if made {
			return fault.New(fault.Conflict, "there is already an administrator; sign in")
		}
		valid, err := q.SetUpCodeValid(ctx, code[:])
		if err != nil {
			return err
		}
		if !valid {
			return access.ErrRefused
		}
		account, err = insertAccount(ctx, q, first)
		if err != nil {
			return err
		}
		return q.SetUpCodesEnd(ctx)
	})
	if err != nil {
		return access.Account{}, fmt.Errorf("set up: %w", err)
	}
	return account, nil
}

// firstAdministrator reports whether an administrator exists who is not disabled. Only one
// transaction at a time may ask, until it ends.
func firstAdministrator(ctx context.Context, q *pgq.Queries) (made bool, err error) {
	if err := q.SetUpLock(ctx); err != nil {
		return false, err
	}
	return q.AdministratorExists(ctx)
}

// AddSetUpCode adds a code if there is no administrator, and reports whether it did.
func (s *Access) AddSetUpCode(ctx context.Context, code access.Hash) (added bool, err error) {
	err = s.db.inTx(ctx, func(q *pgq.Queries) error {
		made, err := firstAdministrator(ctx, q)
		if err != nil || made {
			return err
		}
		added = true
		return q.SetUpCodeInsert(ctx, code[:])
	})
	if err != nil {
		return false, fmt.Errorf("add set-up code: %w", err)
	}
	return added, nil
}

// AddFirst makes an account if there is none, and reports whether it did.
func (s *Access) AddFirst(ctx context.Context, first access.NewAccount) (added bool, err error) {
	err = s.db.inTx(ctx, func(q *pgq.Queries) error {
		if err := q.SetUpLock(ctx); err != nil {
			return err
		}
		made, err := q.AccountsExist(ctx)
		if err != nil || made {
			return err
		}
		added = true
		if _, err := insertAccount(ctx, q, first); err != nil {
			return err
		}
		return q.SetUpCodesEnd(ctx)
	})
	if err != nil {
		return false, fmt.Errorf("make first administrator: %w", err)
	}
	return added, nil
}

// SetUpNeeded reports whether there is no administrator yet.
func (s *Access) SetUpNeeded(ctx context.Context) (bool, error) {
	exists, err := s.db.queries.AdministratorExists(ctx)
	if err != nil {
		return false, fmt.Errorf("look for administrators: %w", err)
	}
	return !exists, nil
}

// SetPassword sets a password and ends every session and link of the account.
func (s *Access) SetPassword(ctx context.Context, account uuid.UUID, hash string) error {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		if _, err := q.AccountLock(ctx, account); err != nil {
			return notFound(err, "user")
		}
		return setPassword(ctx, q, account, hash)
	})
	if err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	return nil
}

func setPassword(ctx context.Context, q *pgq.Queries, account uuid.UUID, hash string) error {
	if _, err := q.AccountSetPassword(ctx, pgq.AccountSetPasswordParams{AccountID: account, PasswordHash: &hash}); err != nil {
		return err
	}
	return endSessions(ctx, q, account)
}

func endSessions(ctx context.Context, q *pgq.Queries, account uuid.UUID) error {
	if err := q.SessionsEnd(ctx, account); err != nil {
		return err
	}
	return q.LinksEnd(ctx, account)
}

// Purge removes what has expired.
func (s *Access) Purge(ctx context.Context, idle, auditRetention time.Duration) error {
	q := s.db.queries
	err := q.AccessPurge(ctx, idle)
	if auditRetention > 0 {
		err = errors.Join(err, q.AuditPurge(ctx, auditRetention))
	}
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return nil
}

func accountOf(row pgq.Account) access.Account {
	a := access.Account{
		ID: row.AccountID, TenantID: row.TenantID, Email: row.Email, Name: row.Name, Role: access.Role(row.Role), Disabled: row.Disabled,
		HasPassword: row.PasswordHash != nil, SignedInAt: row.SignedInAt, Version: row.Version, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}
	if row.Issuer != nil && row.Subject != nil {
		a.Issuer, a.Subject = *row.Issuer, *row.Subject
	}
	return a
}

func tokenOf(row pgq.ApiToken) access.Token {
	return access.Token{
		ID: row.TokenID, TenantID: row.TenantID, Name: row.Name, Role: access.Role(row.Role), Hint: row.Hint, CreatedBy: row.CreatedBy,
		CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt, UsedAt: row.UsedAt,
	}
}

func insertAccount(ctx context.Context, q *pgq.Queries, a access.NewAccount) (access.Account, error) {
	p := pgq.AccountInsertParams{AccountID: uuid.Must(uuid.NewV7()), TenantID: a.TenantID, Email: a.Email, Name: a.Name, Role: string(a.Role)}
	if a.PasswordHash != "" {
		p.PasswordHash = &a.PasswordHash
	}
	if a.Issuer != "" {
		p.Issuer, p.Subject = &a.Issuer, &a.Subject
	}
	row, err := q.AccountInsert(ctx, p)
	switch {
	case isUnique(err, "account_email_once"):
		return access.Account{}, fault.New(fault.Conflict, "the e-mail address %q is taken; choose another one", a.Email)
	case isUnique(err, "account_identity_once"):
		return access.Account{}, fault.New(fault.Conflict, "this person already has an account; sign in again")
	case err != nil:
		return access.Account{}, err
	}
	return accountOf(row), nil
}
