// Package evaluator judges exchanges by rules and raises alerts, each once.
package evaluator

import (
	"context"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/rules"
)

// Publisher wakes dispatchers. What it loses, their polling finds.
type Publisher interface {
	Publish(ctx context.Context, w notify.WakeUp) error
}

// Texts renders an alert's title and message. It always returns texts to show;
// where a template cannot be rendered it falls back and says why in problem.
type Texts interface {
	Texts(rule *rules.Rule, e *rules.Exchange) (title, message string, problem error)
	// CountTexts is for window rules. Newest is the zero exchange where none is known.
	CountTexts(rule *rules.Rule, c *alerts.Count, newest *rules.Exchange) (title, message string, problem error)
}
