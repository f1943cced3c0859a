package model

import (
	"tocsin/alerts/routing"
	"tocsin/evaluator"
)

// Policy is the row of a tenant's routing policy.
type Policy struct {
	routing.Policy
	// Version is 1 of the empty policy that nobody has edited.
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

// ReplacePolicy edits a version of a tenant's routing policy, and changes the rules that use it.
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

// route has a rule that was read know the policy, if it uses that.
func (db *Postgres) route(r *evaluator.StoredRule) {
	if !r.Rule.UseRoutingPolicy {
		return
	}
	p := db.RoutingPolicy(r.Rule.TenantID)
	r.Router, r.Err = routing.Compile(p.Version, p.Policy)
}
