package speed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/peers"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/receiver"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
	"tocsin/notify"
)

// Sides of B2, B3 and B5.
const (
	sideDrain        = "Tocsin, drain"
	sideWhole        = "Tocsin, whole"
	sidePost         = "POST loop"
	sideRiver        = "River"
	sideBare         = "bare outbox"
	sideBorn         = "bare outbox, committed as leased"
	sideAlertmanager = "Alertmanager"
)

// wholeTick is the time between the ticks of B3.
const wholeTick = 2 * time.Second

// delivering holds what the sides of B2, B3, B5 and B12 share. All of them send to the
// same receiver. What claims work from Postgres may have as much under way as it allows: Tocsin
// [lab.MostConcurrent] attempts, River [peers.RiverWorkers] jobs. The others have 64 connections.
type delivering struct {
	bench
	count int
	// posts is how many the floor sends: it takes about as long as what it is a floor of,
	// so that both see as much of the machine's moods.
	posts int
	// alerts is how many Alertmanager is given; it is slower.
	alerts int
	// sample is the message that Tocsin sent, which the floor and River send again.
	sample *receiver.Sample
}

// deliver is B2 (drain), B3 (from rows in ClickHouse to recorded messages), B5
// (processor time of B3) and B12 (drain by several). Their sides are run in one
// alternation, so that what runs the same code is measured once.
func deliver(ctx context.Context, b bench) ([]report.Result, error) {
	d := &delivering{bench: b, count: lab.Either(b.Quick, 3_000, 40_000), posts: lab.Either(b.Quick, 3_000, 160_000), alerts: lab.Either(b.Quick, 2_000, 10_000)}
	sides := []trial.Side{
		{Name: sideDrain, Run: d.drain},
		{Name: sidePost, Floor: true, Run: d.post},
		{Name: sideWhole, Run: d.whole},
		{Name: sideBare, Run: d.bare(false)},
		{Name: sideBorn, Run: d.bare(true)},
		{Name: sideRiver, Run: d.river},
	}
	if b.Alertmanager != "" {
		sides = append(sides, trial.Side{Name: sideAlertmanager, Run: d.alertmanager})
	}
	several := d.several()
	runs, err := trial.Alternate(ctx, append(slices.Clone(sides), several...), b.Trials, b.Progress)
	results := []report.Result{d.b2(runs, sides), d.b3(runs), d.b5(runs)}
	if err != nil {
		return results, err
	}
	r, err := d.b12(ctx, runs, several)
	return append(results, r), err
}

func (d *delivering) b2(runs trial.Runs, sides []trial.Side) report.Result {
	rate := (*trial.Measure).Rate
	return report.Result{
		ID: "B2", Title: fmt.Sprintf("Drain: %s PENDING messages to a local receiver", report.Number(float64(d.count))),
		Unit:  "a message, received and recorded as DELIVERED",
		Floor: "a net/http loop that POSTs the same message over 64 connections",
		Peer:  fmt.Sprintf("River, %d workers, jobs that do the same POST", peers.RiverWorkers),
		Figures: []report.Figure{
			report.Of(sideDrain, "messages/s", runs.Of(sideDrain, rate), nil),
			report.Of(sidePost, "messages/s", runs.Of(sidePost, rate), nil),
			report.Of(sideRiver, "messages/s", runs.Of(sideRiver, rate), nil),
			report.Of("drain over the POST loop", "×", runs.Ratios(sideDrain, sidePost), report.AtLeast(0.30)),
			report.Of("drain over River", "×", runs.Ratios(sideDrain, sideRiver), report.AtLeast(1.25)),
			report.Of("River over the POST loop", "×", runs.Ratios(sideRiver, sidePost), nil),
			report.Of("bare outbox over the POST loop", "×", runs.Ratios(sideBare, sidePost), nil),
			report.Of("drain over the bare outbox", "×", runs.Ratios(sideDrain, sideBare), nil),
			report.Of("CPU of a message, drain", "µs", runs.Of(sideDrain, (*trial.Measure).Micros), nil),
			report.Of("CPU of a message, POST loop", "µs", runs.Of(sidePost, (*trial.Measure).Micros), nil),
			report.Of("CPU of a message, River", "µs", runs.Of(sideRiver, (*trial.Measure).Micros), nil),
			report.Of("CPU of a message, bare outbox", "µs", runs.Of(sideBare, (*trial.Measure).Micros), nil),
		},
		Notes: []string{
			"The drain begins when a person's request enables the webhook, and ends when the last message is recorded. The loop begins with its first POST and ends with its last answer. River begins when its client is started, and ends when its last job is completed.",
			lab.CPUNotes(runs, sideDrain), lab.CPUNotes(runs, sidePost), lab.CPUNotes(runs, sideRiver), lab.CPUNotes(runs, sideBare),
			fmt.Sprintf("Tocsin's webhook may have %d attempts at a time, the most that a webhook can be given; its default is %d.", lab.MostConcurrent, notify.DefaultMaxConcurrent),
			"The bare outbox writes each row as rarely as the promises allow. It commits a claim and the body before the call, and the outcome after it. It has no rules, templates, signatures, limits or retries, and its only index is that of the queue.",
		},
		Bars: lab.Bars(runs, sides), BarsUnit: "messages/s",
	}
}

