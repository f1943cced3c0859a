package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/simulate/model"
)

// Options says what to simulate.
type Options struct {
	Seed uint64
	// Steps is how many steps are drawn; by default 30 of an odd seed, 150 of an even one.
	Steps int
	// Leave holds the numbers of the steps that are left out.
	Leave map[int]bool
	// Without are guards that the model lacks.
	Without []model.Guard
	// Quiet keeps no history.
	Quiet bool
	// Calm is a stretch of normal operation instead of steps: so many rules, for so long.
	Calm      time.Duration
	CalmRules int
}

// setDefaults fills in the number of steps. After few of them a process remembers what it
// did wrong until the end.
func (o *Options) setDefaults() {
	switch {
	case o.Steps > 0:
	case o.Seed%2 == 1:
		o.Steps = 30
	default:
		o.Steps = 150
	}
}

// Stats counts what happened.
type Stats struct {
	Calls, Passes, Faults, Events, Exchanges, Alerts, Deleted int
	Requests, Delivered, Repeats, Failovers, Starts, Steps    int
	// Measured are those of the steps that follow from a share or a percentile.
	Measured int
	// Absences are those that follow from an absence, Tallies the queries that tally, FailedTallies those that failed, Inexact
	// those whose answer had an exchange in two tallies.
	Absences, Tallies, FailedTallies, Inexact int
	// Brief are the steps of rules with a window shorter than a minute.
	Brief int
	// Listed are suppressed messages that digests of silences list.
	Listed int
	// Suppressed are messages that silences suppressed, SuppressedCounts those of them about alerts of window rules.
	Suppressed, SuppressedCounts int
	// EventMessages are messages that alerts were acknowledged or reopened, Expired those that were too old to be sent.
	EventMessages, Expired int
	// Unheard are messages about ends that were not sent because the webhooks had not heard of the alerts after all.
	Unheard int
	// Routed are alerts that a routing policy led anywhere or nowhere, Replays came to their end.
	Routed, Replays int
	// Escalating are alerts that wait for a step, Escalated and Skipped are steps that were taken and passed
	// over, Resumed go on because something is undone, Reminded are snoozes that ended in a reminder.
	Escalating, Escalated, Skipped, Resumed, Reminded int
	// Held are messages that quiet hours held, Released those that were sent after them, Needless those that
	// were of no use by then.
	Held, Released, Needless int
	// Aged are alerts that their age resolved, Proven those that evidence did.
	Aged, Proven int

	Simulated time.Duration
}

// Add adds what happened in another run.
func (s *Stats) Add(o *Stats) {
	s.Calls, s.Passes, s.Faults, s.Events = s.Calls+o.Calls, s.Passes+o.Passes, s.Faults+o.Faults, s.Events+o.Events
	s.Suppressed, s.Listed, s.Routed, s.Replays = s.Suppressed+o.Suppressed, s.Listed+o.Listed, s.Routed+o.Routed, s.Replays+o.Replays
	s.Exchanges, s.Alerts, s.Deleted = s.Exchanges+o.Exchanges, s.Alerts+o.Alerts, s.Deleted+o.Deleted
	s.Requests, s.Delivered, s.Repeats = s.Requests+o.Requests, s.Delivered+o.Delivered, s.Repeats+o.Repeats
	s.Failovers, s.Starts, s.Simulated, s.Steps = s.Failovers+o.Failovers, s.Starts+o.Starts, s.Simulated+o.Simulated, s.Steps+o.Steps
	s.SuppressedCounts, s.Unheard = s.SuppressedCounts+o.SuppressedCounts, s.Unheard+o.Unheard
	s.EventMessages, s.Expired = s.EventMessages+o.EventMessages, s.Expired+o.Expired
	s.Measured, s.Absences, s.Tallies = s.Measured+o.Measured, s.Absences+o.Absences, s.Tallies+o.Tallies
	s.FailedTallies, s.Inexact, s.Brief = s.FailedTallies+o.FailedTallies, s.Inexact+o.Inexact, s.Brief+o.Brief
	s.Escalating, s.Escalated, s.Skipped = s.Escalating+o.Escalating, s.Escalated+o.Escalated, s.Skipped+o.Skipped
	s.Resumed, s.Reminded = s.Resumed+o.Resumed, s.Reminded+o.Reminded
	s.Held, s.Released, s.Needless = s.Held+o.Held, s.Released+o.Released, s.Needless+o.Needless
	s.Aged, s.Proven = s.Aged+o.Aged, s.Proven+o.Proven
}

