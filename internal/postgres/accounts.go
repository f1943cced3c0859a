package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// Accounts is the API's store of users.
type Accounts struct{ db *DB }

// Accounts returns the API's store of users.
func (db *DB) Accounts() *Accounts { return &Accounts{db} }

// List returns a page of users by (e-mail address, id).
func (s *Accounts) List(ctx context.Context, tenant string, page api.NamePage) ([]access.Account, error) {
	p := pgq.AccountListParams{TenantID: tenant, Most: int32(page.Limit)}
	if page.After != nil {
		p.AfterEmail, p.AfterID = &page.After.Name, page.After.ID
	}
	rows, err := s.db.queries.AccountList(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	list := make([]access.Account, len(rows))
	for i, row := range rows {
		list[i] = accountOf(row)
	}
	return list, nil
}

// Get returns one user.
func (s *Accounts) Get(ctx context.Context, tenant string, id uuid.UUID) (access.Account, error) {
	row, err := s.db.queries.AccountGet(ctx, pgq.AccountGetParams{TenantID: tenant, AccountID: id})
	if err != nil {
		return access.Account{}, notFound(err, "user")
	}
	return accountOf(row), nil
}

// Create makes a user.
func (s *Accounts) Create(ctx context.Context, a access.NewAccount) (access.Account, error) {
	var account access.Account
	err := s.db.inTx(ctx, func(q *pgq.Queries) (err error) {
		account, err = insertAccount(ctx, q, a)
		return err
	})
	if err != nil {
		return access.Account{}, fmt.Errorf("create user: %w", err)
	}
	return account, nil
}

// Update changes the name, the role, and whether the user is disabled. Disabling a user ends all
// sessions of the user.
func (s *Accounts) Update(ctx context.Context, tenant string, edit api.UserEditing) (access.Account, error) {
	var account access.Account
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		was, err := lockAccount(ctx, q, tenant, edit.ID, edit.Role != access.Admin || edit.Disabled)
		if err != nil {
			return err
		}
		if was.Version != edit.Version {
			return fault.New(fault.Stale, "the user was changed to version %d since version %d was read; read it again and repeat the edit", was.Version, edit.Version)
		}
		row, err := q.AccountUpdate(ctx, pgq.AccountUpdateParams{AccountID: edit.ID, Name: edit.Name, Role: string(edit.Role), Disabled: edit.Disabled})
		if err != nil {
			return err
		}
		account = accountOf(row)
		if edit.Disabled {
			return endSessions(ctx, q, edit.ID)
		}
		return nil
	})
	if err != nil {
		return access.Account{}, fmt.Errorf("update user: %w", err)
	}
	return account, nil
}

// Delete removes a user and all sessions of the user.
func (s *Accounts) Delete(ctx context.Context, tenant string, id uuid.UUID) error {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		if _, err := lockAccount(ctx, q, tenant, id, true); err != nil {
			return err
		}
		return q.AccountDelete(ctx, id)
	})
	if err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	return nil
}

// lockAccount locks an account. If the user is about to stop being an administrator, it refuses to
// take the last one. It locks all administrators first: if two administrators demote each other,
// the second transaction sees what the first one did.
func lockAccount(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID, steppingDown bool) (pgq.Account, error) {
	var admins []uuid.UUID
	if steppingDown {
		var err error
		if admins, err = q.AdminsLock(ctx, tenant); err != nil {
			return pgq.Account{}, err
		}
	}
	row, err := q.AccountGetForUpdate(ctx, pgq.AccountGetForUpdateParams{TenantID: tenant, AccountID: id})
	if err != nil {
		return pgq.Account{}, notFound(err, "user")
	}
	if slices.Equal(admins, []uuid.UUID{id}) {
		return pgq.Account{}, fault.New(fault.Conflict, "this is the last administrator; create another one, then try again")
	}
	return row, nil
}

// SetPassword sets a password and ends all sessions of the user.
func (s *Accounts) SetPassword(ctx context.Context, tenant string, id uuid.UUID, hash string) error {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		if _, err := lockAccount(ctx, q, tenant, id, false); err != nil {
			return err
		}
		return setPassword(ctx, q, id, hash)
	})
	if err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	return nil
}

// Link adds a link with which the user signs in once, and returns when the link expires.
func (s *Accounts) Link(ctx context.Context, tenant string, link api.NewLink) (time.Time, error) {
	var end time.Time
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		row, err := lockAccount(ctx, q, tenant, link.User, false)
		if err != nil {
			return err
		}
		if row.Disabled {
			return fault.New(fault.Conflict, "the user is disabled; enable the user, then make the link")
		}
		end, err = q.LinkInsert(ctx, pgq.LinkInsertParams{SecretHash: link.Secret[:], AccountID: link.User, Lifetime: link.Lifetime})
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("make sign-in link: %w", err)
	}
	return end, nil
}

// ByEmail returns the user with an e-mail address, in any tenant.
func (s *Accounts) ByEmail(ctx context.Context, email string) (access.Account, error) {
	row, err := s.db.queries.AccountByEmail(ctx, email)
	if err != nil {
		return access.Account{}, notFound(err, "user")
	}
	return accountOf(row), nil
}

