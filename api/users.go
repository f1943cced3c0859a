package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"tocsin/internal/access"
	"tocsin/internal/fault"
)

// LinkLifetime is how long a one-time link is valid.
const LinkLifetime = 24 * time.Hour

// UserStore stores the users of a tenant.
type UserStore interface {
	UserReader
	UserWriter
	UserKeys
}

// UserReader reads users.
type UserReader interface {
	// List returns users by (e-mail address, id).
	List(ctx context.Context, tenant string, page NamePage) ([]access.Account, error)
	Get(ctx context.Context, tenant string, id uuid.UUID) (access.Account, error)
}

// UserWriter changes users. Removing the last administrator of a tenant is a conflict.
type UserWriter interface {
	Create(ctx context.Context, a access.NewAccount) (access.Account, error)
	// Update of a version that is not the newest is stale.
	Update(ctx context.Context, tenant string, edit UserEditing) (access.Account, error)
	Delete(ctx context.Context, tenant string, id uuid.UUID) error
}

// UserKeys changes how users sign in.
type UserKeys interface {
	// SetPassword sets a password and ends every session of the user.
	SetPassword(ctx context.Context, tenant string, id uuid.UUID, hash string) error
	// Link adds a link and returns when it expires.
	Link(ctx context.Context, tenant string, link NewLink) (time.Time, error)
}

// UserEditing is an edit of a version of a user.
type UserEditing struct {
	ID       uuid.UUID
	Version  int64
	Name     string
	Role     access.Role
	Disabled bool
}

// NewLink is a one-time link to be stored.
type NewLink struct {
	User     uuid.UUID
	Secret   access.Hash
	Lifetime time.Duration
}

// ListUsers answers GET /users.
func (s *server) ListUsers(ctx context.Context, req ListUsersRequestObject) (ListUsersResponseObject, error) {
	page, err := namePage(listUsers, req.Params.Cursor, req.Params.Limit)
	if err != nil {
		return nil, err
	}
	found, err := s.Users.List(ctx, tenantOf(ctx), page)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	answer := ListUsers200JSONResponse{Items: make([]User, len(found))}
	for i := range found {
		answer.Items[i] = userAnswer(&found[i])
	}
	answer.NextCursor, err = nextCursor(len(found), page.Limit, func() mark {
		last := &found[len(found)-1]
		return mark{List: listUsers, Name: last.Email, ID: last.ID}
	})
	return answer, err
}

// CreateUser answers POST /users.
func (s *server) CreateUser(ctx context.Context, req CreateUserRequestObject) (CreateUserResponseObject, error) {
	b := req.Body
	fields := userFaults(b.Email, b.Name, b.Role)
	if b.Password != "" {
		fields = append(fields, access.CheckPassword("password", b.Password, b.Email)...)
	}
	if err := fault.InvalidFields("the user", fields); err != nil {
		return nil, err
	}
	wanted := access.NewAccount{TenantID: tenantOf(ctx), Email: b.Email, Name: b.Name, Role: b.Role}
	var err error
	if b.Password != "" {
		if wanted.PasswordHash, err = s.Authenticator.Hasher.Hash(ctx, b.Password); err != nil {
			return nil, err
		}
	}
	made, err := s.Users.Create(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("create user: %w", err)
	}
	return CreateUser201JSONResponse{
		Body: userAnswer(&made), Headers: CreateUser201ResponseHeaders{ETag: etag(made.Version), Location: "/api/v1/users/" + made.ID.String()},
	}, nil
}

// GetUser answers GET /users/{id}.
func (s *server) GetUser(ctx context.Context, req GetUserRequestObject) (GetUserResponseObject, error) {
	found, err := s.Users.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("get user: %w", err)
	}
	return GetUser200JSONResponse{Body: userAnswer(&found), Headers: GetUser200ResponseHeaders{ETag: etag(found.Version)}}, nil
}

