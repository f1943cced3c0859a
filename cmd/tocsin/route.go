package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	api "tocsin/client"
	"tocsin/internal/rulefile"
)

// route are the commands for the routing policy.
type route struct {
	Test routeTest `cmd:"" help:"Show who would be notified of an alert, and why."`
}

// routeTest asks who would be notified.
type routeTest struct {
	serverFlags

	Alert       string            `help:"ID of an alert. Otherwise, the flags below describe the alert." placeholder:"ID"`
	Rule        string            `help:"Name of the rule that raises the alert. Otherwise, a rule with the severity and labels below." placeholder:"NAME"`
	Severity    string            `help:"Severity: critical, warning, info." placeholder:"SEVERITY"`
	Label       map[string]string `help:"Labels of the rule." placeholder:"KEY=VALUE;…"`
	Application string            `help:"Application of the exchange." placeholder:"NAME"`
	Route       string            `help:"Route of the exchange." placeholder:"NAME"`
	Environment string            `help:"Environment of the exchange." placeholder:"NAME"`
	ErrorType   string            `help:"Error type of the exchange." placeholder:"TYPE"`
	Message     string            `help:"Error message of the exchange." placeholder:"TEXT"`
	Attribute   map[string]string `help:"Attributes of the exchange." placeholder:"KEY=VALUE;…"`
	File        []string          `help:"Test the routes in a file instead of the stored policy." short:"f" placeholder:"FILE"`
	Expect      []string          `help:"Fail unless exactly these webhooks are notified; none means nobody." placeholder:"NAME,…"`
}

// Run asks and prints.
func (r *routeTest) Run(ctx context.Context, out io.Writer) error {
	server, err := r.open()
	if err != nil {
		return err
	}
	body, err := r.request(ctx, server)
	if err != nil {
		return err
	}
	answer, err := server.TestRoutingWithResponse(ctx, *body)
	if err := answered(answer, err); err != nil {
		return fmt.Errorf("test routing: %w", err)
	}
	if answer.JSON200 == nil {
		return errForeign
	}
	var webhooks names
	if len(answer.JSON200.Escalation) > 0 {
		if webhooks, err = webhookIDs(ctx, server); err != nil {
			return err
		}
		if body.Planned != nil {
			for _, w := range *body.Planned.Webhooks {
				webhooks.names[w.ID] = w.Name
			}
		}
	}
	if err := printRouting(out, answer.JSON200, &webhooks); err != nil {
		return err
	}
	return r.expected(answer.JSON200)
}

// expected returns an error if others than expected are notified.
func (r *routeTest) expected(answer *api.RoutingTestAnswer) error {
	if len(r.Expect) == 0 {
		return nil
	}
	want := slices.Clone(r.Expect)
	if len(want) == 1 && want[0] == "none" {
		want = nil
	}
	var got []string
	for _, w := range answer.Webhooks {
		got = append(got, w.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return fmt.Errorf("expected %q, but %q are notified", want, got)
	}
	return nil
}

func printRouting(out io.Writer, answer *api.RoutingTestAnswer, webhooks *names) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var errs []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(table, format, args...)
		errs = append(errs, err)
	}
	if len(answer.Routes) > 0 {
		line("ROUTE\tVERDICT\tWHY\n")
	}
	for _, route := range answer.Routes {
		why := ""
		if len(route.Unmet) > 0 {
			why = "Not met: " + strings.Join(route.Unmet, ", ")
		}
		line("%s\t%s\t%s\n", shown(route.Name), route.Verdict, why)
	}
	errs = append(errs, table.Flush())
	switch answer.Answer { //nolint:exhaustive // who took a route is printed with the webhooks
	case "WEBHOOKS":
		line("The rule names its own webhooks, so the routing policy does not apply.\n")
	case "NO_ROUTE":
		line("No route matches, and there is no default.\n")
	case "DEFAULT":
		line("No route matches, so the alert goes to the default.\n")
	}
	if len(answer.Webhooks) == 0 {
		line("Nobody is notified.\n")
	}
	for _, w := range answer.Webhooks {
		text := "→ " + shown(w.Name)
		if len(w.Routes) > 0 {
			text += " by " + shown(strings.Join(w.Routes, ", "))
		}
		if !w.Enabled {
			text += "; it is disabled, and its messages wait"
		}
		if w.QuietUntil != nil {
			text += "; held by its quiet hours until " + w.QuietUntil.UTC().Format(time.RFC3339)
		}
		line("%s\n", text)
	}
	for _, step := range answer.Escalation {
		to := webhooks.namesOf(step.WebhookIds)
		for _, team := range given(step.Teams) {
			to = append(to, "team "+team)
		}
		line("→ after %d min without acknowledgement: %s\n", step.AfterMinutes, shown(strings.Join(to, ", ")))
	}
	if by := answer.SuppressedBy; by != nil && len(answer.Webhooks)+len(answer.Escalation) > 0 {
		line("At present the silence %s, created by %s, suppresses the messages.\n", shown(by.Name), shown(by.CreatedBy))
	}
	if s := answer.Stored; s != nil {
		line("When the alert fired, version %d of the policy applied, with the result %s.\n", s.PolicyVersion, s.Answer)
	}
	return errors.Join(append(errs, table.Flush())...)
}

