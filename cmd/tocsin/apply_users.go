package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
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
		path, message := misread(err, fields)
		return a.misplaced(fmt.Sprintf("%s[%d].%s", section, i, path), message)
	}
	return nil
}

// misread returns where in the fields of an entry a decoder of JSON found something wrong, and what.
func misread(err error, fields any) (path, message string) {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want := map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "a list", reflect.Map: "a mapping", reflect.Struct: "a mapping"}[wrong.Type.Kind()]
		return wrong.Field, "Must be " + cmp.Or(want, "a number")
	}
	if quoted, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		if name, err := strconv.Unquote(quoted); err == nil {
			path, _ = pathTo(fields, name)
			return path, "Unknown field"
		}
	}
	return "", strings.TrimPrefix(err.Error(), "json: ")
}

// pathTo returns where a field of a name is.
func pathTo(in any, name string) (path string, found bool) {
	switch in := in.(type) {
	case map[string]any:
		if _, here := in[name]; here {
			return name, true
		}
		for _, key := range sortedKeys(in) {
			if path, found = pathTo(in[key], name); found {
				return strings.ReplaceAll(key+"."+path, ".[", "["), true
			}
		}
	case []any:
		for i, element := range in {
			if path, found = pathTo(element, name); found {
				return fmt.Sprintf("[%d].%s", i, path), true
			}
		}
	}
	return "", false
}

// users plans what becomes of users. They are known by their e-mail addresses, whatever their case. Those who come from a provider are left
// alone by --prune: the provider says who they are.
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
			return a.misplaced(place, "A user needs an email, a name and a role")
		case given[strings.ToLower(want.Email)]:
			return a.misplaced(place, "Another user has the same e-mail address; remove one of them")
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
		s.changes = []change{{field: "password", why: "none yet; create a link to sign in once, with tocsin users link or in the web application"}}
		s.run = func(ctx context.Context) error {
			made, err := a.server.CreateUserWithResponse(ctx, api.NewUser{Email: want.Email, Name: want.Name, Role: want.Role})
			if err := answered(made, err); err != nil {
				return a.wrong(err, prefix)
			}
			if !want.Disabled || made.JSON201 == nil {
				return nil
			}
			if err := edit(ctx, made.JSON201); err != nil {
				return begunError{fmt.Errorf("the user was created, but not disabled: %w", err)}
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
