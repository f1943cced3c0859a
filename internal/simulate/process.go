package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/evaluator/resolution"
	"tocsin/evaluator/window"
	"tocsin/internal/lease"
	"tocsin/internal/retention"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/rules"
)

// process is a running Tocsin: the real evaluator, dispatcher, retention and membership.
type process struct {
	w      *world
	number int
	name   string

	evaluator  *evaluator.Evaluator
	dispatcher *dispatch.Dispatcher
	deleter    *retention.Deleter
	member     *lease.Member

	dead, paused bool
	// ticking and deleting say that a pass is under way.
	ticking, deleting atomic.Bool
	nextTick          time.Time
	// following says that a pass over snoozes and escalations is under way.
	following  atomic.Bool
	nextFollow time.Time
	// resolving says that a pass of the resolver is under way.
	resolver    *resolution.Resolver
	resolving   atomic.Bool
	nextResolve time.Time
	// skew is the difference between its clock and the true time.
	skew atomic.Int64
	// disturbed is when a fault last kept it from working in time.
	disturbed atomic.Int64
	// skewedAt is when its clock last jumped, releasedAt when its leases were last given to others.
	skewedAt, releasedAt time.Time
	ctx                  context.Context //nolint:containedctx // ends with the process
	end                  context.CancelFunc
	// passes is the number of passes begun.
	passes int
	// reading is the watermark of the last pass over each partition: up to there it has read, or will commit.
	reading map[int]int64
	// asked are the queries about windows since it last read the open alerts.
	asked []asked
}

// disturb records that a fault keeps the process from working in time.
func (p *process) disturb(at time.Time) { p.disturbed.Store(at.UnixNano()) }

func (p *process) disturbedAt() time.Time { return time.Unix(0, p.disturbed.Load()) }

// readingNS is the latest watermark of a pass over a partition, which may be under way.
func (w *world) readingNS(partition int) (latest int64) {
	for _, p := range w.processes {
		if !p.dead {
			latest = max(latest, p.reading[partition])
		}
	}
	return latest
}

func (p *process) alive() bool { return !p.dead && !p.paused }

func (p *process) clock() time.Time { return p.w.Now().Add(time.Duration(p.skew.Load())) }

// random returns a number that depends on the seed and the instant, and not on other calls.
func (p *process) random() float64 {
	n := (p.w.o.Seed+uint64(p.number))*0x9e3779b97f4a7c15 ^ uint64(p.w.Now().UnixNano())
	n = (n ^ n>>29) * 0xbf58476d1ce4e5b9
	return float64((n^n>>32)>>11) / (1 << 53)
}

// start starts a process.
func (w *world) start() {
	w.starts++
	p := &process{w: w, number: w.starts, name: fmt.Sprintf("p%d", w.starts), nextTick: w.Now(), nextFollow: w.Now(), nextResolve: w.Now(), reading: map[int]int64{}}
	p.ctx, p.end = context.WithCancel(w.Context)
	logger := slog.New(slog.DiscardHandler)
	var err error
	fail := func(e error) {
		if e != nil {
			panic(e)
		}
	}
	p.evaluator, err = evaluator.New(evaluator.Options{
		Source: (*clickhouse)(p), Store: (*store)(p), Publisher: p, Texts: texts{w}, Logger: logger, Clock: p.clock, Replica: p.name,
		Interval: w.conf.interval, PageSize: w.conf.pageSize, Workers: 1,
		Windows: window.New(window.Options{Source: (*clickhouse)(p), Texts: texts{w}, Logger: logger, TallyLeast: w.conf.tallyLeast}),
	})
	fail(err)
	policy := notify.DefaultPolicy()
	policy.Jitter, policy.Breaker.Jitter = 0, 0
	p.dispatcher, err = dispatch.New(dispatch.Options{
		Store: (*outbox)(p), Renderer: p, Sender: p, Logger: logger, Clock: p.clock, Random: p.random, Replica: p.name, Policy: policy,
		Slots: w.conf.slots, Lease: w.conf.lease, Poll: 30 * time.Second, DeadAfter: w.db.DeadAfter,
	})
	fail(err)
	p.deleter, err = retention.New(retention.Options{
		Store: (*store)(p), Observer: p, Logger: logger, Clock: p.clock, Keep: retention.Keep{Alerts: w.conf.keep, Contents: w.conf.keep},
	})
	fail(err)
	p.resolver = &resolution.Resolver{Store: (*resolver)(p), Source: (*resolver)(p), Interval: resolveEvery, Logger: logger}
	p.member, err = lease.New(lease.Options{Store: (*store)(p), Logger: logger, Replica: lease.Replica{ID: p.name}})
	fail(err)
	w.processes = append(w.processes, p)
	w.note("%s starts", p.name)
	go p.member.Run(p.ctx)
	go p.dispatcher.Run(p.ctx)
	w.Wait()
}

// tick begins a pass of the evaluator.
func (p *process) tick() {
	p.ticking.Store(true)
	p.passes++
	p.nextTick = p.w.Now().Add(p.w.conf.interval)
	p.w.stats.Passes++
	go func() {
		_, _ = p.evaluator.Tick(p.ctx)
		p.ticking.Store(false)
	}()
}

// deleteOld begins a pass of retention.
func (p *process) deleteOld() {
	p.deleting.Store(true)
	go func() {
		_, _ = p.deleter.Pass(p.ctx)
		p.deleting.Store(false)
	}()
	p.w.Wait()
}

// leave ends a process in an orderly way, as after SIGTERM.
func (p *process) leave() {
	p.w.note("%s ends in order", p.name)
	p.end()
	p.w.Wait()
	p.w.run(200 * time.Millisecond)
	go func() { _ = p.member.Leave(p.w.Context) }()
	p.w.Wait()
	p.w.drain()
}

// kill cuts a process off from everything for good: none of its calls has an effect any more.
func (w *world) kill(p *process) {
	if p.dead {
		return
	}
	w.note("%s dies", p.name)
	w.mu.Lock()
	p.dead = true
	p.disturb(w.Now())
	var lost []*call
	rest := w.pending[:0]
	for _, c := range w.pending {
		if c.p == p {
			c.err = errDead
			lost = append(lost, c)
		} else {
			rest = append(rest, c)
		}
	}
	w.pending = rest
	w.mu.Unlock()
	p.end()
	for _, c := range lost {
		close(c.done)
	}
	w.Wait()
}

// The other dependencies of a process.

// Publish wakes the dispatchers of this process and of the others.
func (p *process) Publish(_ context.Context, wake notify.WakeUp) error {
	if p.w.conf.deaf {
		return nil
	}
	for _, o := range p.w.processes {
		if o.alive() {
			o.dispatcher.Wake(wake.Webhooks)
		}
	}
	return nil
}

// Render returns a different body each time.
func (p *process) Render(d *notify.Delivery) (notify.Body, error) {
	p.w.receiver.rendered++
	return notify.Body{ContentType: "text/plain", Content: fmt.Appendf(nil, "%s rendered as %d", d.NotificationID, p.w.receiver.rendered)}, nil
}

func (*process) RetentionDeleted(int, int) {}
func (*process) RetentionFailed()          {}

type texts struct{ *world }

func (t texts) Texts(r *rules.Rule, _ *rules.Exchange) (title, message string, problem error) {
	if r.ID == t.panics {
		panic("an exchange that nobody expected")
	}
	return "title", "message", nil
}

func (t texts) CountTexts(r *rules.Rule, _ *alerts.Count, _ *rules.Exchange) (title, message string, problem error) {
	return t.Texts(r, nil)
}

func short(id uuid.UUID) string { return id.String()[24:] }
