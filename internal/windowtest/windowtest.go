// Package windowtest makes window rules for tests of what counts them and of what decides on them.
package windowtest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator/source"
	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

const (
	// Second is a second in nanoseconds.
	Second = int64(1e9)
	// Watermark is where the windows of a [Request] end.
	Watermark = 1_795_244_520 * Second
)

// RuleOf returns the n-th rule of a tenant. It counts five exchanges within a minute of the application that is named
// like itself, and filters by message, so that no tally counts it.
func RuleOf(n int, tenant string) counting.Compiled {
	name := fmt.Sprintf("%03d", n)
	return Compiled(&rules.Rule{
		ID: uuid.UUID{14: byte(n >> 8), 15: byte(n)}, TenantID: tenant, Version: 1,
		Definition: rules.Definition{
			Name: name, FireMode: rules.CountInWindow, Threshold: 5, WindowSeconds: 60, IntervalSeconds: 1, WebhookIDs: []uuid.UUID{{1}},
			Scope: rules.Scope{Applications: []string{name}}, Filter: rules.Filter{ErrorMessageContains: "x"},
		},
	})
}

// Compiled returns a rule with its compiled conditions. It panics if these are not valid.
func Compiled(rule *rules.Rule) counting.Compiled {
	judge, err := rules.NewJudge(rule)
	if err != nil {
		panic(err)
	}
	return counting.Compiled{Rule: rule, Judge: judge}
}

// Some returns n rules of one tenant.
func Some(n int) []counting.Compiled {
	list := make([]counting.Compiled, n)
	for i := range list {
		list[i] = RuleOf(i, "default")
	}
	return list
}

// Plain makes rules filter by names only, as tallies need it.
func Plain(list []counting.Compiled) []counting.Compiled {
	for i := range list {
		list[i].Filter = rules.Filter{}
		list[i] = Compiled(list[i].Rule)
	}
	return list
}

// Request asks for the evaluation of rules, with as much time as it takes.
func Request(list []counting.Compiled) window.Request {
	return window.Request{
		Request: counting.Request{Tenants: source.Tenants{Names: []string{"default"}}, WatermarkNS: Watermark, Now: time.Unix(0, Watermark), Over: func() bool { return false }},
		Rules:   list,
	}
}

// UpTo returns the names of n rules without the one left out.
func UpTo(n int, without string) []string {
	list := []string{}
	for i := range n {
		if name := fmt.Sprintf("%03d", i); name != without {
			list = append(list, name)
		}
	}
	return list
}
