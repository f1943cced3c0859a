package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

const (
	// maxOwnViews bounds the views of one person; maxSharedViews bounds those that a tenant shares.
	// Two people who save at once may exceed a bound by one.
	maxOwnViews    = 100
	maxSharedViews = 200
	// mostViewsListed is more than both together.
	mostViewsListed = 2 * (maxOwnViews + maxSharedViews)
)

// Views is the API's store of saved views.
type Views struct{ db *DB }

// Views returns the API's store of saved views.
func (db *DB) Views() *Views { return &Views{db} }

// List returns the views of a person and the shared ones, by name.
func (s *Views) List(ctx context.Context, tenant, actor string) ([]api.ViewRecord, error) {
	rows, err := s.db.queries.ViewList(ctx, pgq.ViewListParams{TenantID: tenant, Owner: actor, Most: mostViewsListed})
	if err != nil {
		return nil, fmt.Errorf("list views: %w", err)
	}
	list := make([]api.ViewRecord, len(rows))
	for i, row := range rows {
		list[i] = viewRecord(row)
	}
	return list, nil
}

// Get returns a view that a person can see.
func (s *Views) Get(ctx context.Context, tenant, actor string, id uuid.UUID) (api.ViewRecord, error) {
	row, err := s.db.queries.ViewGet(ctx, pgq.ViewGetParams{TenantID: tenant, Owner: actor, ViewID: id})
	if err != nil {
		return api.ViewRecord{}, fmt.Errorf("read view: %w", notFound(err, "view"))
	}
	return viewRecord(row), nil
}

// Save writes a view. It replaces a view of the same owner and name, which keeps its id.
func (s *Views) Save(ctx context.Context, tenant string, v api.ViewRecord) (api.ViewRecord, error) {
	var saved api.ViewRecord
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		others, err := q.ViewsCount(ctx, pgq.ViewsCountParams{TenantID: tenant, Owner: v.Owner, Name: v.Name})
		switch {
		case err != nil:
			return err
		case others.Own >= maxOwnViews:
			return fault.New(fault.Conflict, "you can have at most %d views; delete one of them", maxOwnViews)
		case v.Shared && others.Shared >= maxSharedViews:
			return fault.New(fault.Conflict, "there can be at most %d shared views; delete one of them", maxSharedViews)
		}
		row, err := q.ViewWrite(ctx, pgq.ViewWriteParams{
			ViewID: uuid.Must(uuid.NewV7()), TenantID: tenant, Owner: v.Owner, Name: v.Name, Search: v.Search, Shared: v.Shared,
		})
		saved = viewRecord(row)
		return err
	})
	if err != nil {
		return api.ViewRecord{}, fmt.Errorf("save view: %w", err)
	}
	return saved, nil
}

// Delete deletes a view.
func (s *Views) Delete(ctx context.Context, tenant string, id uuid.UUID) error {
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		deleted, err := q.ViewDelete(ctx, pgq.ViewDeleteParams{TenantID: tenant, ViewID: id})
		if err == nil && deleted == 0 {
			return noSuch("view")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete view: %w", err)
	}
	return nil
}

func viewRecord(row pgq.SavedView) api.ViewRecord {
	return api.ViewRecord{ID: row.ViewID, Owner: row.Owner, Name: row.Name, Search: row.Search, Shared: row.Shared, UpdatedAt: row.UpdatedAt}
}
