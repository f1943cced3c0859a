//go:build !race

package simulate_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"tocsin/internal/simulate"
)

//nolint:gochecknoglobals // flags of the test binary
var (
	seeds    = flag.Int("seeds", 300, "how many seeds TestSeeds simulates")
	first    = flag.Uint64("seed", 1, "the first seed")
	steps    = flag.Int("steps", 0, "how many steps a seed draws, 0 for the default")
	verbose  = flag.Bool("history", false, "print the history of each seed")
	workers  = flag.Int("workers", 2, "how many seeds are simulated at once")
	shrink   = flag.Bool("shrink", true, "shrink what a seed finds")
	progress = flag.Bool("progress", false, "print the progress")
)

// simulated runs a simulation in a bubble of its own.
func simulated(t *testing.T, o simulate.Options) (r simulate.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r = simulate.Run(simulate.Bubble{Now: time.Now, Sleep: time.Sleep, Wait: synctest.Wait, Context: t.Context()}, o) //nolint:forbidigo // virtual time
	})
	return r
}

// known are the results of the first seeds: several tests look at the same ones, and a seed always has the same result.
//
//nolint:gochecknoglobals // simulated once for all tests of the process
var known sync.Map

// knownSeeds is the last seed whose result is kept.
const knownSeeds = 300

// simulatedOnce simulates a seed with the usual steps and without a history, unless that has been done already.
func simulatedOnce(t *testing.T, seed uint64) simulate.Result {
	t.Helper()
	if r, ok := known.Load(seed); ok {
		return r.(simulate.Result) //nolint:forcetypeassert // nothing else is stored
	}
	r := simulated(t, simulate.Options{Seed: seed, Quiet: true})
	if seed <= knownSeeds {
		known.Store(seed, r)
	}
	return r
}