// String lists the numbers.
func (s *Stats) String() string {
	return fmt.Sprintf("%d calls, %d passes, %d exchanges, %d alerts, %d of them deleted, %d steps of alerts of window rules (%d of windows under a minute), %d tallies (and %d failed, %d inexact), %d requests, %d messages suppressed (%d about counts) and %d of them listed in digests, %d messages about acknowledging and reopening, %d messages too old and %d ends of which nobody had heard, %d alerts routed, %d to escalate, %d steps taken and %d skipped, %d resumed, %d snoozes ended, %d messages held by quiet hours, %d sent after them and %d of no use, %d replays done, %d alerts resolved by age and %d by evidence, %d repeats inside the window, %d faults, %d failovers, %d processes, %v of virtual time",
		s.Calls, s.Passes, s.Exchanges, s.Alerts, s.Deleted, s.Steps, s.Brief, s.Tallies, s.FailedTallies, s.Inexact, s.Requests, s.Suppressed, s.SuppressedCounts, s.Listed, s.EventMessages, s.Expired, s.Unheard, s.Routed, s.Escalating, s.Escalated, s.Skipped, s.Resumed, s.Reminded, s.Held, s.Released, s.Needless, s.Replays, s.Aged, s.Proven, s.Repeats, s.Faults, s.Failovers, s.Starts, s.Simulated.Round(time.Hour))
}

// Taken returns the numbers of the steps that are not left out.
func (o *Options) Taken() (list []int) {
	for n := range o.Steps {
		if !o.Leave[n] {
			list = append(list, n)
		}
	}
	return list
}

// Result is what came of a simulation.
type Result struct {
	Violation error
	History   []string
	Stats     Stats
}

type serving int

const (
	oneServer serving = iota
	stickyServers
	alternatingServers
	randomServers
)

// config is what a seed fixes for a whole run.
type config struct {
	tenants, rules, processes, pageSize, slots, digestAbove int
	rate                                                    float64
	interval, keep, lease                                   time.Duration
	lookBacks                                               []int
	servers                                                 serving
	// deaf says that no wake-up reaches anybody.
	deaf bool
	// routed says that rules use routing policies.
	routed bool
	// quiet says that webhooks have quiet hours.
	quiet bool
	// resolves says that rules resolve alerts by age and evidence.
	resolves bool
	// events says that webhooks choose what happens to alerts.
	events bool
	// digests says that silences ask for digests.
	digests bool
	// skew is what Postgres's clock is ahead of the producers'.
	skew  time.Duration
	oneIn int
	// brief says that windows are shorter than a minute, differs that rows of an exchange differ.
	brief, differs bool
	// tallyLeast is the number of window rules from which a tally counts them; 0 for the default.
	tallyLeast int
}

func draw(r *rand.Rand) config {
	return config{
		tenants: 1 + r.IntN(3), rules: 1 + r.IntN(4), processes: 1 + r.IntN(3), pageSize: 1 + r.IntN(5), slots: 1 + r.IntN(8),
		digestAbove: []int{0, 2, 5}[r.IntN(3)], rate: []float64{0, 0, 1, 5}[r.IntN(4)],
		interval: []time.Duration{time.Second, 2 * time.Second, 5 * time.Second}[r.IntN(3)], keep: 24 * time.Hour,
		lookBacks: [][]int{{3600}, {3600, 60}, {30, 600}, {0, 3600}, {7200, 3600}}[r.IntN(5)],
		servers:   serving(r.IntN(4)), deaf: r.IntN(4) == 0, skew: []time.Duration{0, 0, 5 * time.Minute, -30 * time.Second}[r.IntN(4)], oneIn: 1 + r.IntN(3),
		lease: []time.Duration{6 * time.Second, 30 * time.Second}[r.IntN(2)],
	}
}

// Routed reports whether rules of a seed use routing policies that escalate, and people snooze alerts and take
// back what they did.
func Routed(seed uint64) bool { return seed%3 == 0 }

