package evaluator_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/rules"
)

// asked keeps the scans and fingerprints that it was asked for.
type asked struct {
	*model
	scans  []evaluator.Scan
	prints []evaluator.FingerprintQuery
}

func (a *asked) Scan(ctx context.Context, s evaluator.Scan) ([]rules.Exchange, error) {
	a.scans = append(a.scans, s)
	return a.model.Scan(ctx, s)
}

func (a *asked) Fingerprints(ctx context.Context, q evaluator.FingerprintQuery) ([]evaluator.Fingerprint, error) {
	a.prints = append(a.prints, q)
	return a.model.Fingerprints(ctx, q)
}

// TestScansAreNarrowedToTheApplicationsOfTheirRules says what a scan names for
// rules that share it, of which each looks at a list of applications.
func TestScansAreNarrowedToTheApplicationsOfTheirRules(t *testing.T) {
	numbered := func(n int) []string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("app-%03d", i))
		}
		return names
	}
	long := []string{strings.Repeat("a", 1000), strings.Repeat("b", 1000), strings.Repeat("c", 1000)}
	for name, c := range map[string]struct {
		scopes [][]string
		former []string
		want   []string
	}{
		"one rule":               {scopes: [][]string{{"orders"}}, want: []string{"orders"}},
		"the union":              {scopes: [][]string{{"orders"}, {"billing", "orders"}}, want: []string{"billing", "orders"}},
		"and a former condition": {scopes: [][]string{{"orders"}, {"billing"}}, former: []string{"stock"}, want: []string{"billing", "orders", "stock"}},
		"one looks everywhere":   {scopes: [][]string{{"orders"}, nil}},
		"one has a wildcard":     {scopes: [][]string{{"orders"}, {"bill*"}}},
		"as many as there may":   {scopes: [][]string{numbered(50), numbered(100)}, want: numbered(100)},
		"too many":               {scopes: [][]string{numbered(50), numbered(101)}},
		"as long as they may":    {scopes: [][]string{long[:2]}, want: long[:2]},
		"too long":               {scopes: [][]string{long[:1], long[1:]}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &model{now: begin + 100*second, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
			for i, applications := range c.scopes {
				id := uuid.UUID{15: byte(i + 1)}
				s := &state{cursor: &cursor.Position{StartTimeNS: begin + 50*second}, rule: rules.Rule{
					ID: id, TenantID: "default", ArmedSinceNS: begin, Definition: rules.Definition{
						Name: fmt.Sprint(i), FireMode: rules.PerExchange, LookBackSeconds: 3600, Scope: rules.Scope{Applications: applications},
					},
				}}
				if c.former != nil && i == 0 {
					s.rule.Former = []rules.Era{{Scope: rules.Scope{Applications: c.former}, ToNS: begin}}
				}
				m.rules[id] = s
			}
			// One behind the cursors, one after them, where nobody looks.
			for i, at := range []int64{begin + 10*second, begin + 90*second} {
				m.rows = append(m.rows, rules.Exchange{
					TenantID: "default", StartTimeNS: at, ExecutionID: fmt.Sprint(i), Status: rules.Failed, Application: "elsewhere",
				})
			}
			source := &asked{model: m}
			e, err := evaluator.New(evaluator.Options{
				Source: source, Store: m, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler),
				Clock: func() time.Time { return time.Unix(0, m.now) }, Replica: "model",
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(source.scans) != 2 || len(source.prints) == 0 {
				t.Fatalf("%d scans, %d fingerprints; want one scan behind the cursors and one after them", len(source.scans), len(source.prints))
			}
			for _, s := range source.scans {
				if !slices.Equal(s.Applications, c.want) {
					t.Errorf("the scan names %.80q, want %.80q", s.Applications, c.want)
				}
			}
			// The cursors move over what was narrowed away.
			for _, s := range m.rules {
				if *s.cursor != (cursor.Position{StartTimeNS: m.now}) {
					t.Errorf("cursor %v, want the horizon", *s.cursor)
				}
			}
		})
	}
}
