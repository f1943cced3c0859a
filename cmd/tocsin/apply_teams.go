package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	api "tocsin/client"
	"tocsin/internal/rulefile"
)

// teamEntry is a team in a file: webhooks by name.
type teamEntry struct {
	Name     string   `json:"name"`
	Members  []string `json:"members,omitempty"`
	Groups   []string `json:"groups,omitempty"`
	Webhooks []string `json:"webhooks,omitempty"`
}

// teamEntryOf returns a stored team in the form of a file.
func teamEntryOf(t *api.Team, webhooks names) teamEntry {
	return teamEntry{Name: t.Name, Members: given(t.Members), Groups: given(t.Groups), Webhooks: webhooks.namesOf(t.WebhookIds)}
}

// given returns a list that may be absent; an empty list becomes nil.
func given(list *[]string) []string {
	if list == nil || len(*list) == 0 {
		return nil
	}
	return *list
}

// definition returns the team in the form of the API.
func (e *teamEntry) definition(webhooks names) (api.Team, error) {
	ids, err := webhooks.idsOf("webhook", e.Webhooks)
	d := api.Team{Name: e.Name, WebhookIds: ids}
	if len(e.Members) > 0 {
		d.Members = &e.Members
	}
	if len(e.Groups) > 0 {
		d.Groups = &e.Groups
	}
	return d, err
}

// errMembersHidden keeps teams without their members from being taken for the whole.
var errMembersHidden = errors.New("read teams: a viewer cannot see who is in a team; use a token with the role operator")

// teamsOf returns the server's teams.
func teamsOf(ctx context.Context, server *api.ClientWithResponses) (*api.TeamList, error) {
	answer, err := server.GetTeamsWithResponse(ctx)
	if err := answered(answer, err); err != nil {
		return nil, fmt.Errorf("read teams: %w", err)
	}
	if answer.JSON200 == nil {
		return nil, errForeign
	}
	if hidden := answer.JSON200.MembersHidden; hidden != nil && *hidden {
		return nil, errMembersHidden
	}
	return answer.JSON200, nil
}

// readTeams returns the teams of the files.
func (a *applying) readTeams() ([]teamEntry, error) {
	list := make([]teamEntry, len(a.document.Sections[rulefile.Teams]))
	named := map[string]bool{}
	for i, fields := range a.document.Sections[rulefile.Teams] {
		e := &list[i]
		if err := a.strictly(rulefile.Teams, i, fields, e); err != nil {
			return nil, err
		}
		switch place := fmt.Sprintf("teams[%d].name", i); {
		case e.Name == "":
			return nil, a.misplaced(place, "A team needs a name")
		case named[e.Name]:
			return nil, a.misplaced(place, "Another team has the same name; choose another one")
		}
		named[e.Name] = true
		e.Members, e.Groups, e.Webhooks = given(&e.Members), given(&e.Groups), given(&e.Webhooks)
	}
	return list, nil
}

// teams plans the changes of teams, which are identified by name. The server stores them as one
// list. The first step with a change writes all teams of the files, in their order, followed by the
// other existing ones. Deletions come after all routes that name the teams are changed.
func (a *applying) teams(ctx context.Context) (gone []step, err error) {
	is, err := teamsOf(ctx, a.server)
	if err != nil {
		return nil, err
	}
	want, err := a.readTeams()
	if err != nil {
		return nil, err
	}
	webhooks, err := webhookIDs(ctx, a.server)
	if err != nil {
		return nil, err
	}
	for i := range want {
		for j, name := range want[i].Webhooks {
			if _, there := webhooks.ids[name]; !there && !a.fresh[name] {
				return nil, a.misplaced(fmt.Sprintf("teams[%d].webhooks[%d]", i, j), "There is no webhook with this name; correct it, or add the webhook to the files")
			}
		}
	}
	inFiles := func(t api.Team) bool {
		return slices.ContainsFunc(want, func(e teamEntry) bool { return e.Name == t.Name })
	}
	next, version := is.Teams, is.Version
	write := func(ctx context.Context) error {
		answer, err := a.server.UpdateTeamsWithResponse(ctx, &api.UpdateTeamsParams{IfMatch: tag(version)}, api.TeamListDefinition{Teams: &next})
		if err := a.wrong(answered(answer, err), ""); err != nil {
			return err
		}
		if answer.JSON200 == nil {
			return errForeign
		}
		version = answer.JSON200.Version
		return nil
	}
	upsert := func(ctx context.Context) error {
		// A new webhook has no id before the plan is run.
		webhooks, err := webhookIDs(ctx, a.server)
		if err != nil {
			return err
		}
		others := slices.DeleteFunc(slices.Clone(next), inFiles)
		next = nil
		for i := range want {
			d, err := want[i].definition(webhooks)
			if err != nil {
				return err
			}
			next = append(next, d)
		}
		next = append(next, others...)
		return write(ctx)
	}
	for i := range want {
		s := step{kind: "team", name: want[i].Name, action: created}
		if at := slices.IndexFunc(is.Teams, func(t api.Team) bool { return t.Name == want[i].Name }); at >= 0 {
			s.action = unchanged
			was := teamEntryOf(&is.Teams[at], webhooks)
			s.differJSON("members", was.Members, want[i].Members)
			s.differJSON("groups", was.Groups, want[i].Groups)
			s.differJSON("webhooks", was.Webhooks, want[i].Webhooks)
		}
		if s.action != unchanged && upsert != nil {
			s.run, upsert = upsert, nil
		}
		a.plan.steps = append(a.plan.steps, s)
	}
	for i := range is.Teams {
		name := is.Teams[i].Name
		switch {
		case inFiles(is.Teams[i]):
		case a.prunes(name):
			gone = append(gone, step{kind: "team", name: name, action: deleted, why: a.pruned(), run: func(ctx context.Context) error {
				next = slices.DeleteFunc(slices.Clone(next), func(t api.Team) bool { return t.Name == name })
				return write(ctx)
			}})
		default:
			a.plan.leftAlone++
		}
	}
	return gone, nil
}

// exportedTeams returns the teams in the form of a file.
func exportedTeams(ctx context.Context, server *api.ClientWithResponses) ([]any, error) {
	is, err := teamsOf(ctx, server)
	if err != nil {
		return nil, err
	}
	webhooks, err := webhookIDs(ctx, server)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for i := range is.Teams {
		text, err := json.Marshal(teamEntryOf(&is.Teams[i], webhooks))
		if err != nil {
			return nil, fmt.Errorf("encode team: %w", err)
		}
		var entry any
		if err := decode(text, &entry); err != nil {
			return nil, err
		}
		list = append(list, entry)
	}
	return list, nil
}
