package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/source"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/chtest"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// TestRuleThatIsTooLongForClickHouseFailsAlone has a rule with so many wildcards that ClickHouse does not parse its
// query, between rules of other tenants.
func TestRuleThatIsTooLongForClickHouseFailsAlone(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	names := make([]string, 100)
	for i := range names {
		names[i] = strings.Repeat("*a", rules.MaxWildcards) + fmt.Sprint(i)
	}
	var list []counting.Compiled
	var exchanges []rules.Exchange
	for i, tenant := range []string{"a", "b", "c"} {
		r := &rules.Rule{ID: uuid.New(), TenantID: tenant, ArmedSinceNS: 1, Definition: rules.Definition{
			Name: tenant, FireMode: rules.CountInWindow, Severity: rules.Info, Threshold: 1, WindowSeconds: 60, IntervalSeconds: 1,
		}}
		if tenant == "b" {
			r.Scope.Applications = names
		}
		judge, err := rules.NewJudge(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, counting.Compiled{Rule: r, Judge: judge})
		e := failed(base, fmt.Sprint(i))
		e.TenantID, e.EndTimeNS = tenant, new(base)
		exchanges = append(exchanges, e)
	}
	db.Insert(t, exchanges...)
	counter := counting.New(counting.Options{Source: ch, Logger: slog.New(slog.DiscardHandler)})
	for pass := range 2 {
		var counted []string
		p := counter.Pass(&counting.Request{
			Tenants: source.Tenants{Names: []string{"a", "b", "c"}, Of: 1}, WatermarkNS: base + 1, Now: time.Now(), Over: func() bool { return false },
		}, func(_ context.Context, windows []*counting.Window) {
			for _, w := range windows {
				counted = append(counted, fmt.Sprint(w.Name, len(w.Groups)))
			}
		})
		windows := make([]*counting.Window, len(list))
		for i, rule := range list {
			windows[i] = new(counting.WindowOf(rule, nil, base+1))
			windows[i].Number = i
		}
		p.Count(t.Context(), windows)
		slices.Sort(counted)
		if !slices.Equal(counted, []string{"a1", "c1"}) || p.SourceErr != nil {
			t.Errorf("pass %d counts %v, %v", pass, counted, p.SourceErr)
		}
		if why := p.Failed[list[1].ID]; pass > 0 && (why == nil || !strings.Contains(why.Error(), "raise max_query_size")) {
			t.Errorf("the rule fails with %v", why)
		}
	}
}

// TestAScanNamesThePartOfARuleThatIsTooLong has rules whose conditions ClickHouse does not parse, as a preview or a replay
// reads them: the first because of its wildcards, the second mostly because of its values.
func TestAScanNamesThePartOfARuleThatIsTooLong(t *testing.T) {
	ch := open(t, chtest.New(t))
	names, values := make([]string, 100), make([]string, 100)
	for i := range names {
		names[i], values[i] = strings.Repeat("*a", rules.MaxWildcards)+fmt.Sprint(i), fmt.Sprint(i)
	}
	attributes := make([]rules.AttributeMatch, 50)
	for i := range attributes {
		attributes[i] = rules.AttributeMatch{Key: fmt.Sprint("key", i), Op: rules.AttributeIn, Values: values}
	}
	for _, c := range []struct {
		longer string
		rule   source.Narrowing
	}{
		{"scope", source.Narrowing{Scope: rules.Scope{Applications: names, NotApplications: names, Routes: names, NotRoutes: names}, Filter: rules.Filter{ErrorTypes: values}}},
		{"filter", source.Narrowing{Scope: rules.Scope{Routes: names[:45]}, Filter: rules.Filter{ErrorTypes: values, Attributes: attributes}}},
	} {
		_, err := ch.Scan(t.Context(), source.Scan{
			Tenants: source.Tenants{Names: []string{"a"}}, BeforeNS: base, Statuses: []rules.Status{rules.Failed}, Limit: 1, Narrow: &c.rule,
		})
		wrong, ok := errors.AsType[*fault.Error](err)
		if !ok || wrong.Kind != fault.Invalid || len(wrong.Fields) != 1 || wrong.Fields[0].Field != c.longer || !strings.Contains(err.Error(), "max_query_size") {
			t.Errorf("a long %s fails with %v", c.longer, err)
		}
	}
}
