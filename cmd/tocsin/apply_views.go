package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	api "tocsin/client"
	"tocsin/internal/rulefile"
)

// viewEntry is a shared view of the inbox in a file.
type viewEntry struct {
	Name   string `json:"name"`
	Search string `json:"search"`
}

// sharedViews returns the views that everybody sees, those of the token first.
func sharedViews(ctx context.Context, server *api.ClientWithResponses) ([]api.View, error) {
	answer, err := server.ListViewsWithResponse(ctx)
	if err := answered(answer, err); err != nil {
		return nil, fmt.Errorf("read views: %w", err)
	}
	if answer.JSON200 == nil {
		return nil, errForeign
	}
	list := slices.DeleteFunc(answer.JSON200.Items, func(v api.View) bool { return !v.Shared })
	slices.SortStableFunc(list, func(a, b api.View) int {
		switch {
		case a.Own == b.Own:
			return 0
		case a.Own:
			return -1
		}
		return 1
	})
	return list, nil
}

// views plans the changes of the views that the token shares, which are identified by name. Views
// that people share belong to them.
func (a *applying) views(ctx context.Context) error {
	shared, err := sharedViews(ctx, a.server)
	if err != nil {
		return err
	}
	known, others := map[string]*api.View{}, map[string]string{}
	for i := range shared {
		v := &shared[i]
		if v.Own {
			known[v.Name] = v
			continue
		}
		others[v.Name] = cmp.Or(others[v.Name], v.Owner)
		a.plan.leftAlone++
	}
	given := map[string]bool{}
	for i, fields := range a.document.Sections[rulefile.Views] {
		var want viewEntry
		if err := a.strictly(rulefile.Views, i, fields, &want); err != nil {
			return err
		}
		want.Name = strings.TrimSpace(want.Name) // as the server does
		prefix := fmt.Sprintf("views[%d].", i)
		switch {
		case want.Name == "":
			return a.misplaced(prefix+"name", "A view needs a name")
		case given[want.Name]:
			return a.misplaced(prefix+"name", "Another view has the same name; choose another one")
		}
		given[want.Name] = true
		s := step{kind: "view", name: want.Name, action: created}
		if is := known[want.Name]; is != nil {
			s.action = unchanged
			s.differ("search", is.Search, want.Search)
		} else if owner := others[want.Name]; owner != "" {
			s.why = "does not exist yet, except for one that " + owner + " shares"
		}
		if s.action != unchanged {
			s.run = func(ctx context.Context) error {
				answer, err := a.server.SaveViewWithResponse(ctx, api.ViewDefinition{Name: want.Name, Search: want.Search, Shared: new(true)})
				return a.wrong(answered(answer, err), prefix)
			}
		}
		a.plan.steps = append(a.plan.steps, s)
	}
	for i := range shared {
		v := &shared[i]
		switch {
		case !v.Own || given[v.Name]:
		case a.prunes(v.Name):
			a.plan.steps = append(a.plan.steps, step{kind: "view", name: v.Name, action: deleted, why: a.pruned(), run: func(ctx context.Context) error {
				return answered(a.server.DeleteViewWithResponse(ctx, v.ID))
			}})
		default:
			a.plan.leftAlone++
		}
	}
	return nil
}

// exportedViews returns each name of a shared view once, in the form of a file.
func exportedViews(ctx context.Context, server *api.ClientWithResponses) ([]any, error) {
	shared, err := sharedViews(ctx, server)
	list, written := []any{}, map[string]bool{}
	for _, v := range shared {
		if !written[v.Name] {
			list = append(list, map[string]any{"name": v.Name, "search": v.Search})
		}
		written[v.Name] = true
	}
	return list, err
}
