package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/rules"
)

// RuleApplier reads and writes all rules of a tenant at once.
type RuleApplier interface {
	// All returns every rule as of one instant, by name.
	All(ctx context.Context, tenant string) ([]rules.Rule, error)
	// Apply creates and edits the rules that differ from the set, by name, and deletes the others
	// if the set says so. All of it happens in one transaction, or nothing. A rule that equals the
	// set is not touched. Edits that others made meanwhile are overwritten. Two simultaneous calls
	// happen one after the other.
	Apply(ctx context.Context, tenant string, set RuleSet) (RulesDone, error)
}

// RuleSet is a set of rules to establish.
type RuleSet struct {
	// Definitions are valid, and their names are unique.
	Definitions []rules.Definition
	// Prune deletes the tenant's other rules: if PruneNames is not empty, only those with such
	// names, in which * matches any run of characters, and only those with all of PruneLabels.
	Prune       bool
	PruneNames  []string
	PruneLabels map[string]string
	// DryRun reports what would be done, and changes nothing.
	DryRun bool
}

// RulesDone is the result of a [RuleSet].
type RulesDone struct {
	// Rules has an entry for each definition, in order, and then one for each deleted rule.
	Rules []RuleDone
	// LeftAlone counts the rules that are not in the set and remain.
	LeftAlone int
}

// RuleDone is the result for one rule.
type RuleDone struct {
	// ID is zero if the rule would be created.
	ID     uuid.UUID
	Name   string
	Action RuleAppliedAction
	// Before is the definition of an edited rule before the edit; nil for every other rule, and for
	// one that could not be read.
	Before *rules.Definition
	// Unreadable says why an edited rule could not be read. Such a rule is armed again.
	Unreadable string
}

const (
	// maxApplied bounds the number of rules in one document, and maxDocumentBytes its size.
	maxApplied       = 5000
	maxDocumentBytes = 16 << 20
)