func (d *delivering) b3(runs trial.Runs) report.Result {
	rate := (*trial.Measure).Rate
	r := report.Result{
		ID: "B3", Title: "Whole: from rows in ClickHouse to received and recorded messages",
		Unit:  "an exchange that failed, alerted, received and recorded",
		Floor: "the POST loop of B2", Peer: "River's POST alone, without rules and rows; Alertmanager, one message for each alert",
		Figures: []report.Figure{
			report.Of(sideWhole, "alerts/s", runs.Of(sideWhole, rate), nil),
			report.Of("whole over the POST loop", "×", runs.Ratios(sideWhole, sidePost), report.AtLeast(0.27)),
			report.Of("whole over River", "×", runs.Ratios(sideWhole, sideRiver), nil),
			report.Of(sideBorn+", over the POST loop", "×", runs.Ratios(sideBorn, sidePost), nil),
		},
		Notes: []string{
			"All rows are in ClickHouse beforehand. The run begins with the tick that finds them, and ends when the last message is recorded. Ticks are 2 s apart. The time of this tick is known from the previous one.",
			"The bare outbox commits pages of 1,000 messages with their bodies, already leased to itself. Before the call it writes nothing else, neither alerts nor a cursor.",
			lab.CPUNotes(runs, sideBorn),
		},
	}
	if d.Alertmanager == "" {
		r.Notes = append(r.Notes, "There is no comparison with Alertmanager, which is not installed on this machine (Debian's package is prometheus-alertmanager).")
		return r
	}
	r.Figures = append(r.Figures,
		report.Of(sideAlertmanager, "alerts/s", runs.Of(sideAlertmanager, rate), nil),
		report.Of("whole over Alertmanager", "×", runs.Ratios(sideWhole, sideAlertmanager), report.AtLeast(1.4)),
		report.Of("the POST loop over Alertmanager", "×", runs.Ratios(sidePost, sideAlertmanager), nil),
		report.Of("CPU of an alert, Alertmanager", "µs", runs.Of(sideAlertmanager, (*trial.Measure).Micros), nil))
	r.Notes = append(r.Notes,
		fmt.Sprintf("Alertmanager is given %s alerts. The run begins when the first is sent to it, and ends when the last message is received. It records nothing.",
			report.Number(float64(d.alerts))),
		lab.CPUNotes(runs, sideAlertmanager))
	return r
}

func (d *delivering) b5(runs trial.Runs) report.Result {
	return report.Result{
		ID: "B5", Title: "Processor time of an alert, in all processes", Unit: "an alert of B3",
		Floor: "the processor time of a POST of the loop of B2, with its receiver",
		Figures: []report.Figure{
			report.Of("CPU of an alert, whole", "µs", runs.Of(sideWhole, (*trial.Measure).Micros), nil),
			report.Of("CPU of a message, POST loop", "µs", runs.Of(sidePost, (*trial.Measure).Micros), nil),
		},
		Notes: []string{lab.CPUNotes(runs, sideWhole), "All processes are Tocsin, Postgres, ClickHouse and the receiver, with their child processes."},
	}
}

// drain sends what the product's own commit left PENDING.
func (d *delivering) drain(ctx context.Context, _ int) (m trial.Measure, err error) {
	world, err := d.Engines.NewWorld(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := d.Book()
	hook, err := d.Pending(ctx, world, d.Receiver.URL(book), d.count)
	if err != nil {
		return m, err
	}
	replica, err := world.Start(ctx, "TOCSIN_ROLES=api,dispatch")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	used, err := lab.Metered(d.Processes(map[string]int{"Tocsin": replica.PID()}))
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := replica.EnableHook(ctx, hook); err != nil {
		return m, err
	}
	m, err = d.ended(ctx, world, book, begun{began, used})
	if err == nil && d.sample == nil {
		d.sample, err = d.Receiver.Sample(ctx, book)
	}
	return m, err
}

// begun is when and by whom work was begun.
type begun struct {
	at   time.Time
	used func() (map[string]time.Duration, error)
}

// ended waits until every message was received and recorded. What it asks after
// that is no part of what was used.
func (d *delivering) ended(ctx context.Context, world *product.World, book string, began begun) (trial.Measure, error) {
	if _, err := d.AwaitReceived(ctx, book, d.count); err != nil {
		return trial.Measure{}, err
	}
	recorded, err := world.AwaitRecorded(ctx, d.count)
	if err != nil {
		return trial.Measure{}, err
	}
	cpu, err := began.used()
	if err != nil {
		return trial.Measure{}, err
	}
	n, err := world.Number(ctx, product.Delivered)
	if err != nil {
		return trial.Measure{}, err
	}
	m, err := d.Counted(ctx, book, d.count, int(n))
	m.Elapsed, m.CPU = recorded.Sub(began.at), cpu
	return m, err
}

// whole lets rows in ClickHouse be evaluated and sent by one process.
func (d *delivering) whole(ctx context.Context, _ int) (m trial.Measure, err error) {
	world, err := d.Engines.NewWorld(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	book := d.Book()
	hook, err := world.Hook(ctx, d.Receiver.URL(book), lab.MostConcurrent, true)
	if err != nil {
		return m, err
	}
	if _, err := world.Rule(ctx, []uuid.UUID{hook}); err != nil {
		return m, err
	}
	// A pass reads for a third of the lease; here one pass is to read all.
	replica, err := world.Start(ctx, "TOCSIN_TICK_INTERVAL="+wholeTick.String(), "TOCSIN_PARTITION_LEASE=2m")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, replica.End()) }()
	began, err := world.Prepare(ctx, replica, wholeTick, product.Exchanges{Count: d.count, Prefix: "execution-"})
	if err != nil {
		return m, err
	}
	used, err := lab.Metered(d.Processes(map[string]int{"Tocsin": replica.PID()}))
	if err != nil {
		return m, err
	}
	return d.ended(ctx, world, book, begun{began, used})
}
