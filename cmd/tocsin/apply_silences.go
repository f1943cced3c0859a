package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	api "tocsin/client"
	"tocsin/internal/rulefile"
)

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// names maps names to ids, and ids to names.
type names struct {
	ids   map[string]uuid.UUID
	names map[uuid.UUID]string
	// deleted says that the id of something that was deleted stands for itself: exported files name it so.
	deleted bool
}

func (n *names) has(name string) bool { _, there := n.ids[name]; return there }

// id returns the id for a name.
func (n *names) id(name string) (uuid.UUID, bool) {
	if id, there := n.ids[name]; there || !n.deleted {
		return id, there
	}
	id, err := uuid.Parse(name)
	_, named := n.names[id]
	return id, err == nil && id.String() == name && !named
}

// ruleNames returns the names of the server's rules.
func ruleNames(ctx context.Context, server *api.ClientWithResponses) (names, error) {
	list, err := listed(ctx, func(ctx context.Context, cursor *string) ([]api.Rule, *string, error) {
		page, err := server.ListRulesWithResponse(ctx, &api.ListRulesParams{Cursor: cursor})
		if err := answered(page, err); err != nil {
			return nil, nil, fmt.Errorf("list rules: %w", err)
		}
		if page.JSON200 == nil {
			return nil, nil, errForeign
		}
		return page.JSON200.Items, page.JSON200.NextCursor, nil
	})
	n := names{ids: map[string]uuid.UUID{}, names: map[uuid.UUID]string{}, deleted: true}
	for i := range list {
		n.ids[list[i].Name], n.names[list[i].ID] = list[i].ID, list[i].Name
	}
	return n, err
}

// silenceEntry is a silence in a file: rules by name.
type silenceEntry struct {
	Name       string                 `json:"name"`
	Reason     string                 `json:"reason,omitempty"`
	Match      silenceMatch           `json:"match"`
	StartsAt   *time.Time             `json:"startsAt,omitempty"`
	EndsAt     *time.Time             `json:"endsAt,omitempty"`
	Recurrence *api.SilenceRecurrence `json:"recurrence,omitempty"`
	Digest     bool                   `json:"digest,omitempty"`
}

type silenceMatch struct {
	Rules      []string                    `json:"rules,omitempty"`
	Labels     *[]api.AttributeMatch       `json:"labels,omitempty"`
	Severities *[]api.AlertMatchSeverities `json:"severities,omitempty"`
	Scope      *api.Scope                  `json:"scope,omitempty"`
	Filter     *api.Filter                 `json:"filter,omitempty"`
}

// entryOf returns a stored silence in the form of a file.
func entryOf(s *api.Silence, known names) silenceEntry {
	e := silenceEntry{Name: s.Name, Reason: s.Reason, EndsAt: s.EndsAt, Recurrence: s.Recurrence, Digest: s.Digest}
	m := &s.Match
	e.Match = silenceMatch{Labels: m.Labels, Severities: m.Severities, Scope: m.Scope, Filter: m.Filter}
	if m.Rules != nil {
		for _, id := range *m.Rules {
			name, there := known.names[id]
			if !there {
				name = id.String()
			}
			e.Match.Rules = append(e.Match.Rules, name)
		}
	}
	return e
}

// definition returns the silence in the form of the API.
func (e *silenceEntry) definition(known names) (api.SilenceDefinition, error) {
	d := api.SilenceDefinition{Name: e.Name, Reason: &e.Reason, StartsAt: e.StartsAt, EndsAt: e.EndsAt, Recurrence: e.Recurrence, Digest: &e.Digest}
	m := &e.Match
	d.Match = api.AlertMatch{Labels: m.Labels, Severities: m.Severities, Scope: m.Scope, Filter: m.Filter}
	if len(m.Rules) > 0 {
		ids := make([]uuid.UUID, len(m.Rules))
		for i, name := range m.Rules {
			id, there := known.id(name)
			if !there {
				return d, fmt.Errorf("there is no rule named %q; correct the name, or add the rule to the files", name)
			}
			ids[i] = id
		}
		d.Match.Rules = &ids
	}
	return d, nil
}

