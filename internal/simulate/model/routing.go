package model

import (
	"tocsin/alerts/routing"
	"tocsin/evaluator/ruleset"
)

// Policy is the row of a tenant's routing policy.
type Policy struct {
	routing.Policy
	// Version is 1 for the empty policy that has not been edited.
	Version int64
}

// RoutingPolicy returns the routing policy of a tenant.
func (db *Postgres) RoutingPolicy(tenant string) Policy {
	p, there := db.policies.get(tenant)
	if !there {
		p.Version = 1
	}
	return p
}

// ReplacePolicy edits a version of a tenant's routing policy, and marks the rules that use it as
// changed.
func (db *Postgres) ReplacePolicy(tenant string, version int64, p routing.Policy) error {
	return db.tx(func() error {
		if db.RoutingPolicy(tenant).Version != version {
			return ErrConflict
		}
		for _, id := range p.WebhookIDs() {
			if w, there := db.webhooks.get(id); !there || w.TenantID != tenant {
				return ErrConflict
			}
		}
		revision, _, err := db.change(tenant)
		if err != nil {
			return err
		}
		db.policies.put(tenant, Policy{p, version + 1})
		for _, id := range byID(&db.rules) {
			r := db.rules.rows[id]
			if r.TenantID == tenant && r.UseRoutingPolicy && !r.Deleted && db.has(PolicyChangesRules) {
				r.Changed = revision
				db.rules.put(id, r)
			}
		}
		return nil
	})
}

// route adds the policy to a rule that was read, if the rule uses it.
func (db *Postgres) route(r *ruleset.Stored) {
	if !r.Rule.UseRoutingPolicy {
		return
	}
	p := db.RoutingPolicy(r.Rule.TenantID)
	r.Router, r.Err = routing.Compile(p.Version, p.Policy)
}
