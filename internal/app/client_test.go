package app_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"tocsin/client"
	"tocsin/internal/access"
)

// TestTheClientSpeaksToTheServer creates and reads objects through the generated client, and gets
// errors.
func TestTheClientSpeaksToTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	nobody, err := client.New(base, "")
	if err != nil {
		t.Fatal(err)
	}
	refused, err := nobody.ListAlertsWithResponse(t.Context(), &client.ListAlertsParams{})
	if problem, ok := errors.AsType[*client.Problem](client.Check(refused, err)); !ok || problem.Status != http.StatusUnauthorized || problem.Code != "unauthorized" {
		t.Errorf("without a token: %v, %v", refused, err)
	}

	c, err := client.New(base, newCaller(t, base).signIn(adminEmail, adminPassword).withToken("client", access.Editor).token)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := c.CreateRuleWithResponse(t.Context(), client.RuleDefinition{FireMode: client.FireModePEREXCHANGE, Severity: client.SeverityCRITICAL})
	if problem, ok := errors.AsType[*client.Problem](client.Check(wrong, err)); !ok || len(problem.Errors) == 0 || problem.Errors[0].Field != "name" {
		t.Errorf("a rule without a name: %v", client.Check(wrong, err))
	}
	definition := client.RuleDefinition{
		Name: "Orders refused", FireMode: client.FireModePEREXCHANGE, Severity: client.SeverityCRITICAL,
		Scope: client.Scope{Applications: new([]string{"orders"})}, Filter: client.Filter{ErrorMessageContains: new("refused")},
	}
	made, err := c.CreateRuleWithResponse(t.Context(), definition)
	if err := client.Check(made, err); err != nil {
		t.Fatal(err)
	}
	read, err := c.GetRuleWithResponse(t.Context(), made.JSON201.ID)
	if err := client.Check(read, err); err != nil {
		t.Fatal(err)
	}
	if got := read.JSON200; got.Name != definition.Name || !slices.Equal(*got.Scope.Applications, []string{"orders"}) {
		t.Errorf("the rule is %+v", got)
	}
	page, err := c.ListAlertsWithResponse(t.Context(), &client.ListAlertsParams{})
	if err := client.Check(page, err); err != nil || len(page.JSON200.Items) != 0 {
		t.Errorf("alerts: %v, %v", page, err)
	}
}
