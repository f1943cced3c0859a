package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tocsin/internal/fault"
	"tocsin/rules"
)

// TestDescriptionAgreesWithTheDomain checks that the schemas whose Go types belong to the domain,
// and the definition of a rule, have the same fields as those types.
func TestDescriptionAgreesWithTheDomain(t *testing.T) {
	doc, err := newDocument()
	if err != nil {
		t.Fatal(err)
	}
	var d description
	if err := json.Unmarshal(doc.json, &d); err != nil {
		t.Fatal(err)
	}
	for name, domain := range map[string]reflect.Type{
		"Scope":          reflect.TypeFor[rules.Scope](),
		"Filter":         reflect.TypeFor[rules.Filter](),
		"AttributeMatch": reflect.TypeFor[rules.AttributeMatch](),
		"Target":         reflect.TypeFor[rules.Target](),
		"FieldError":     reflect.TypeFor[fault.Field](),
		"RuleDefinition": reflect.TypeFor[rules.Definition](),
	} {
		properties := d.Components.Schemas[name].Properties
		if name == "RuleDefinition" {
			delete(properties, "webhooks") // the API's alternative to webhookIds
		}
		described := slices.Sorted(maps.Keys(properties))
		if diff := cmp.Diff(slices.Sorted(maps.Keys(jsonFields(domain))), described); diff != "" {
			t.Errorf("%s (-Go +description)\n%s", name, diff)
		}
	}
}

// TestEveryOperationIsOnThePage checks that every operation of the description is on the generated
// page.
func TestEveryOperationIsOnThePage(t *testing.T) {
	doc, err := newDocument()
	if err != nil {
		t.Fatal(err)
	}
	operations := 0
	for m := range reflect.TypeFor[StrictServerInterface]().Methods() {
		operations++
		id := []byte(m.Name)
		id[0] += 'a' - 'A'
		if !strings.Contains(string(doc.page), `<article id="`+string(id)+`">`) {
			t.Errorf("the page lacks %s", id)
		}
	}
	listed := []string{
		"id", "state", "severity", "ruleId", "application", "route", "signature", "environment", "executionId", "correlationId", "attribute",
		"from", "to", "q", "mine", "assignee", "snoozed", "unread", "perExchange", "cursor", "limit",
	}
	if operations == 0 {
		t.Error("there are no operations")
	}
	if want := listed; !cmp.Equal(doc.parameters["listAlerts"], want) {
		t.Errorf("listAlerts takes %v, want %v", doc.parameters["listAlerts"], want)
	}
}
