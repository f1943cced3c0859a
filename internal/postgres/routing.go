package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/alerts/routing"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
)

// A routing policy reaches commits in the same way as rules do. A change of the policy locks the
// checkpoint of the tenant's partition, raises the rules revision, and marks the rules that use the
// policy as changed. A commit made under the previous policy is then stale, and the replica reads
// these rules again, together with the policy. So a commit does not read the policy, and never
// decides by one that is not in force.

// firstPolicy is the version of the empty policy, for a tenant that has written none.
const firstPolicy = 1

// Routing is the API's store of routing policies.
type Routing struct{ db *DB }

// Routing returns the API's store of routing policies.
func (db *DB) Routing() *Routing { return &Routing{db} }

// Get returns the policy of a tenant.
func (s *Routing) Get(ctx context.Context, tenant string) (api.RoutingRecord, error) {
	return getPolicy(ctx, s.db.queries, tenant)
}

func getPolicy(ctx context.Context, q *pgq.Queries, tenant string) (api.RoutingRecord, error) {
	r := api.RoutingRecord{Version: firstPolicy}
	row, err := q.RoutingPolicyGet(ctx, tenant)
	switch {
	case err == nil:
		r.Version, r.UpdatedAt, r.UpdatedBy = row.Version, row.UpdatedAt, row.UpdatedBy
		if r.Policy, err = policyOf(row.Policy); err == nil {
			_, err = routing.Compile(row.Version, r.Policy)
		}
		if err != nil {
			r.Problem = err.Error()
		}
	case !errors.Is(err, pgx.ErrNoRows):
		return r, fmt.Errorf("read routing policy: %w", err)
	}
	if r.Rules, err = q.RoutingRulesCount(ctx, tenant); err != nil {
		return r, fmt.Errorf("count rules that use the routing policy: %w", err)
	}
	return r, nil
}

// policyOf decodes a stored policy.
func policyOf(text []byte) (p routing.Policy, err error) {
	if err := strictly(text, &p); err != nil {
		return routing.Policy{}, fmt.Errorf("the stored routing policy cannot be read: %w", err)
	}
	return p, nil
}

// Replace replaces a version of the policy by a valid policy.
func (s *Routing) Replace(ctx context.Context, tenant, actor string, version int64, p routing.Policy) (api.RoutingRecord, error) {
	var done api.RoutingRecord
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		change, err := beginChange(ctx, q, tenant)
		if err != nil {
			return err
		}
		was, err := getPolicy(ctx, q, tenant)
		if err != nil {
			return err
		}
		if was.Version != version {
			return fault.New(fault.Stale, "the routing policy was changed to version %d since version %d was read; read it again and repeat the edit", was.Version, version)
		}
		if err := knownTeams(ctx, q, tenant, &p); err != nil {
			return err
		}
		if err := holdWebhooks(ctx, q, tenant, p.WebhookIDs()); err != nil {
			return err
		}
		text, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("encode routing policy: %w", err)
		}
		if err := q.RoutingPolicyWrite(ctx, pgq.RoutingPolicyWriteParams{TenantID: tenant, Policy: text, Version: version + 1, Actor: actor}); err != nil {
			return fmt.Errorf("write routing policy: %w", err)
		}
		changed := pgq.RoutingRulesChangedParams{Partition: change.Partition, Changed: change.RulesRevision, TenantID: tenant}
		if err := q.RoutingRulesChanged(ctx, changed); err != nil {
			return fmt.Errorf("record change of rules: %w", err)
		}
		done, err = getPolicy(ctx, q, tenant)
		return err
	})
	if err != nil {
		return api.RoutingRecord{}, fmt.Errorf("replace routing policy: %w", err)
	}
	return done, nil
}

// unrouted returns a fault if a route of the tenant's policy leads to the webhook.
func unrouted(ctx context.Context, q *pgq.Queries, tenant string, webhook uuid.UUID) error {
	row, err := q.RoutingPolicyGet(ctx, tenant)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read routing policy: %w", err)
	}
	p, err := policyOf(row.Policy)
	if err != nil {
		return fault.New(fault.Conflict, "%v; save a valid one on the page Routing, then delete the webhook", err)
	}
	if names := p.Naming(webhook); len(names) > 0 {
		return fault.New(fault.Conflict, "the webhook is used by %s of the routing policy; remove it there, then delete it", strings.Join(names, ", "))
	}
	return nil
}

// routersOf returns compiled policies of some tenants, and why those of others cannot be used.
func routersOf(ctx context.Context, q *pgq.Queries, tenants []string) (routers map[string]*routing.Router, unreadable map[string]error, err error) {
	rows, err := q.RoutingPolicies(ctx, tenants)
	if err != nil {
		return nil, nil, fmt.Errorf("read routing policies: %w", err)
	}
	routers, unreadable = map[string]*routing.Router{}, map[string]error{}
	none, err := routing.Compile(firstPolicy, routing.Policy{})
	if err != nil {
		return nil, nil, err
	}
	for _, tenant := range tenants {
		routers[tenant] = none
	}
	for _, row := range rows {
		p, err := policyOf(row.Policy)
		if err == nil {
			routers[row.TenantID], err = routing.Compile(row.Version, p)
		}
		if err != nil {
			delete(routers, row.TenantID)
			unreadable[row.TenantID] = fmt.Errorf("the rule cannot be routed: %w; save a valid routing policy on the page Routing", err)
		}
	}
	return routers, unreadable, nil
}
