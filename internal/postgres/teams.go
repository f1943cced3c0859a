package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts/routing"
	"tocsin/alerts/teams"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// firstTeams is the version of the empty list, for a tenant that has written none.
const firstTeams = 1

// Teams is the API's store of teams.
type Teams struct{ db *DB }

// Teams returns the API's store of teams.
func (db *DB) Teams() *Teams { return &Teams{db} }

// Get returns the teams of a tenant.
func (s *Teams) Get(ctx context.Context, tenant string) (api.TeamRecord, error) {
	return getTeams(ctx, s.db.queries, tenant)
}

func getTeams(ctx context.Context, q *pgq.Queries, tenant string) (api.TeamRecord, error) {
	row, err := q.TeamListGet(ctx, tenant)
	if errors.Is(err, pgx.ErrNoRows) {
		return api.TeamRecord{Version: firstTeams}, nil
	}
	if err != nil {
		return api.TeamRecord{}, fmt.Errorf("read teams: %w", err)
	}
	r := api.TeamRecord{Version: row.Version, UpdatedAt: row.UpdatedAt, UpdatedBy: row.UpdatedBy}
	if err := strictly(row.Teams, &r.List); err != nil {
		return r, fmt.Errorf("the stored teams cannot be read: %w", err)
	}
	return r, nil
}

// Replace replaces a version of the teams by a valid list.
func (s *Teams) Replace(ctx context.Context, tenant, actor string, version int64, list teams.List) (api.TeamRecord, error) {
	var done api.TeamRecord
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		if err := q.TeamListLock(ctx, tenant); err != nil {
			return err
		}
		was, err := getTeams(ctx, q, tenant)
		if err != nil {
			return err
		}
		if was.Version != version {
			return fault.New(fault.Stale, "the teams were changed to version %d since version %d was read; read them again and repeat the edit", was.Version, version)
		}
		if err := holdTeams(ctx, q, tenant, &was.List, &list); err != nil {
			return err
		}
		text, err := json.Marshal(list)
		if err != nil {
			return fmt.Errorf("encode teams: %w", err)
		}
		if err := q.TeamListWrite(ctx, pgq.TeamListWriteParams{TenantID: tenant, Teams: text, Version: version + 1, Actor: actor}); err != nil {
			return err
		}
		done, err = getTeams(ctx, q, tenant)
		return err
	})
	if err != nil {
		return api.TeamRecord{}, fmt.Errorf("replace teams: %w", err)
	}
	return done, nil
}

// holdTeams refuses a list in which a team names a webhook that does not exist, or in which a team
// loses a webhook to which alerts escalate, or all its webhooks. A fault that the previous list had
// as well is no reason to refuse. A transaction that writes a routing policy locks the teams, too.
func holdTeams(ctx context.Context, q *pgq.Queries, tenant string, was, list *teams.List) error {
	names := list.Names()
	if hooks := list.WebhookIDs(names); len(hooks) > 0 {
		if err := holdWebhooks(ctx, q, tenant, hooks); err != nil {
			return err
		}
	}
	row, err := q.RoutingPolicyGet(ctx, tenant)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read routing policy: %w", err)
	}
	p, err := policyOf(row.Policy)
	if err != nil {
		return fault.New(fault.Conflict, "%v; save a valid one on the page Routing, then save the teams", err)
	}
	for _, team := range p.Teams() {
		if !slices.Contains(was.Names(), team) {
			continue
		}
		if !slices.Contains(names, team) {
			return fault.New(fault.Conflict, "the team %q is used by %s; remove it there, then here", team, strings.Join(p.NamingTeam(team), ", "))
		}
		if one := []string{team}; len(list.WebhookIDs(one)) == 0 && len(was.WebhookIDs(one)) > 0 {
			return fault.New(fault.Conflict, "the team %q needs a webhook, because it is used by %s; keep one, or remove the team there, then save the teams", team, strings.Join(p.NamingTeam(team), ", "))
		}
	}
	return nil
}

// knownTeams refuses a policy that names a team that does not exist or has no webhook.
func knownTeams(ctx context.Context, q *pgq.Queries, tenant string, p *routing.Policy) error {
	wanted := p.Teams()
	if len(wanted) == 0 {
		return nil
	}
	if err := q.TeamListLock(ctx, tenant); err != nil {
		return err
	}
	r, err := getTeams(ctx, q, tenant)
	if err != nil {
		return err
	}
	names := r.List.Names()
	for _, team := range wanted {
		if !slices.Contains(names, team) {
			return fault.New(fault.Conflict, "team %q no longer exists; name another one", team)
		}
		if len(r.List.WebhookIDs([]string{team})) == 0 {
			return fault.New(fault.Conflict, "team %q has no webhook; add one, or name another team", team)
		}
	}
	return nil
}

// unteamed returns a fault if a team is notified through the webhook.
func unteamed(ctx context.Context, q *pgq.Queries, tenant string, webhook uuid.UUID) error {
	r, err := getTeams(ctx, q, tenant)
	if err != nil {
		return err
	}
	for i := range r.List.Teams {
		if t := &r.List.Teams[i]; slices.Contains(t.WebhookIDs, webhook) {
			return fault.New(fault.Conflict, "the webhook notifies the team %q; choose another one for the team, then delete this one", t.Name)
		}
	}
	return nil
}

// Of returns the names of the teams that a user is in.
func (s *Teams) Of(ctx context.Context, tenant, email string) ([]string, error) {
	row, err := s.db.queries.TeamsAround(ctx, pgq.TeamsAroundParams{TenantID: tenant, Email: email})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read teams of user: %w", err)
	}
	// The members can be read even if another version of the program wrote the teams.
	var list teams.List
	if err := json.Unmarshal(row.Teams, &list); err != nil {
		return nil, fmt.Errorf("the stored teams cannot be read: %w", err)
	}
	return list.Of(email, row.Groups), nil
}
