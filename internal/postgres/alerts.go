package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/postgres/pgq"
)

// alertBatch is the alerts that a commit may insert, in stored form.
type alertBatch struct {
	rows pgq.AlertInsertParams
	// someExist says that some alerts may exist already; the insertion leaves them as they are.
	// Without it, the insertion fails if an alert exists.
	someExist bool
}

// alertRows returns alerts in stored form.
func alertRows(instances []alerts.Instance) (*alertBatch, error) {
	b := &alertBatch{rows: alertParams(len(instances))}
	for i := range instances {
		a := &instances[i]
		exchange, err := json.Marshal(a.Exchange)
		if err != nil {
			return nil, fmt.Errorf("encode exchange: %w", err)
		}
		routing, err := routingColumn(a.Routing)
		if err != nil {
			return nil, err
		}
		p := &b.rows
		p.AlertIds = append(p.AlertIds, a.ID)
		p.TenantIds = append(p.TenantIds, a.TenantID)
		p.RuleIds = append(p.RuleIds, a.RuleID)
		p.RuleVersions = append(p.RuleVersions, a.RuleVersion)
		p.Severities = append(p.Severities, string(a.Severity))
		p.Titles = append(p.Titles, a.Title)
		p.Messages = append(p.Messages, a.Message)
		p.ExecutionIds = append(p.ExecutionIds, a.Exchange.ExecutionID)
		p.StartTimesNs = append(p.StartTimesNs, a.Exchange.StartTimeNS)
		p.Applications = append(p.Applications, a.Exchange.Application)
		p.Routes = append(p.Routes, a.Exchange.Route)
		p.Exchanges = append(p.Exchanges, exchange)
		p.Signatures = append(p.Signatures, alerts.Signature(&a.Exchange))
		p.Lates = append(p.Lates, a.Late)
		p.EndedNs = append(p.EndedNs, a.Exchange.EndedNS())
		p.Routings = append(p.Routings, routing)
	}
	return b, nil
}

// alertParams returns parameters with room for a number of alerts.
func alertParams(room int) pgq.AlertInsertParams {
	return pgq.AlertInsertParams{
		AlertIds: make([]uuid.UUID, 0, room), TenantIds: make([]string, 0, room), RuleIds: make([]uuid.UUID, 0, room),
		RuleVersions: make([]int64, 0, room), Severities: make([]string, 0, room), Titles: make([]string, 0, room),
		Messages: make([]string, 0, room), ExecutionIds: make([]string, 0, room), StartTimesNs: make([]int64, 0, room),
		Applications: make([]string, 0, room), Routes: make([]string, 0, room), Exchanges: make([][]byte, 0, room),
		Signatures: make([]string, 0, room), Lates: make([]bool, 0, room), EndedNs: make([]int64, 0, room), Routings: make([][]byte, 0, room),
	}
}

// routingColumn returns the routing of an alert in stored form; nil is null.
func routingColumn(r *alerts.Routing) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode routing: %w", err)
	}
	return text, nil
}

// insert inserts alerts and returns the ids of those that are new. It leaves out alerts of
// exchanges that began before the retention floors of their rules.
func (b *alertBatch) insert(ctx context.Context, q *pgq.Queries, floors map[uuid.UUID]int64) (inserted []uuid.UUID, err error) {
	p := b.of(floors)
	if len(p.AlertIds) == 0 {
		return nil, nil
	}
	if b.someExist {
		inserted, err = q.AlertInsertMissing(ctx, pgq.AlertInsertMissingParams(p))
	} else {
		inserted, err = p.AlertIds, q.AlertInsert(ctx, p)
	}
	if err != nil {
		return nil, fmt.Errorf("insert alerts: %w", err)
	}
	return inserted, nil
}

// of returns the alerts that a commit may write.
func (b *alertBatch) of(floors map[uuid.UUID]int64) pgq.AlertInsertParams {
	var kept []int
	all := &b.rows
	for i, rule := range all.RuleIds {
		if floor, exists := floors[rule]; exists && all.StartTimesNs[i] >= floor {
			kept = append(kept, i)
		}
	}
	if len(kept) == len(all.AlertIds) {
		return *all
	}
	return pgq.AlertInsertParams{
		AlertIds: pick(all.AlertIds, kept), TenantIds: pick(all.TenantIds, kept), RuleIds: pick(all.RuleIds, kept),
		RuleVersions: pick(all.RuleVersions, kept), Severities: pick(all.Severities, kept), Titles: pick(all.Titles, kept),
		Messages: pick(all.Messages, kept), ExecutionIds: pick(all.ExecutionIds, kept), StartTimesNs: pick(all.StartTimesNs, kept),
		Applications: pick(all.Applications, kept), Routes: pick(all.Routes, kept), Exchanges: pick(all.Exchanges, kept),
		Signatures: pick(all.Signatures, kept), Lates: pick(all.Lates, kept), EndedNs: pick(all.EndedNs, kept), Routings: pick(all.Routings, kept),
	}
}

// pick returns the elements at some places of a list.
func pick[T any](list []T, at []int) []T {
	picked := make([]T, len(at))
	for i, n := range at {
		picked[i] = list[n]
	}
	return picked
}

// doubt decides whether a commit must expect that some of its alerts exist. Expecting it costs
// Postgres a seventh of the commit. A look-back often finds known exchanges. A forward scan does
// not, except if rows are duplicated, share their ids, or are evaluated again. If the guess is wrong,
// a unique constraint fails, and the commit is repeated.
type doubt struct{ commits atomic.Int32 }

// doubted is how many commits expect existing alerts after one that met some.
const doubted = 100

// settle calls write, and calls it again if the first call met alerts that it did not expect.
func (d *doubt) settle(instances []alerts.Instance, write func(someExist bool) error) error {
	if len(instances) == 0 {
		return write(false)
	}
	doubts := d.commits.Load() > 0
	if doubts {
		d.commits.Add(-1)
	}
	if doubts || slices.ContainsFunc(instances, func(a alerts.Instance) bool { return a.Late }) {
		return write(true)
	}
	err := write(false)
	if isUnique(err, "alert_once") || isUnique(err, "alert_pkey") {
		d.commits.Store(doubted)
		return write(true)
	}
	return err
}