// Tokens is the API's store of tokens.
type Tokens struct{ db *DB }

// Tokens returns the API's store of tokens.
func (db *DB) Tokens() *Tokens { return &Tokens{db} }

// List returns a page of tokens by (name, id).
func (s *Tokens) List(ctx context.Context, tenant string, page api.NamePage) ([]access.Token, error) {
	p := pgq.TokenListParams{TenantID: tenant, Most: int32(page.Limit)}
	if page.After != nil {
		p.AfterName, p.AfterID = &page.After.Name, page.After.ID
	}
	rows, err := s.db.queries.TokenList(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	list := make([]access.Token, len(rows))
	for i, row := range rows {
		list[i] = tokenOf(row)
	}
	return list, nil
}

// Create stores a token by its hash.
func (s *Tokens) Create(ctx context.Context, t access.Token, secret access.Hash) (access.Token, error) {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		row, err := q.TokenInsert(ctx, pgq.TokenInsertParams{
			TokenID: uuid.Must(uuid.NewV7()), TenantID: t.TenantID, Name: t.Name, Role: string(t.Role), SecretHash: secret[:],
			Hint: t.Hint, CreatedBy: t.CreatedBy, ExpiresAt: t.ExpiresAt,
		})
		if isUnique(err, "api_token_name_once") {
			return fault.New(fault.Conflict, "the name %q is taken; choose another one", t.Name)
		}
		t = tokenOf(row)
		return err
	})
	if err != nil {
		return access.Token{}, fmt.Errorf("create token: %w", err)
	}
	return t, nil
}

// Revoke ends a token.
func (s *Tokens) Revoke(ctx context.Context, tenant string, id uuid.UUID) error {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		revoked, err := q.TokenDelete(ctx, pgq.TokenDeleteParams{TenantID: tenant, TokenID: id})
		if err == nil && revoked == 0 {
			return noSuch("token")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}

// Recognition finds the accounts of people who sign in through an identity provider.
type Recognition struct {
	accounts *Accounts
	// provision makes missing accounts. With roles, the provider decides the role at each sign-in,
	// not only when the account is made. With groups, it also decides the groups.
	provision, roles, groups bool
}

// Recognition returns a store that finds the accounts of people who sign in through an identity
// provider.
func (s *Accounts) Recognition(provision, roles, groups bool) *Recognition {
	return &Recognition{s, provision, roles, groups}
}

// Recognise returns the account of a person, with the role that the provider gives. If there is no
// account yet, it is made from a. The last administrator keeps the role, whatever the provider
// says.
func (r *Recognition) Recognise(ctx context.Context, a access.NewAccount) (access.Account, error) {
	s := r.accounts
	var account access.Account
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		row, err := q.AccountByIdentity(ctx, pgq.AccountByIdentityParams{Issuer: a.Issuer, Subject: a.Subject})
		if errors.Is(err, pgx.ErrNoRows) {
			if !r.provision {
				return access.ErrRefused
			}
			if account, err = insertAccount(ctx, q, a); err != nil {
				return err
			}
			return r.setGroups(ctx, q, account.ID, a.Groups)
		}
		if err != nil {
			return err
		}
		// The lock on administrators comes before any write: otherwise two sign-ins at once could
		// each wait for a row that the other holds.
		if account, err = r.setRole(ctx, q, row, a.Role); err != nil {
			return err
		}
		return r.setGroups(ctx, q, account.ID, a.Groups)
	})
	if err != nil {
		return access.Account{}, fmt.Errorf("recognise user: %w", err)
	}
	return account, nil
}

// setRole gives an account the role that the provider gives, and returns the result.
func (r *Recognition) setRole(ctx context.Context, q *pgq.Queries, row pgq.Account, role access.Role) (access.Account, error) {
	if !r.roles || row.Role == string(role) {
		return accountOf(row), nil
	}
	// A change that an administrator made in the meantime is kept.
	held, err := lockAccount(ctx, q, row.TenantID, row.AccountID, role != access.Admin)
	if fault.KindOf(err) == fault.Conflict {
		return accountOf(row), nil
	}
	if err != nil {
		return access.Account{}, err
	}
	row, err = q.AccountUpdate(ctx, pgq.AccountUpdateParams{AccountID: held.AccountID, Name: held.Name, Role: string(role), Disabled: held.Disabled})
	return accountOf(row), err
}

// setGroups stores the groups that the provider gives for a user. There are none if the claim is
// empty or missing, and none if no claim is configured any more: an old answer of the provider must
// not keep anybody in a team.
func (r *Recognition) setGroups(ctx context.Context, q *pgq.Queries, id uuid.UUID, groups []string) error {
	if !r.groups || groups == nil {
		groups = []string{}
	}
	return q.AccountSetGroups(ctx, pgq.AccountSetGroupsParams{AccountID: id, Groups: groups})
}

// All returns the users of every tenant, by tenant and e-mail address.
func (s *Accounts) All(ctx context.Context) ([]access.Account, error) {
	rows, err := s.db.queries.AccountsAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	list := make([]access.Account, len(rows))
	for i, row := range rows {
		list[i] = accountOf(row)
	}
	return list, nil
}
