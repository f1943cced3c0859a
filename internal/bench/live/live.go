// Package live contains the workloads that measure what users notice: how soon a message reaches
// realistic receivers, how Tocsin recovers from an outage and a restart, and what many tenants,
// webhooks and rules cost (L1 to L8).
package live

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
	"tocsin/notify"
)

// bench is what the workloads share.
type bench struct{ *lab.Bench }

func run(work func(context.Context, bench) ([]report.Result, error)) func(context.Context, *lab.Bench) ([]report.Result, error) {
	return func(ctx context.Context, b *lab.Bench) ([]report.Result, error) { return work(ctx, bench{b}) }
}

// Workloads returns them in the order in which they run.
func Workloads() []lab.Workload {
	return []lab.Workload{
		{IDs: []string{"L1"}, Run: run(steady)},
		{IDs: []string{"L2"}, Run: run(outage)},
		{IDs: []string{"L3"}, Run: run(only)},
		{IDs: []string{"L4"}, Run: run(looking)},
		{IDs: []string{"L5"}, Run: run(tenants)},
		{IDs: []string{"L6"}, Run: run(restart)},
		{IDs: []string{"L7"}, Run: run(source)},
		{IDs: []string{"L8"}, Run: run(health)},
	}
}

// farHooks is the number of webhooks that respond; one more hangs.
const farHooks = 200

// template is a realistic body template.
const template = `{"text": "*{{alert.title}}* in {{exchange.application}} / {{exchange.route}}: {{exchange.errorType}}: {{exchange.errorMessage}}",
 "severity": "{{alert.severity}}", "alert": "{{alert.id}}", "executionId": "{{exchange.executionId}}",
 "customer": "{{exchange.attributes.customer}}", "startedAt": "{{exchange.startTime}}"}`

// about describes the receivers of [bench.far].
const about = "There are 200 webhooks, each with its own host, over TLS, signed and with a body template. They answer within 20 to 500 ms (log-normal, median 100 ms), 1% of the time with an error. One more webhook never answers."

// far stores the webhooks, and for each a rule about an application of its own: app-0 to app-199,
// and app-200 for the one that hangs.
func (b bench) far(ctx context.Context, world *product.World, book string, like notify.Webhook) error {
	like.Enabled, like.BodyTemplate = true, template
	for n := range farHooks + 1 {
		hook := like
		hook.URL = b.Receiver.FarURL(n, book)
		if n == farHooks {
			hook.URL = b.Receiver.FarHangURL(n)
		}
		id, err := world.AddHook(ctx, hook)
		if err != nil {
			return err
		}
		if _, err := world.Rule(ctx, []uuid.UUID{id}, fmt.Sprintf("app-%d", n)); err != nil {
			return err
		}
	}
	return world.Exec(ctx, "analyze")
}
