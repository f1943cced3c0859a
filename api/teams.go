package api

import (
	"context"
	"fmt"
	"time"

	"tocsin/alerts/teams"
	"tocsin/internal/access"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// TeamStore stores the teams of each tenant.
type TeamStore interface {
	Get(ctx context.Context, tenant string) (TeamRecord, error)
	// Replace writes valid teams. A version other than the stored one is a fault of kind Stale.
	// These are faults of kind Conflict: a webhook that was deleted meanwhile, and removing a team
	// to which alerts escalate, or its last webhook.
	Replace(ctx context.Context, tenant, actor string, version int64, list teams.List) (TeamRecord, error)
	// Of returns the names of the teams that a user is in, by e-mail address.
	Of(ctx context.Context, tenant, email string) ([]string, error)
}

// TeamRecord is the teams of a tenant as people see them.
type TeamRecord struct {
	List teams.List
	// Version counts the edits, from 1. Version 1 is the empty list that nobody has edited, with
	// the zero UpdatedAt.
	Version   int64
	UpdatedAt time.Time
	UpdatedBy string
}

// GetTeams answers GET /teams.
func (s *server) GetTeams(ctx context.Context, _ GetTeamsRequestObject) (GetTeamsResponseObject, error) {
	r, err := s.Teams.Get(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("get teams: %w", err)
	}
	answer := teamsAnswer(&r)
	if !identityOf(ctx).Role.Allows(access.Operator) {
		// The members are shown only to people who may assign alerts.
		answer.MembersHidden = new(true)
		for i := range answer.Teams {
			answer.Teams[i].Members, answer.Teams[i].Groups = nil, nil
		}
	}
	return GetTeams200JSONResponse{Body: answer, Headers: GetTeams200ResponseHeaders{ETag: etag(r.Version)}}, nil
}

// UpdateTeams answers PUT /teams.
func (s *server) UpdateTeams(ctx context.Context, req UpdateTeamsRequestObject) (UpdateTeamsResponseObject, error) {
	version, err := editedVersion(req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	if err := s.checkTeams(ctx, req.Body); err != nil {
		return nil, err
	}
	r, err := s.Teams.Replace(ctx, tenantOf(ctx), identityOf(ctx).Actor, version, *req.Body)
	if err != nil {
		return nil, fmt.Errorf("update teams: %w", err)
	}
	return UpdateTeams200JSONResponse{Body: teamsAnswer(&r), Headers: UpdateTeams200ResponseHeaders{ETag: etag(r.Version)}}, nil
}

// checkTeams returns what is wrong with teams.
func (s *server) checkTeams(ctx context.Context, list *teams.List) error {
	var wrong []fault.Field
	if err := list.Check(s.validator); err != nil {
		if fault.KindOf(err) != fault.Invalid {
			return err
		}
		wrong = problemOf(err).Errors
	}
	hooks, err := s.webhookNames(ctx)
	if err != nil {
		return err
	}
	for i := range list.Teams {
		for j, id := range list.Teams[i].WebhookIDs {
			if _, exists := hooks.names[id]; !exists {
				wrong = append(wrong, fault.Field{Field: fmt.Sprintf("teams[%d].webhookIds[%d]", i, j), Code: "not_found", Message: "This webhook does not exist; choose another one"})
			}
		}
	}
	return fault.InvalidFields("the list of teams", wrong)
}

func teamsAnswer(r *TeamRecord) TeamList {
	answer := TeamList{Version: r.Version, Teams: make([]Team, len(r.List.Teams)), UpdatedAt: instantOf(r.UpdatedAt), UpdatedBy: optional(r.UpdatedBy)}
	for i, t := range r.List.Teams {
		t.Members, t.Groups, t.WebhookIDs = listed(t.Members), listed(t.Groups), listed(t.WebhookIDs)
		answer.Teams[i] = t
	}
	return answer
}

// readerOf returns the caller, and the targets of rules that mean the caller: the name that alerts
// show, the role, and the teams of the caller. A token is in no team.
func (s *server) readerOf(ctx context.Context) (Reader, error) {
	who := identityOf(ctx)
	reader := Reader{Actor: who.Actor, Targets: []rules.Target{
		{Kind: rules.TargetUser, Name: who.Actor}, {Kind: rules.TargetRole, Name: string(who.Role)},
	}}
	if who.Kind == kindToken {
		return reader, nil
	}
	names, err := s.Teams.Of(ctx, who.Tenant, who.Actor)
	if err != nil {
		return reader, fmt.Errorf("read teams of the caller: %w", err)
	}
	for _, name := range names {
		reader.Targets = append(reader.Targets, rules.Target{Kind: rules.TargetTeam, Name: name})
	}
	return reader, nil
}