// UpdateUser answers PUT /users/{id}.
func (s *server) UpdateUser(ctx context.Context, req UpdateUserRequestObject) (UpdateUserResponseObject, error) {
	version, err := editedVersion(req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	b := req.Body
	if err := fault.InvalidFields("the user", nameAndRoleFaults(b.Name, b.Role)); err != nil {
		return nil, err
	}
	edit := UserEditing{ID: req.ID, Version: version, Name: b.Name, Role: b.Role, Disabled: b.Disabled}
	stored, err := s.Users.Update(ctx, tenantOf(ctx), edit)
	if err != nil {
		return nil, fmt.Errorf("update user: %w", err)
	}
	return UpdateUser200JSONResponse{Body: userAnswer(&stored), Headers: UpdateUser200ResponseHeaders{ETag: etag(stored.Version)}}, nil
}

// DeleteUser answers DELETE /users/{id}.
func (s *server) DeleteUser(ctx context.Context, req DeleteUserRequestObject) (DeleteUserResponseObject, error) {
	if err := s.Users.Delete(ctx, tenantOf(ctx), req.ID); err != nil {
		return nil, fmt.Errorf("delete user: %w", err)
	}
	return DeleteUser204Response{}, nil
}

// SetUserPassword answers PUT /users/{id}/password.
func (s *server) SetUserPassword(ctx context.Context, req SetUserPasswordRequestObject) (SetUserPasswordResponseObject, error) {
	user, err := s.Users.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("get user: %w", err)
	}
	if err := fault.InvalidFields("the password", access.CheckPassword("password", req.Body.Password, user.Email)); err != nil {
		return nil, err
	}
	hash, err := s.Authenticator.Hasher.Hash(ctx, req.Body.Password)
	if err != nil {
		return nil, err
	}
	if err := s.Users.SetPassword(ctx, tenantOf(ctx), req.ID, hash); err != nil {
		return nil, fmt.Errorf("set password: %w", err)
	}
	return SetUserPassword204Response{}, nil
}

// CreateUserLink answers POST /users/{id}/link.
func (s *server) CreateUserLink(ctx context.Context, req CreateUserLinkRequestObject) (CreateUserLinkResponseObject, error) {
	secret := access.NewSecret()
	end, err := s.Users.Link(ctx, tenantOf(ctx), NewLink{User: req.ID, Secret: access.HashOf(secret), Lifetime: LinkLifetime})
	if err != nil {
		return nil, fmt.Errorf("make sign-in link: %w", err)
	}
	return CreateUserLink200JSONResponse{URL: access.LinkURL(s.PublicURL, secret), ExpiresAt: end.UTC()}, nil
}

// userFaults returns what is wrong with a new user.
func userFaults(email, name string, role access.Role) []fault.Field {
	var fields []fault.Field
	if err := access.CheckEmail(email); err != nil {
		fields = append(fields, fault.Field{Field: "email", Code: "email", Message: "Must be an e-mail address such as ada@example.com"})
	}
	return append(fields, nameAndRoleFaults(name, role)...)
}

func nameAndRoleFaults(name string, role access.Role) []fault.Field {
	fields := nameFaults(name)
	if _, err := access.ParseRole(string(role)); err != nil {
		fields = append(fields, fault.Field{Field: "role", Code: "unknown_value", Message: "Must be one of " + commaSeparated(access.Roles())})
	}
	return fields
}

func nameFaults(name string) []fault.Field {
	if strings.TrimSpace(name) == "" || !cleanText(name) || utf8.RuneCountInString(name) > 200 {
		return []fault.Field{{Field: "name", Code: "name", Message: "Must be valid text of 1 to 200 characters"}}
	}
	return nil
}

func userAnswer(a *access.Account) User {
	return User{
		ID: a.ID, Version: a.Version, Email: a.Email, Name: a.Name, Role: a.Role, Disabled: a.Disabled, HasPassword: a.HasPassword,
		Issuer: optional(a.Issuer), SignedInAt: utc(a.SignedInAt), CreatedAt: a.CreatedAt.UTC(), UpdatedAt: a.UpdatedAt.UTC(),
	}
}

// throttled converts an attempt that comes too early into its answer.
func throttled(err error, header http.Header) error {
	if early, ok := errors.AsType[*access.ThrottledError](err); ok {
		seconds := int(early.Wait/time.Second) + 1
		header.Set("Retry-After", fmt.Sprint(seconds))
		return echo.NewHTTPError(http.StatusTooManyRequests, fmt.Sprintf("Too many attempts; try again in %d s", seconds))
	}
	return err
}
