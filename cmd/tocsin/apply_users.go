package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	api "tocsin/client"
	"tocsin/internal/rulefile"
)

// userEntry is a user in a file. There is no password: people set their own.
type userEntry struct {
	Email    string   `json:"email"`
	Name     string   `json:"name"`
	Role     api.Role `json:"role"`
	Disabled bool     `json:"disabled,omitempty"`
}

// strictly reads the i-th entry of a section. An unknown field or a wrong type is an error that names its place.
func (a *applying) strictly(section string, i int, fields any, into any) error {
	text, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return a.misplaced(fmt.Sprintf("%s[%d].", section, i), strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// users plans the changes of users. They are identified by their e-mail addresses, ignoring case.
// --prune leaves users of a provider alone, because the provider defines them.
func (a *applying) users(ctx context.Context) error {
	stored, err := usersOf(ctx, a.server)
	if err != nil {
		return err
	}
	known := map[string]*api.User{}
	for i := range stored {
		known[strings.ToLower(stored[i].Email)] = &stored[i]
	}
	given := map[string]bool{}
	for i, fields := range a.document.Sections[rulefile.Users] {
		var want userEntry
		if err := a.strictly(rulefile.Users, i, fields, &want); err != nil {
			return err
		}
		switch place := fmt.Sprintf("users[%d].email", i); {
		case want.Email == "" || want.Name == "" || want.Role == "":
			return a.misplaced(place, "A user has an email, a name and a role")
		case given[strings.ToLower(want.Email)]:
			return a.misplaced(place, "Another user has this address, too")
		}
		given[strings.ToLower(want.Email)] = true
		a.plan.steps = append(a.plan.steps, a.user(i, &want, known[strings.ToLower(want.Email)]))
	}
	for i := range stored {
		u := &stored[i]
		switch {
		case given[strings.ToLower(u.Email)]:
		case u.Issuer == nil && a.prunes(u.Email):
			a.plan.steps = append(a.plan.steps, step{kind: "user", name: u.Email, action: deleted, why: a.pruned(), run: func(ctx context.Context) error {
				return answered(a.server.DeleteUserWithResponse(ctx, u.ID))
			}})
		default:
			a.plan.leftAlone++
		}
	}
	return nil
}

// user plans the change of one user. is is nil if there is none.
func (a *applying) user(i int, want *userEntry, is *api.User) step {
	s := step{kind: "user", name: want.Email, action: unchanged}
	prefix := fmt.Sprintf("users[%d].", i)
	edit := func(ctx context.Context, u *api.User) error {
		err := answered(a.server.UpdateUserWithResponse(ctx, u.ID, &api.UpdateUserParams{IfMatch: tag(u.Version)},
			api.UserEdit{Name: want.Name, Role: want.Role, Disabled: want.Disabled}))
		return a.wrong(err, prefix)
	}
	if is == nil {
		s.action = created
		s.changes = []change{{field: "password", why: "none yet; tocsin users link, or the web application, makes a link to sign in once"}}
		s.run = func(ctx context.Context) error {
			made, err := a.server.CreateUserWithResponse(ctx, api.NewUser{Email: want.Email, Name: want.Name, Role: want.Role})
			if err := answered(made, err); err != nil {
				return a.wrong(err, prefix)
			}
			if want.Disabled && made.JSON201 != nil {
				return edit(ctx, made.JSON201)
			}
			return nil
		}
		return s
	}
	s.differ("name", is.Name, want.Name)
	s.differ("role", string(is.Role), string(want.Role))
	s.differ("disabled", is.Disabled, want.Disabled)
	if s.action == updated {
		s.run = func(ctx context.Context) error { return edit(ctx, is) }
	}
	return s
}

// differ notes a field whose values differ.
func (s *step) differ(field string, is, want any) {
	if is != want {
		s.action = updated
		s.changes = append(s.changes, change{field: field, before: is, after: want})
	}
}

// because notes a field whose values cannot be shown.
func (s *step) because(field, why string) {
	s.action = updated
	s.changes = append(s.changes, change{field: field, why: why})
}

// tag is the entity tag of a version.
func tag(version int64) *string { return new(fmt.Sprintf(`"%d"`, version)) }

// exportedUsers returns every user in the form of a file, except those of a provider.
func exportedUsers(ctx context.Context, server *api.ClientWithResponses) ([]any, error) {
	stored, err := usersOf(ctx, server)
	list := []any{}
	for _, u := range stored {
		if u.Issuer != nil {
			continue
		}
		entry := map[string]any{"email": u.Email, "name": u.Name, "role": string(u.Role)}
		if u.Disabled {
			entry["disabled"] = true
		}
		list = append(list, entry)
	}
	return list, err
}