// silences plans the changes of silences. They are identified by name among those that are not
// over. One with an end that a person has ended early is over.
func (a *applying) silences(ctx context.Context) error {
	stored, err := silencesOf(ctx, a.server, false)
	if err != nil {
		return err
	}
	known, err := ruleNames(ctx, a.server)
	if err != nil {
		return err
	}
	if a.now, err = clockOf(ctx, a.server); err != nil {
		return err
	}
	byName := map[string]*api.Silence{}
	for i := range stored {
		byName[stored[i].Name] = &stored[i]
	}
	past := sync.OnceValues(func() ([]api.Silence, error) { return pastSilences(ctx, a.server) })
	given := map[string]bool{}
	for i, fields := range a.document.Sections[rulefile.Silences] {
		var want silenceEntry
		if err := a.strictly(rulefile.Silences, i, fields, &want); err != nil {
			return err
		}
		place := fmt.Sprintf("silences[%d].", i)
		switch {
		case want.Name == "":
			return a.misplaced(place+"name", "A silence needs a name")
		case given[want.Name]:
			return a.misplaced(place+"name", "Another silence has the same name; choose another one")
		}
		given[want.Name] = true
		if byName[want.Name] == nil && want.EndsAt != nil {
			list, err := past()
			if err != nil {
				return err
			}
			if over, is := a.over(&want, list); is {
				a.plan.steps = append(a.plan.steps, over)
				continue
			}
		}
		for j, name := range want.Match.Rules {
			if _, there := known.id(name); !there && !a.makesRule(name) {
				return a.misplaced(fmt.Sprintf("%smatch.rules[%d]", place, j), "There is no rule with this name; correct it, or add the rule to the files")
			}
		}
		a.plan.steps = append(a.plan.steps, a.silence(place, &want, byName[want.Name], known))
	}
	for i := range stored {
		s := &stored[i]
		switch {
		case given[s.Name]:
		case s.Recurrence != nil && a.prunes(s.Name):
			a.plan.steps = append(a.plan.steps, step{kind: "silence", name: s.Name, action: deleted, why: a.pruned(), run: func(ctx context.Context) error {
				return answered(a.server.EndSilenceWithResponse(ctx, s.ID))
			}})
		default:
			a.plan.leftAlone++
		}
	}
	return nil
}

// over reports whether a silence with an end is over, and cannot be changed any more: it has ended by itself, or a person has ended it early.
// One that recurs is created again after a person has ended it: the file says that it goes on.
func (a *applying) over(want *silenceEntry, past []api.Silence) (step, bool) {
	s := step{kind: "silence", name: want.Name, action: unchanged}
	known := slices.ContainsFunc(past, func(s api.Silence) bool {
		return s.Name == want.Name && s.EndsAt != nil && sameInstant(*s.EndsAt, *want.EndsAt)
	})
	if want.EndsAt.After(a.now) {
		return s, known && want.Recurrence == nil
	}
	if !known {
		s.warnings = []api.FieldError{{Field: "endsAt", Code: "past", Message: "This is in the past, and there was no such silence: correct the date, or remove the silence from the files"}}
	}
	return s, true
}

// makesRule reports whether the files contain a rule with a name.
func (a *applying) makesRule(name string) bool {
	return slices.ContainsFunc(a.document.Sections[rulefile.Rules], func(r any) bool { return rulefile.Name(r) == name })
}

