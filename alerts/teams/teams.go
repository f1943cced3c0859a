// Package teams holds teams: groups of people who share alerts.
//
// The members of a team are people who were added by e-mail address, and the members of groups. An
// OpenID Connect provider names the groups of a person at each sign-in. A team owns the rules whose
// owner is its name, and can be a target of rules. The alerts of these rules belong to the members
// ("mine"). Its webhooks are notified of alerts that escalate to it.
package teams

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/rules"
)

// Team is a group of people.
type Team struct {
	// Name is the name that rules give as their owner.
	Name string `json:"name" validate:"required,max=200,text"`
	// Members are e-mail addresses; case does not matter.
	Members []string `json:"members,omitempty" validate:"max=500,dive,required,max=254,text"`
	// Groups are groups of a provider. Their members are members of the team.
	Groups []string `json:"groups,omitempty" validate:"max=100,dive,required,max=200,text"`
	// WebhookIDs are the webhooks through which the team is notified of alerts that escalate to it.
	WebhookIDs []uuid.UUID `json:"webhookIds,omitempty" validate:"max=20,unique"`
}

// List is the teams of a tenant.
type List struct {
	Teams []Team `json:"teams,omitempty" validate:"max=500,dive"`
}

// Check returns an invalid-input fault with one entry for each field that cannot be accepted,
// or nil.
func (l *List) Check(v *rules.Validator) error {
	fields, err := v.Faults(l)
	if err != nil {
		return fmt.Errorf("validate teams: %w", err)
	}
	named := map[string]bool{}
	for i := range l.Teams {
		name := l.Teams[i].Name
		if named[name] && name != "" {
			fields = append(fields, fault.Field{Field: fmt.Sprintf("teams[%d].name", i), Code: "unique", Message: "Another team has the same name; choose another one"})
		}
		named[name] = true
	}
	return fault.InvalidFields("the list of teams", fields)
}

// Of returns the names of the teams that a person is in.
func (l *List) Of(email string, groups []string) []string {
	var names []string
	for i := range l.Teams {
		t := &l.Teams[i]
		byHand := slices.ContainsFunc(t.Members, func(member string) bool { return strings.EqualFold(member, email) })
		if byHand || slices.ContainsFunc(t.Groups, func(group string) bool { return slices.Contains(groups, group) }) {
			names = append(names, t.Name)
		}
	}
	return names
}

// WebhookIDs returns the webhooks of the teams with the given names, each webhook once. A name
// without a team adds nothing.
func (l *List) WebhookIDs(names []string) []uuid.UUID {
	var list []uuid.UUID
	for i := range l.Teams {
		if !slices.Contains(names, l.Teams[i].Name) {
			continue
		}
		for _, id := range l.Teams[i].WebhookIDs {
			if !slices.Contains(list, id) {
				list = append(list, id)
			}
		}
	}
	return list
}

// Names returns the names of the teams.
func (l *List) Names() []string {
	names := make([]string, len(l.Teams))
	for i := range l.Teams {
		names[i] = l.Teams[i].Name
	}
	return names
}
