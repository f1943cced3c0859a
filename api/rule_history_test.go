package api_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/access"
)

// auditMemory has entries, newest first, and records its queries.
type auditMemory struct {
	entries []api.AuditRecord
	asked   api.AuditQuery
}

func (m *auditMemory) List(_ context.Context, _ string, q api.AuditQuery) (found []api.AuditRecord, _ error) {
	m.asked = q
	for i := range m.entries {
		if len(found) < q.Limit && (q.Before == 0 || m.entries[i].ID < q.Before) {
			found = append(found, m.entries[i])
		}
	}
	return found, nil
}

func TestTheHistoryOfARuleSpeaksOfItsDefinition(t *testing.T) {
	ada := access.Actor{Kind: "user", Name: "ada@example.com", Via: "session", Address: "192.0.2.1", Operation: "updateRule"}
	audit := &auditMemory{entries: []api.AuditRecord{
		{
			ID: 3, At: instant(), Actor: ada, Action: "update",
			Before: json.RawMessage(`{"look_back_seconds": 60, "scope": {"applications": ["a"]}}`),
			After:  json.RawMessage(`{"look_back_seconds": 90, "scope": {"applications": ["b"]}}`),
		},
		{ID: 2, At: instant(), Actor: ada, Action: "bind", After: json.RawMessage(`{"webhook_id": "w", "webhook": "#ops"}`)},
		{ID: 1, At: instant(), Actor: ada, Action: "create", After: json.RawMessage(`{"name": "x"}`)},
	}}
	b := newBench(t, func(o *api.Options) { o.Audit = audit })
	rule := into[api.Rule](b.do("POST", "/api/v1/rules", ruleBody).want(201)).ID.String()

	first := into[api.RuleChangePage](b.do("GET", "/api/v1/rules/"+rule+"/history?limit=2", "").want(200))
	if audit.asked.ObjectKind != "rule" || audit.asked.ObjectID != rule {
		t.Errorf("asked for %+v", audit.asked)
	}
	operation := "updateRule"
	want := []api.RuleChange{
		{
			ID: 3, At: instant(), Actor: "ada@example.com", ActorKind: "user", Action: "update", Operation: &operation,
			Before: json.RawMessage(`{"lookBackSeconds":60,"scope":{"applications":["a"]}}`),
			After:  json.RawMessage(`{"lookBackSeconds":90,"scope":{"applications":["b"]}}`),
		},
		{
			ID: 2, At: instant(), Actor: "ada@example.com", ActorKind: "user", Action: "bind", Operation: &operation,
			After: json.RawMessage(`{"webhook":"#ops","webhookId":"w"}`),
		},
	}
	if diff := cmp.Diff(want, first.Items); diff != "" {
		t.Error(diff)
	}
	rest := into[api.RuleChangePage](b.do("GET", "/api/v1/rules/"+rule+"/history?cursor="+*first.NextCursor, "").want(200))
	if len(rest.Items) != 1 || rest.Items[0].ID != 1 || rest.NextCursor != nil {
		t.Errorf("the rest is %+v", rest)
	}
	b.do("GET", "/api/v1/rules/"+uuid.NewString()+"/history", "").problem(404, "not_found")
	b.do("GET", "/api/v1/rules/"+rule+"/history?cursor=x", "").problem(400, "invalid")
}

func TestTheDayOfARuleIsCountedInSteps(t *testing.T) {
	b := newBench(t)
	rule := into[api.Rule](b.do("POST", "/api/v1/rules", ruleBody).want(201)).ID.String()
	day := into[api.RuleDay](b.do("GET", "/api/v1/rules/"+rule+"/activity", "").want(200))
	if !day.From.Equal(instant()) || day.BucketSeconds != 900 || !day.Complete || len(day.Buckets) != api.DaySteps ||
		day.Buckets[0] != 3 || day.Buckets[api.DaySteps-1] != 1 {
		t.Errorf("%+v", day)
	}
	b.do("GET", "/api/v1/rules/"+uuid.NewString()+"/activity", "").problem(404, "not_found")
}
