package app

import (
	"cmp"
	"context"
	"errors"
	"os/user"

	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/internal/postgres"
)

// Users is what an operator can do about users on the machine itself, with access to the database
// and without signing in. The audit log names the user of the operating system.
type Users struct {
	accounts *postgres.Accounts
	hasher   *access.Hasher
	actor    access.Actor
}

// WithUsers opens the database at url while f runs.
func WithUsers(ctx context.Context, url string, f func(*Users) error) error {
	if _, err := postgres.CheckSchema(ctx, url); err != nil {
		return err
	}
	db, err := postgres.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	who := access.Actor{Kind: "program", Name: "tocsin users", Via: "command", Operation: "tocsin users", ObjectKind: "user"}
	if u, err := user.Current(); err == nil {
		who.Name = "tocsin users, by " + u.Username
	}
	return f(&Users{accounts: db.Accounts(), hasher: access.NewHasher(access.DefaultCost(), 1), actor: who})
}

// as acts on behalf of the operator in a tenant.
func (u *Users) as(ctx context.Context, tenant string) context.Context {
	a := u.actor
	a.Tenant = tenant
	return access.As(ctx, a)
}

// Add makes a user without a password.
func (u *Users) Add(ctx context.Context, a access.NewAccount) error {
	if err := access.CheckEmail(a.Email); err != nil {
		return err
	}
	a.Name = cmp.Or(a.Name, a.Email)
	_, err := u.accounts.Create(u.as(ctx, a.TenantID), a)
	return err
}

// Link returns a link by which a user signs in once.
func (u *Users) Link(ctx context.Context, email, public string) (string, error) {
	a, err := u.find(ctx, email)
	if err != nil {
		return "", err
	}
	secret := access.NewSecret()
	_, err = u.accounts.Link(u.as(ctx, a.TenantID), a.TenantID, api.NewLink{User: a.ID, Secret: access.HashOf(secret), Lifetime: api.LinkLifetime})
	return access.LinkURL(public, secret), err
}

// All returns the users of every tenant.
func (u *Users) All(ctx context.Context) ([]access.Account, error) { return u.accounts.All(ctx) }

// SetPassword sets a user's password.
func (u *Users) SetPassword(ctx context.Context, email, password string) error {
	a, err := u.find(ctx, email)
	if err != nil {
		return err
	}
	if fields := access.CheckPassword("password", password, email); len(fields) > 0 {
		return errors.New("the password: " + fields[0].Message)
	}
	hash, err := u.hasher.Hash(ctx, password)
	if err != nil {
		return err
	}
	return u.accounts.SetPassword(u.as(ctx, a.TenantID), a.TenantID, a.ID, hash)
}

// find returns the user who signs in with an address.
func (u *Users) find(ctx context.Context, email string) (access.Account, error) {
	a, err := u.accounts.ByEmail(ctx, email)
	if fault.KindOf(err) == fault.NotFound {
		return a, fault.New(fault.NotFound, "no user has the e-mail address %q; run `tocsin users list`, which shows all users", email)
	}
	return a, err
}

// SetDisabled disables or enables a user.
func (u *Users) SetDisabled(ctx context.Context, email string, disabled bool) error {
	for {
		a, err := u.find(ctx, email)
		if err != nil {
			return err
		}
		_, err = u.accounts.Update(u.as(ctx, a.TenantID), a.TenantID, api.UserEditing{
			ID: a.ID, Version: a.Version, Name: a.Name, Role: a.Role, Disabled: disabled,
		})
		// Another edit came in between, so the user is read again.
		if fault.KindOf(err) != fault.Stale {
			return err
		}
	}
}
