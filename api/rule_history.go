package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// ruleKind is the kind of a rule in the audit log.
const ruleKind = "rule"

// ListRuleHistory answers GET /rules/{id}/history. A rule has no secrets, so everybody who may read
// the rule may read its former versions.
func (s *server) ListRuleHistory(ctx context.Context, req ListRuleHistoryRequestObject) (ListRuleHistoryResponseObject, error) {
	rule, err := s.namedRule(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	q := AuditQuery{ObjectKind: ruleKind, ObjectID: rule.ID.String()}
	if q.Limit, err = limitOf(req.Params.Limit); err != nil {
		return nil, err
	}
	m, err := decodeMark(listRuleHistory, req.Params.Cursor)
	if err != nil {
		return nil, err
	}
	if m != nil {
		q.Before = m.Number
	}
	found, err := s.Audit.List(ctx, tenantOf(ctx), q)
	if err != nil {
		return nil, fmt.Errorf("list history of rule: %w", err)
	}
	answer := ListRuleHistory200JSONResponse{Items: make([]RuleChange, len(found))}
	for i := range found {
		if answer.Items[i], err = ruleChangeAnswer(&found[i]); err != nil {
			return nil, fmt.Errorf("list history of rule: %w", err)
		}
	}
	answer.NextCursor, err = nextCursor(len(found), q.Limit, func() mark {
		return mark{List: listRuleHistory, Number: found[len(found)-1].ID}
	})
	return answer, err
}

func ruleChangeAnswer(r *AuditRecord) (change RuleChange, err error) {
	change = RuleChange{
		ID: r.ID, At: r.At.UTC(), Actor: r.Actor.Name, ActorKind: r.Actor.Kind, Action: r.Action, Operation: optional(r.Actor.Operation),
	}
	if change.Before, err = definitionNames(r.Before); err != nil {
		return change, err
	}
	change.After, err = definitionNames(r.After)
	return change, err
}

// definitionNames renames the columns in a row of the audit log to the fields of a definition.
func definitionNames(row json.RawMessage) (json.RawMessage, error) {
	if len(row) == 0 {
		return nil, nil
	}
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(row, &columns); err != nil {
		return nil, fmt.Errorf("read audit entry: %w", err)
	}
	fields := make(map[string]json.RawMessage, len(columns))
	for column, value := range columns {
		fields[camelCase(column)] = value
	}
	return json.Marshal(fields)
}

// camelCase returns look_back_seconds as lookBackSeconds.
func camelCase(column string) string {
	first, rest, more := strings.Cut(column, "_")
	for more {
		var word string
		word, rest, more = strings.Cut(rest, "_")
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return first
}