// Events reports whether webhooks of a seed choose what happens to alerts.
func Events(seed uint64) bool { return seed%7 == 1 || seed%7 == 5 }

// QuietHours reports whether webhooks of a seed have quiet hours.
func QuietHours(seed uint64) bool { return seed%5 == 0 }

// Resolves reports whether rules of a seed resolve their alerts by age and evidence.
func Resolves(seed uint64) bool { return seed%7 < 2 }

// SilenceDigests reports whether people of a seed ask for digests of what silences suppress, and edit silences.
func SilenceDigests(seed uint64) bool { return seed%4 == 2 }

// Tallies reports whether window rules of a seed are counted by tallies, however few there are. Those of several short
// windows are.
func Tallies(seed uint64) bool { return seed%5 < 2 || Brief(seed) }

// Inexact reports whether rows of an exchange differ in a seed whose window rules are counted by tallies.
func Inexact(seed uint64) bool { return Tallies(seed) && seed%3 == 1 }

// Brief reports whether windows of a seed are shorter than a minute.
func Brief(seed uint64) bool { return seed%4 == 3 }

// Run simulates, in a bubble that it may use up: everything in it has ended when Run returns.
func Run(bubble Bubble, o Options) Result {
	o.setDefaults()
	first := rand.New(rand.NewPCG(o.Seed, 0))
	w := &world{Bubble: bubble, o: o, conf: draw(first), rand: first}
	w.conf.routed, w.conf.quiet, w.conf.digests, w.conf.events = Routed(o.Seed), QuietHours(o.Seed), SilenceDigests(o.Seed), Events(o.Seed)
	w.conf.resolves, w.conf.brief, w.conf.differs = Resolves(o.Seed), Brief(o.Seed), Inexact(o.Seed) // what is drawn for the other seeds stays
	if w.conf.brief {
		w.conf.rules += 2
	}
	if Tallies(o.Seed) {
		w.conf.tallyLeast = 1
	}
	w.truth = truth{
		w: w, began: bubble.Now(), byKey: map[exchangeKey]*exchange{}, rules: map[uuid.UUID]*ruleTruth{}, pairs: map[pairKey]*pair{},
		alerts: map[uuid.UUID]*alertTruth{}, messages: map[uuid.UUID]*messageTruth{}, notified: map[string]uuid.UUID{}, sent: map[string][]*sending{},
		measured: map[int]time.Time{}, silences: map[uuid.UUID]silenceTruth{}, digests: map[uuid.UUID]*digestTruth{}, suppressed: map[uuid.UUID]*suppressedTruth{}, lasting: map[uuid.UUID]bool{}, policies: map[string][]policyTruth{}, hooks: map[uuid.UUID]time.Time{}, checked: map[int64]time.Time{},
		watches: map[uint32]*watching{}, hours: map[uuid.UUID][]hoursTruth{}, quieted: map[uuid.UUID]*heldTruth{}, stepIDs: map[uuid.UUID]int{},
	}
	w.db = model.NewPostgres(partitions, w.pgNow, partitionOf)
	for _, g := range o.Without {
		w.db.Without[g] = true
	}
	w.ch = &model.ClickHouse{
		Now:   func() int64 { return w.Now().UnixNano() },
		Clock: func(int) int64 { return w.Now().Add(w.chSkew).UnixNano() },
	}
	w.pgSkew = w.conf.skew
	if o.Calm > 0 {
		w.calm()
	} else {
		w.storm()
	}
	w.stats.Simulated = w.Now().Sub(w.truth.began)
	w.close()
	return Result{w.violation, w.history, w.stats}
}

