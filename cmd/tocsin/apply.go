package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	api "tocsin/client"
	"tocsin/internal/rulefile"
)

// applying compares files with a server.
type applying struct {
	*filesFlags

	server   *api.ClientWithResponses
	document *rulefile.Document
	plan     plan
	// fresh are the names of webhooks that the plan creates.
	fresh map[string]bool
	// now is the instant by the server's clock at which silences were read.
	now time.Time
}

// plan reads the files and compares them with the server. It changes nothing. Webhooks come before
// the rules that use them, and are deleted after those. Silences come after the rules that they
// name, and views last. The routing policy comes before the rules that use it, unless it names
// rules that the plan creates.
func (f *serverFlags) plan(ctx context.Context, files *filesFlags) (*plan, error) {
	server, err := f.open()
	if err != nil {
		return nil, err
	}
	document, err := files.read(os.Stdin)
	if err != nil {
		return nil, err
	}
	a := &applying{filesFlags: files, server: server, document: document, fresh: map[string]bool{}}
	var gone []step
	if document.Sections[rulefile.Webhooks] != nil {
		if gone, err = a.webhooks(ctx); err != nil {
			return nil, err
		}
	}
	if document.Sections[rulefile.Users] != nil {
		if err := a.users(ctx); err != nil {
			return nil, err
		}
	}
	if document.Sections[rulefile.Teams] != nil {
		teams, err := a.teams(ctx)
		if err != nil {
			return nil, err
		}
		gone = append(teams, gone...)
	}
	var policy []step
	if document.Sections[rulefile.Routes] != nil {
		s, afterRules, err := a.routes(ctx)
		if err != nil {
			return nil, err
		}
		if afterRules {
			policy = []step{s}
		} else {
			a.plan.steps = append(a.plan.steps, s)
		}
	}
	if document.Sections[rulefile.Rules] != nil {
		if err := a.rules(ctx); err != nil {
			return nil, err
		}
	}
	a.plan.steps = append(a.plan.steps, policy...)
	if document.Sections[rulefile.Silences] != nil {
		if err := a.silences(ctx); err != nil {
			return nil, err
		}
	}
	if document.Sections[rulefile.Views] != nil {
		if err := a.views(ctx); err != nil {
			return nil, err
		}
	}
	a.plan.steps = append(a.plan.steps, gone...)
	return &a.plan, nil
}

// wrong prints each field that the server refuses with its place in the files, and returns the
// error for all.
func (a *applying) wrong(err error, prefix string) error {
	refused, ok := errors.AsType[*api.Problem](err)
	if !ok || len(refused.Errors) == 0 {
		return err
	}
	for _, e := range refused.Errors {
		_ = a.misplaced(prefix+e.Field, e.Message)
	}
	if refused.Detail != nil {
		return errors.New(*refused.Detail)
	}
	return errFiles
}

// errFiles is the error for invalid files after the problems were printed.
var errFiles = errors.New("the files are not valid: see above")

// misplaced prints a problem at a place in the files.
func (a *applying) misplaced(field, message string) error {
	if _, err := fmt.Fprintf(os.Stderr, "%s: %s\n", a.document.Locate(field), message); err != nil {
		return err
	}
	return errFiles
}

// rules plans the changes of rules. The server compares and checks them, and writes them all at
// once.
func (a *applying) rules(ctx context.Context) error {
	// A webhook that the plan creates does not exist yet.
	tried, bound := a.withoutFresh()
	done, err := a.applyRules(ctx, tried, true)
	if err != nil {
		return a.wrong(err, "")
	}
	a.plan.leftAlone += done.LeftAlone
	first := -1
	for i, r := range done.Rules {
		s := step{kind: "rule", name: r.Name, action: action(r.Action), warnings: r.Warnings}
		if s.action == deleted {
			s.why = a.pruned()
		}
		if s.action == updated {
			s.why = becomesOfProgress(r.Changes)
		}
		for _, c := range r.Changes {
			s.changes = append(s.changes, change{field: c.Field, before: c.Before, after: c.After})
		}
		if i < len(bound) && len(bound[i]) > 0 {
			if s.action == unchanged {
				s.action = updated
			}
			s.changes = append(s.changes, change{field: "webhooks", why: fmt.Sprintf("also %q, which this change makes", bound[i])})
		}
		if s.action != unchanged && first < 0 {
			first = len(a.plan.steps)
		}
		a.plan.steps = append(a.plan.steps, s)
	}
	if first >= 0 {
		a.plan.steps[first].run = func(ctx context.Context) error {
			_, err := a.applyRules(ctx, a.document.Sections[rulefile.Rules], false)
			return a.wrong(err, "")
		}
	}
	return nil
}

// becomesOfProgress describes the effect of an edit of a rule on its progress; empty if there is
// none.
func becomesOfProgress(changes []api.RuleFieldChange) string {
	condition := false
	for _, c := range changes {
		switch {
		case c.Field == "enabled" && c.After == false:
			return "is disabled; once enabled again, it evaluates only exchanges that end from then on"
		case c.Field == "enabled", c.Field == "fireMode":
			return "evaluates only exchanges that end from then on"
		case strings.HasPrefix(c.Field, "scope."), strings.HasPrefix(c.Field, "filter."):
			condition = true
		}
	}
	if condition {
		return "the new condition applies to exchanges that end from then on"
	}
	return ""
}

// withoutFresh returns the rules without the webhooks that the plan creates, and those webhooks, by
// rule.
func (a *applying) withoutFresh() (rules []any, bound map[int][]string) {
	rules, bound = slices.Clone(a.document.Sections[rulefile.Rules]), map[int][]string{}
	for i, rule := range rules {
		fields, _ := rule.(map[string]any)
		names, _ := fields["webhooks"].([]any)
		kept := []any{}
		for _, n := range names {
			if name, ok := n.(string); ok && a.fresh[name] {
				bound[i] = append(bound[i], name)
			} else {
				kept = append(kept, n)
			}
		}
		if len(bound[i]) > 0 {
			rules[i] = with(fields, "webhooks", kept)
		}
	}
	return rules, bound
}

// with returns a copy of fields in which one has another value.
func with(fields map[string]any, name string, value any) map[string]any {
	changed := maps.Clone(fields)
	changed[name] = value
	return changed
}

func (a *applying) applyRules(ctx context.Context, rules []any, dryRun bool) (*api.RulesApplied, error) {
	application := map[string]any{"rules": rules, "prune": a.Prune, "dryRun": dryRun}
	if len(a.PruneName) > 0 {
		application["pruneNames"] = a.PruneName
	}
	if len(a.PruneLabel) > 0 {
		application["pruneLabels"] = a.PruneLabel
	}
	body, err := json.Marshal(application)
	if err != nil {
		return nil, fmt.Errorf("encode rules: %w", err)
	}
	answer, err := a.server.ApplyRulesWithBodyWithResponse(ctx, "application/json", bytes.NewReader(body))
	if err := answered(answer, err); err != nil {
		return nil, err
	}
	var done api.RulesApplied
	if err := decode(answer.Body, &done); err != nil {
		return nil, err
	}
	if len(done.Rules) < len(rules) {
		return nil, errForeign
	}
	return &done, nil
}