// planned returns the policy in the files, with the webhooks and teams that the files make and the policy may name.
func (r *routeTest) planned(ctx context.Context, server *api.ClientWithResponses) (*api.RoutingPolicyDefinition, *api.RoutingTestPlanned, error) {
	a := &applying{filesFlags: &filesFlags{File: r.File}, server: server}
	var err error
	if a.document, err = a.read(os.Stdin); err != nil {
		return nil, nil, err
	}
	if a.document.Sections[rulefile.Routes] == nil {
		return nil, nil, errors.New("the files have no routes; add them, or leave out --file to test the policy of the server")
	}
	list, err := a.readRoutes()
	if err != nil {
		return nil, nil, err
	}
	rules, webhooks, err := policyNames(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	p := api.RoutingTestPlanned{Webhooks: &[]api.RoutingTestPlannedWebhook{}, Teams: &[]string{}}
	for _, w := range a.document.Sections[rulefile.Webhooks] {
		if name := rulefile.Name(w); name != "" && !webhooks.has(name) {
			webhooks.ids[name] = uuid.New()
			*p.Webhooks = append(*p.Webhooks, api.RoutingTestPlannedWebhook{ID: webhooks.ids[name], Name: name})
		}
	}
	for _, rule := range a.document.Sections[rulefile.Rules] {
		if name := rulefile.Name(rule); name != "" && !rules.has(name) {
			rules.ids[name] = uuid.New()
		}
	}
	teams, err := a.readTeams()
	if err != nil {
		return nil, nil, err
	}
	for i := range teams {
		if _, err := webhooks.idsOf("webhook", teams[i].Webhooks); err != nil {
			return nil, nil, fmt.Errorf("team %s: %w", teams[i].Name, err)
		}
		if len(teams[i].Webhooks) > 0 {
			*p.Teams = append(*p.Teams, teams[i].Name)
		}
	}
	d, err := policyDefinition(list, rules, webhooks)
	return &d, &p, err
}

// request returns the request for the flags.
func (r *routeTest) request(ctx context.Context, server *api.ClientWithResponses) (*api.RoutingTestRequest, error) {
	b := &api.RoutingTestRequest{}
	var err error
	if len(r.File) > 0 {
		if b.Policy, b.Planned, err = r.planned(ctx, server); err != nil {
			return nil, err
		}
	}
	if r.Alert != "" {
		id, err := uuid.Parse(r.Alert)
		if err != nil {
			return nil, fmt.Errorf("--alert: %w", err)
		}
		b.AlertID = &id
		return b, nil
	}
	if r.Rule != "" {
		known, err := ruleNames(ctx, server)
		if err != nil {
			return nil, err
		}
		id, there := known.ids[r.Rule]
		if !there {
			return nil, fmt.Errorf("--rule: there is no rule named %q; tocsin export --kind rules shows the names, and a rule that only a file has is described by --severity and --label", r.Rule)
		}
		b.RuleID = &id
	}
	if r.Severity != "" {
		b.Severity = new(api.Severity(strings.ToUpper(r.Severity)))
	}
	if len(r.Label) > 0 {
		b.Labels = r.Label
	}
	b.Exchange = &api.RoutingTestExchange{
		Application: r.Application, Route: r.Route, Environment: r.Environment, ErrorType: r.ErrorType, ErrorMessage: r.Message,
	}
	if len(r.Attribute) > 0 {
		b.Exchange.Attributes = r.Attribute
	}
	return b, nil
}
