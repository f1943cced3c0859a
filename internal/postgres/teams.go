package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tocsin/alerts/teams"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// firstTeams is the version of the empty list of a tenant that has written none.
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

// Replace writes valid teams in the place of a version of them.
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

// Of returns the names of the teams that a user is in.
func (s *Teams) Of(ctx context.Context, tenant, email string) ([]string, error) {
	row, err := s.db.queries.TeamsAround(ctx, pgq.TeamsAroundParams{TenantID: tenant, Email: email})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read teams of user: %w", err)
	}
	// Whoever is in which team can be read of teams that another program has written, too.
	var list teams.List
	if err := json.Unmarshal(row.Teams, &list); err != nil {
		return nil, fmt.Errorf("the stored teams cannot be read: %w", err)
	}
	return list.Of(email, row.Groups), nil
}