// ExportRules answers GET /rules/export.
func (s *server) ExportRules(ctx context.Context, _ ExportRulesRequestObject) (ExportRulesResponseObject, error) {
	hooks, err := s.webhookNames(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.Rules.All(ctx, tenantOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("export rules: %w", err)
	}
	answer := ExportRules200JSONResponse{Rules: make([]RuleDefinition, len(found))}
	for i := range found {
		if err := found[i].Readable(); err != nil {
			return nil, fmt.Errorf("export rules: %w", err)
		}
		answer.Rules[i] = hooks.written(&found[i].Definition)
	}
	return answer, nil
}

// ApplyRules answers POST /rules/apply.
func (s *server) ApplyRules(ctx context.Context, req ApplyRulesRequestObject) (ApplyRulesResponseObject, error) {
	switch {
	case req.Body.Rules == nil:
		return nil, invalidField("rules", "required", "Must not be missing; an empty list is []")
	case len(req.Body.Rules) > maxApplied:
		return nil, invalidField("rules", "out_of_range", fmt.Sprintf("Must be at most %d entries; apply them in parts, without pruning", maxApplied))
	}
	hooks, err := s.webhookNames(ctx)
	if err != nil {
		return nil, err
	}
	set, warnings, err := s.ruleSet(req.Body, hooks)
	if err != nil {
		return nil, err
	}
	done, err := s.Rules.Apply(ctx, tenantOf(ctx), set)
	if err != nil {
		return nil, fmt.Errorf("apply rules: %w", err)
	}
	answer := ApplyRules200JSONResponse{LeftAlone: done.LeftAlone, Rules: make([]RuleApplied, len(done.Rules))}
	for i, r := range done.Rules {
		answer.Rules[i] = RuleApplied{Name: r.Name, ID: optional(r.ID), Action: r.Action, Warnings: warnings[i]}
		if r.Unreadable != "" {
			answer.Rules[i].Warnings = append(answer.Rules[i].Warnings, FieldError{
				Field: "definition", Code: "unreadable", Message: fmt.Sprintf("Cannot be read (%s); this definition replaces it, and the rule evaluates only exchanges that end from now on", r.Unreadable),
			})
		}
		if r.Before != nil {
			if answer.Rules[i].Changes, err = hooks.changes(r.Before, &set.Definitions[i]); err != nil {
				return nil, err
			}
		}
	}
	return answer, nil
}

// ruleSet returns the set in a document, and its warnings by position. Its error is a fault with
// what is wrong, with places in the document.
func (s *server) ruleSet(document *RuleApplication, hooks webhookNames) (RuleSet, map[int][]fault.Field, error) {
	set := RuleSet{Definitions: make([]rules.Definition, len(document.Rules)), Prune: document.Prune, PruneNames: document.PruneNames, PruneLabels: document.PruneLabels, DryRun: document.DryRun}
	warnings := map[int][]fault.Field{}
	first := map[string]int{}
	var faults []fault.Field
	for i := range document.Rules {
		d, wrong, worth, err := s.findings(&document.Rules[i], hooks)
		if err != nil {
			return set, nil, err
		}
		if at, found := first[d.Name]; found && d.Name != "" {
			wrong = append(wrong, fault.Field{Field: "name", Code: "duplicate", Message: fmt.Sprintf("rules[%d] has the same name; rename one of them", at)})
		} else {
			first[d.Name] = i
		}
		for _, f := range wrong {
			f.Field = fmt.Sprintf("rules[%d].%s", i, f.Field)
			faults = append(faults, f)
		}
		if len(faults) >= maxFaults {
			return set, nil, fault.InvalidFields("the document", faults[:maxFaults])
		}
		set.Definitions[i], warnings[i] = d, worth
	}
	return set, warnings, fault.InvalidFields("the document", faults)
}

// webhookNames is what rules need to know about a tenant's webhooks.
type webhookNames struct {
	ids     map[string]uuid.UUID
	names   map[uuid.UUID]string
	enabled map[uuid.UUID]bool
	// presets are the ids of the presets of their receivers.
	presets map[uuid.UUID]string
	quiet   map[uuid.UUID]notify.QuietHours
}

func (s *server) webhookNames(ctx context.Context) (webhookNames, error) {
	known := webhookNames{ids: map[string]uuid.UUID{}, names: map[uuid.UUID]string{}, enabled: map[uuid.UUID]bool{}, presets: map[uuid.UUID]string{}, quiet: map[uuid.UUID]notify.QuietHours{}}
	found, err := s.Webhooks.Names(ctx, tenantOf(ctx))
	if err != nil {
		return known, fmt.Errorf("look up webhooks: %w", err)
	}
	for _, w := range found {
		known.ids[w.Name], known.names[w.ID], known.enabled[w.ID], known.presets[w.ID] = w.ID, w.Name, w.Enabled, w.Preset
		known.quiet[w.ID] = w.QuietHours
	}
	return known, nil
}

// bound returns the webhooks that a body names, by id or by name.
func (n webhookNames) bound(b *RuleDefinition) (ids []uuid.UUID, wrong, warnings []fault.Field) {
	if len(b.WebhookIds) > 0 && len(b.Webhooks) > 0 {
		return nil, []fault.Field{{Field: "webhooks", Code: "not_applicable", Message: "The webhooks are already given by ID; leave one of the two out"}}, nil
	}
	check := func(at string, id uuid.UUID, exists bool, message string) {
		switch {
		case !exists:
			wrong = append(wrong, fault.Field{Field: at, Code: "not_found", Message: message})
		case !n.enabled[id]:
			warnings = append(warnings, fault.Field{Field: at, Code: "disabled", Message: "The webhook is disabled, so nothing is sent to it; enable it"})
		}
	}
	for i, id := range b.WebhookIds {
		ids = append(ids, id)
		_, exists := n.names[id]
		check(fmt.Sprintf("webhookIds[%d]", i), id, exists, "This webhook does not exist; choose another one")
	}
	for i, name := range b.Webhooks {
		id, exists := n.ids[name]
		if exists && slices.Contains(b.Webhooks[:i], name) {
			wrong = append(wrong, fault.Field{Field: "webhooks", Code: "unique", Message: "Must not contain the same entry twice"})
			continue
		}
		if exists {
			ids = append(ids, id)
		}
		check(fmt.Sprintf("webhooks[%d]", i), id, exists, fmt.Sprintf("There is no webhook named %q; correct the name, or create the webhook first", name))
	}
	if len(b.Webhooks) > 0 && len(ids) > maxBound {
		wrong = append(wrong, fault.Field{Field: "webhooks", Code: "out_of_range", Message: fmt.Sprintf("Must be at most %d entries", maxBound)})
		ids = ids[:maxBound]
	}
	return ids, wrong, warnings
}

// maxBound is the largest number of webhooks of a rule.
const maxBound = 20

// written returns a definition in the form in which a person writes it: without defaults, and with
// webhooks by name.
func (n webhookNames) written(d *rules.Definition) RuleDefinition {
	b := RuleDefinition{
		Name: d.Name, FireMode: d.FireMode, Severity: d.Severity, Scope: d.Scope, Filter: d.Filter,
		TitleTemplate: d.TitleTemplate, MessageTemplate: d.MessageTemplate, Targets: d.Targets, Threshold: d.Threshold,
		WindowSeconds: d.WindowSeconds, Percent: d.Percent, ShortWindowSeconds: d.ShortWindowSeconds,
		Percentile: d.Percentile, DurationMS: d.DurationMS, MinVolume: d.MinVolume, LearnDays: d.LearnDays, Calendar: d.Calendar,
		Expected: unlessEmpty(d.Expected), GroupBy: d.GroupBy, GroupByAttribute: d.GroupByAttribute, ForDurationSeconds: d.ForDurationSeconds,
		ReNotifyMinutes: d.ReNotifyMinutes, NotifyOnResolve: d.NotifyOnResolve, UseRoutingPolicy: d.UseRoutingPolicy, Resolution: d.Resolution,
		Labels: d.Labels, Owner: d.Owner, RunbookURL: d.RunbookURL, Note: d.Note,
	}
	// An empty list means the same as an absent one.
	for _, list := range []*[]string{
		&b.Scope.Environments, &b.Scope.NotEnvironments, &b.Scope.Applications, &b.Scope.NotApplications, &b.Scope.Routes, &b.Scope.NotRoutes,
		&b.Filter.ErrorTypes, &b.Filter.NotErrorTypes, &b.Filter.ErrorMessageNotContains, &b.Filter.ErrorMessageNotMatches,
	} {
		*list = unlessEmpty(*list)
	}
	b.Filter.Statuses, b.Filter.Attributes = unlessEmpty(b.Filter.Statuses), unlessEmpty(b.Filter.Attributes)
	usual := definition(&RuleDefinition{FireMode: d.FireMode})
	b.Enabled = unless(d.Enabled, usual.Enabled)
	b.IntervalSeconds = unless(d.IntervalSeconds, usual.IntervalSeconds)
	b.LookBackSeconds = unless(d.LookBackSeconds, usual.LookBackSeconds)
	for _, id := range d.WebhookIDs {
		// A webhook that was just deleted is named by its id.
		name, found := n.names[id]
		if !found {
			name = id.String()
		}
		b.Webhooks = append(b.Webhooks, name)
	}
	return b
}

// unless returns nil if a value is the usual one.
func unless[T comparable](value, usual T) *T {
	if value == usual {
		return nil
	}
	return &value
}

func unlessEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// changes returns the fields in which the written forms of two definitions differ.
func (n webhookNames) changes(before, after *rules.Definition) ([]RuleFieldChange, error) {
	was, err := fieldsOf(n.written(before))
	if err != nil {
		return nil, err
	}
	is, err := fieldsOf(n.written(after))
	if err != nil {
		return nil, err
	}
	var changes []RuleFieldChange
	both := maps.Clone(was)
	maps.Copy(both, is)
	for _, field := range slices.Sorted(maps.Keys(both)) {
		if !reflect.DeepEqual(was[field], is[field]) {
			changes = append(changes, RuleFieldChange{Field: field, Before: was[field], After: is[field]})
		}
	}
	return changes, nil
}

// fieldsOf returns the fields of a written definition by their paths.
func fieldsOf(b RuleDefinition) (map[string]any, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode rule: %w", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("decode rule: %w", err)
	}
	fields := map[string]any{}
	for name, value := range tree {
		part, nested := value.(map[string]any)
		if !nested {
			fields[name] = value
			continue
		}
		for inner, value := range part {
			fields[name+"."+inner] = value
		}
	}
	return fields, nil
}