// storm draws steps, and in the end lets everything come to rest.
func (w *world) storm() {
	w.note("seed %d: %d tenants, %d rules, %d processes, interval %v, page size %d, %d slots, look-backs %v s, servers %d, digests above %d, rate %v, deaf %v, Postgres's clock %v ahead",
		w.o.Seed, w.conf.tenants, w.conf.rules, w.conf.processes, w.conf.interval, w.conf.pageSize, w.conf.slots, w.conf.lookBacks,
		w.conf.servers, w.conf.digestAbove, w.conf.rate, w.conf.deaf, w.conf.skew)
	w.begin()
	for range w.conf.processes {
		w.start()
	}
	w.run(3 * w.conf.interval)
	for n := range w.o.Steps {
		if w.violation != nil {
			return
		}
		if w.o.Leave[n] {
			continue
		}
		// Each step has its own numbers, so that the others stay as they are without it.
		w.rand = rand.New(rand.NewPCG(w.o.Seed, uint64(n+1)))
		w.step()
	}
	w.rand = rand.New(rand.NewPCG(w.o.Seed, 1<<32))
	w.rest()
	if w.violation == nil {
		w.checkAll()
	}
}

// rest ends all faults, and runs until nothing is left to do.
func (w *world) rest() {
	if w.violation != nil {
		return
	}
	w.note("all faults end")
	w.receiver.manner = answers
	w.db.Refuses, w.panics = nil, uuid.Nil
	w.sourceFails = false
	w.countsBy(countsAll)
	for _, p := range w.processes {
		if !p.dead {
			w.resume(p)
			p.skew.Store(0)
			p.skewedAt = w.Now()
		}
	}
	if w.chSkew > w.pgSkew {
		w.jump(func() { w.chSkew = w.pgSkew })
	}
	if !w.anyAlive() {
		w.start()
	}
	w.drain()
	if w.conf.quiet && w.rand.IntN(2) == 0 {
		for _, id := range w.people.webhooks {
			w.editQuietHours(id, true)
		}
		w.check()
	}
	for _, id := range w.people.webhooks {
		if !w.db.Webhook(id).Enabled || w.db.Webhook(id).Webhook.HeldUntil.After(w.pgNow()) {
			_ = w.db.EnableWebhook(id, true)
		}
	}
	// What lags is shown, rules that fail are tried again, leases expire, retries come due.
	for range 8 {
		w.run(20 * time.Second)
		w.skip(80 * time.Second)
	}
	w.checkQuiet()
	w.checkDigests()
	w.checkOver()
	if w.conf.tallyLeast > 0 {
		w.countsBy(countingManner(w.rand.IntN(int(talliesHang) + 1)))
	}
	if w.counting == talliesHang {
		w.run(burstFor) // until it is known
	}
	w.burst()
	if w.counting == talliesHang {
		w.countsBy(countsAll) // it would be asked again after a while, and a short window pass meanwhile
	}
	w.vanish()
	w.comeBack()
	if w.conf.resolves && w.violation == nil {
		w.run(3 * resolveEvery)
		w.checkOpen()
	}
	for n := 0; n < 120 && w.violation == nil && !w.idle(); n++ {
		if w.run(10 * time.Second); n > 10 {
			w.skip(time.Hour)
		}
	}
}

// idle reports whether nothing behind the cursors is left to evaluate, and nothing to deliver.
func (w *world) idle() bool {
	for n := range partitions {
		if w.db.Checkpoint(n).Backfill != nil {
			return false
		}
	}
	return w.db.Backfills() == 0 && w.db.RunningReplays() == 0 && w.db.Following() == 0 && w.db.WaitingCount() == 0
}

func (w *world) anyAlive() bool {
	for _, p := range w.processes {
		if p.alive() {
			return true
		}
	}
	return false
}

// calm is normal operation.
func (w *world) calm() {
	w.conf = config{
		tenants: 3, rules: w.o.CalmRules, processes: 2, pageSize: 1000, slots: 64, interval: 10 * time.Second, keep: 24 * time.Hour,
		lookBacks: []int{3600}, oneIn: 1, lease: 30 * time.Second, servers: stickyServers, tallyLeast: w.conf.tallyLeast,
	}
	w.begin()
	for range w.conf.processes {
		w.start()
	}
	for end := w.Now().Add(w.o.Calm); w.Now().Before(end) && w.violation == nil; {
		w.row(-int64(10*time.Second), 0, true)
		w.run(time.Duration(1+w.rand.IntN(60)) * time.Second)
	}
}

// close ends every process and waits until nothing of them is left.
func (w *world) close() {
	for _, p := range w.processes {
		p.paused = false
		w.kill(p)
	}
	w.Sleep(2 * time.Hour)
	w.Wait()
	w.stats.Starts = w.starts
}