// TestSeeds simulates seed after seed. The first that breaks a promise is shrunk, and its
// history printed.
func TestSeeds(t *testing.T) {
	began := time.Now()
	var done atomic.Int64
	var mu sync.Mutex
	var sum simulate.Stats
	var failed atomic.Bool
	var all sync.WaitGroup
	for range *workers {
		all.Go(func() {
			for {
				n := done.Add(1)
				if n > int64(*seeds) || failed.Load() {
					return
				}
				o := simulate.Options{Seed: *first + uint64(n) - 1, Steps: *steps, Quiet: !*verbose}
				var r simulate.Result
				if *steps == 0 && !*verbose {
					r = simulatedOnce(t, o.Seed)
				} else {
					r = simulated(t, o)
				}
				if *verbose {
					t.Log(strings.Join(r.History, "\n"))
				}
				if r.Violation != nil && failed.CompareAndSwap(false, true) {
					fail(t, o, r)
				}
				mu.Lock()
				sum.Add(&r.Stats)
				if *progress && n%1000 == 0 {
					_, _ = fmt.Fprintf(os.Stdout, "%d seeds, %v, nothing found: %s\n", n, time.Since(began).Round(time.Second), &sum)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if !failed.Load() {
		t.Logf("seeds %d to %d in %v: %s", *first, *first+uint64(*seeds)-1, time.Since(began).Round(time.Millisecond), &sum)
	}
}

// fail shrinks what a seed found, and prints it.
func fail(t *testing.T, o simulate.Options, r simulate.Result) {
	t.Helper()
	o.Quiet = false
	if !*shrink {
		t.Errorf("seed %d breaks %v", o.Seed, r.Violation)
		return
	}
	const most = 200
	shrunk, r := simulate.Shrink(o, r, func(o simulate.Options) simulate.Result { return simulated(t, o) }, most)
	if r.History == nil {
		r = simulated(t, shrunk)
	}
	args := fmt.Sprint("-seed ", o.Seed)
	if *steps > 0 {
		args += fmt.Sprint(" -steps ", *steps)
	}
	t.Errorf("seed %d breaks %v; shrunk to the steps %v:\n%s\nto repeat it: make simulate SEEDS=1 ARGS='%s'",
		o.Seed, r.Violation, shrunk.Taken(), strings.Join(r.History, "\n"), args)
}

// TestSeedsHaveWhatMakesThemHard holds that the steps do what they are for.
func TestSeedsHaveWhatMakesThemHard(t *testing.T) {
	var sum simulate.Stats
	for seed := range uint64(60) {
		r := simulatedOnce(t, 1+seed)
		sum.Add(&r.Stats)
	}
	for what, n := range map[string]int{
		"faults": sum.Faults, "alerts": sum.Alerts, "alerts deleted by retention": sum.Deleted, "requests": sum.Requests, "steps of alerts of window rules": sum.Steps, "steps by shares and percentiles": sum.Measured,
		"alerts about absences":     sum.Absences,
		"queries that tally":        sum.Tallies,
		"tallies that fail":         sum.FailedTallies,
		"inexact tallies":           sum.Inexact,
		"steps of short windows":    sum.Brief,
		"repeats inside the window": 10 * sum.Repeats, "failovers": sum.Failovers, "messages suppressed": sum.Suppressed, "alerts routed": sum.Routed,
		"replays": 5 * sum.Replays,
	} {
		if n < 20 {
			t.Errorf("%d %s in 60 seeds: too few to mean something", n, what)
		}
	}
}

// TestRoutedSeedsEscalate holds that seeds with routing policies have escalations and snoozes.
func TestRoutedSeedsEscalate(t *testing.T) {
	var sum simulate.Stats
	for seed := range uint64(80) {
		if r := simulatedOnce(t, 3*(1+seed)); simulate.Routed(3 * (1 + seed)) {
			sum.Add(&r.Stats)
		}
	}
	for what, n := range map[string]int{
		"alerts that escalate": sum.Escalating, "steps taken": sum.Escalated, "skipped steps": sum.Skipped, "steps resumed": 5 * sum.Resumed, "snoozes ended": 5 * sum.Reminded,
	} {
		if n < 20 {
			t.Errorf("%d %s in 80 seeds: too few to mean something", n, what)
		}
	}
	t.Logf("%s", &sum)
}

// TestQuietSeedsHold holds that seeds with quiet hours have messages that these hold.
func TestQuietSeedsHold(t *testing.T) {
	var sum simulate.Stats
	for seed := range uint64(40) {
		if r := simulatedOnce(t, 5*(1+seed)); simulate.QuietHours(5 * (1 + seed)) {
			sum.Add(&r.Stats)
		}
	}
	for what, n := range map[string]int{"messages held": sum.Held, "sent after them": sum.Released, "of no use after them": sum.Needless} {
		if n < 20 {
			t.Errorf("%d %s in 40 seeds: too few to mean something", n, what)
		}
	}
	t.Logf("%s", &sum)
}

// TestSeedsResolve holds that in seeds whose rules resolve alerts, age and evidence do.
func TestSeedsResolve(t *testing.T) {
	var sum simulate.Stats
	for seed := range uint64(150) {
		if simulate.Resolves(1 + seed) {
			r := simulatedOnce(t, 1+seed)
			sum.Add(&r.Stats)
		}
	}
	for what, n := range map[string]int{"alerts resolved by age": sum.Aged, "alerts resolved by evidence": sum.Proven} {
		if n < 20 {
			t.Errorf("%d %s in 150 seeds: too few to mean something", n, what)
		}
	}
	t.Logf("%s", &sum)
}

// TestSilencesSendDigests holds that seeds with digests of silences have messages that these list.
func TestSilencesSendDigests(t *testing.T) {
	var sum simulate.Stats
	for seed := range uint64(40) {
		if r := simulatedOnce(t, 2+4*seed); simulate.SilenceDigests(2 + 4*seed) {
			sum.Add(&r.Stats)
		}
	}
	if sum.Listed < 20 {
		t.Errorf("%d messages listed in 40 seeds: too few to mean something", sum.Listed)
	}
	t.Logf("%s", &sum)
}

// TestAViolationIsShrunk takes a guard away and holds that the history becomes shorter.
func TestAViolationIsShrunk(t *testing.T) {
	run := func(o simulate.Options) simulate.Result { return simulated(t, o) }
	for _, o := range withoutGuard("settle-token", 200) {
		r := run(o)
		if r.Violation == nil {
			continue
		}
		shrunk, after := simulate.Shrink(o, r, run, 100)
		if after.Violation == nil || len(after.History) >= len(r.History) || len(shrunk.Taken()) > 30 {
			t.Errorf("%d lines shrunk to %d of the steps %v, %v", len(r.History), len(after.History), shrunk.Taken(), after.Violation)
		}
		return
	}
	t.Error("nothing to shrink")
}

// TestADayOfFiftyRules is normal operation, of which a day takes a second or so.
func TestADayOfFiftyRules(t *testing.T) {
	began := time.Now()
	r := simulated(t, simulate.Options{Seed: 1, Calm: 24 * time.Hour, CalmRules: 50, Quiet: true})
	if r.Violation != nil {
		t.Error(r.Violation)
	}
	t.Logf("%v: %s", time.Since(began).Round(time.Millisecond), &r.Stats)
}