// silence plans the change of one silence. is is nil if there is none that is not over.
func (a *applying) silence(place string, want *silenceEntry, is *api.Silence, known names) step {
	s := step{kind: "silence", name: want.Name, action: unchanged}
	// A new rule has no id before the plan is run.
	resolved := func(ctx context.Context) (api.SilenceDefinition, error) {
		now, err := ruleNames(ctx, a.server)
		if err != nil {
			return api.SilenceDefinition{}, err
		}
		return want.definition(now)
	}
	if is == nil {
		s.action = created
		s.run = func(ctx context.Context) error {
			d, err := resolved(ctx)
			if err != nil {
				return err
			}
			return a.wrong(answered(a.server.CreateSilenceWithResponse(ctx, d)), place)
		}
		return s
	}
	was := entryOf(is, known)
	s.differ("reason", was.Reason, want.Reason)
	s.differJSON("match", was.Match, want.Match)
	s.differJSON("digest", was.Digest, want.Digest)
	s.differJSON("recurrence", comparableRecurrence(was.Recurrence), comparableRecurrence(want.Recurrence))
	if (was.EndsAt == nil) != (want.EndsAt == nil) || was.EndsAt != nil && !sameInstant(*was.EndsAt, *want.EndsAt) {
		s.action = updated
		s.changes = append(s.changes, change{field: "endsAt", before: was.EndsAt, after: want.EndsAt})
	}
	switch {
	case want.StartsAt == nil:
		// Without a start, the API would make it begin at once.
		want.StartsAt = &is.StartsAt
	case sameInstant(is.StartsAt, *want.StartsAt):
	case is.StartsAt.After(a.now):
		s.action = updated
		s.changes = append(s.changes, change{field: "startsAt", before: is.StartsAt, after: want.StartsAt})
	case want.StartsAt.After(a.now):
		s.warnings = append(s.warnings, api.FieldError{
			Field: "startsAt", Code: "begun",
			Message: fmt.Sprintf("It started at %s and is still in force; end it, or give the other silence another name", is.StartsAt.Format(time.RFC3339)),
		})
	}
	if s.action == updated {
		s.run = func(ctx context.Context) error {
			d, err := resolved(ctx)
			if err != nil {
				return err
			}
			return a.wrong(answered(a.server.UpdateSilenceWithResponse(ctx, is.ID, &api.UpdateSilenceParams{IfMatch: tag(is.Version)}, d)), place)
		}
	}
	return s
}

// comparableRecurrence returns a recurrence with short names of weekdays.
func comparableRecurrence(r *api.SilenceRecurrence) *api.SilenceRecurrence {
	if r == nil {
		return nil
	}
	same := *r
	same.Weekdays = shortDays(r.Weekdays)
	return &same
}

// sameInstant compares times with the precision with which they are stored.
func sameInstant(a, b time.Time) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

// differJSON notes a field whose values differ as JSON.
func (s *step) differJSON(field string, is, want any) {
	before, errBefore := json.Marshal(is)
	after, errAfter := json.Marshal(want)
	if errBefore != nil || errAfter != nil || !bytes.Equal(before, after) {
		s.action = updated
		s.changes = append(s.changes, change{field: field, before: is, after: want})
	}
}

// exportedSilences returns the recurring silences in the form of a file. The others are over soon. One that is yet to start
// for the first time is exported with its start, without which it would start at once where the file is applied.
func exportedSilences(ctx context.Context, server *api.ClientWithResponses) ([]any, error) {
	stored, err := silencesOf(ctx, server, false)
	if err != nil {
		return nil, err
	}
	known, err := ruleNames(ctx, server)
	if err != nil {
		return nil, err
	}
	now, err := clockOf(ctx, server)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for i := range stored {
		if stored[i].Recurrence == nil {
			continue
		}
		e := entryOf(&stored[i], known)
		if stored[i].StartsAt.After(now) {
			e.StartsAt = &stored[i].StartsAt
		}
		text, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encode silence: %w", err)
		}
		var entry any
		if err := decode(text, &entry); err != nil {
			return nil, err
		}
		list = append(list, entry)
	}
	return list, nil
}
