package demo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func start() time.Time { return time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC) }

// hours draws the rows of a stretch of calm or ordinary traffic.
func hours(t *testing.T, n int, shape Shape) []Row {
	t.Helper()
	return NewGenerator(7, start(), shape).Until(start().Add(time.Duration(n) * time.Hour))
}

// ended keeps each exchange once, in its terminal state.
func ended(rows []Row) []Row {
	var out []Row
	for _, r := range rows {
		if r.Status != StatusRunning && !r.Repeat {
			out = append(out, r)
		}
	}
	return out
}

func TestGeneratorRepeatsItself(t *testing.T) {
	t.Parallel()
	a := NewGenerator(1, start(), Shape{}).Until(start().Add(5 * time.Minute))
	b := NewGenerator(1, start(), Shape{}).Until(start().Add(5 * time.Minute))
	if diff := cmp.Diff(a, b, cmpopts.IgnoreUnexported(Row{})); diff != "" {
		t.Fatalf("same seed and start, other rows:\n%s", diff)
	}
	c := NewGenerator(1, start().Add(time.Nanosecond), Shape{}).Until(start().Add(5 * time.Minute))
	ids := map[string]bool{}
	for _, r := range a {
		ids[r.ExecutionID] = true
	}
	for _, r := range c {
		if ids[r.ExecutionID] {
			t.Fatalf("another start repeats the execution id %s", r.ExecutionID)
		}
	}
}

func TestGeneratorOrdersByInsertion(t *testing.T) {
	t.Parallel()
	g := NewGenerator(3, start(), Shape{})
	last, overtaken, newest := start(), 0, start()
	for n := range 40_000 {
		if n == 15_000 {
			if err := g.Outage("order-to-erp", last); err != nil {
				t.Fatal(err)
			}
		}
		r := g.Next()
		if r.InsertAt.Before(last) {
			t.Fatalf("row %d is inserted at %s, before %s", n, r.InsertAt, last)
		}
		if r.StartTime.Before(newest) {
			overtaken++
		}
		last, newest = r.InsertAt, maxTime(newest, r.StartTime)
	}
	if share := float64(overtaken) / 40_000; share < 0.2 {
		t.Errorf("only %.3f of the rows appear behind one that started later", share)
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestGeneratorShape(t *testing.T) {
	t.Parallel()
	const shapeHours = 2
	rows := hours(t, shapeHours, Shape{NoOutages: true})
	all := ended(rows)

	var took []time.Duration
	perMilli, perNano := map[int64]int{}, map[int64]int{}
	apps, routes := map[string]bool{}, map[string]bool{}
	failedRoutes, types := map[string]bool{}, map[string]bool{}
	var failed, staging int
	for _, r := range all {
		took = append(took, r.Duration)
		perMilli[r.StartTime.UnixMilli()]++
		perNano[r.StartTime.UnixNano()]++
		apps[r.Application], routes[r.Route] = true, true
		if r.Environment == Staging {
			staging++
		}
		if r.Status == StatusFailed {
			failed++
			failedRoutes[r.Route], types[r.ErrorType] = true, true
		}
	}
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))] }
	shared := func(m map[int64]int) float64 {
		n := 0
		for _, c := range m {
			if c > 1 {
				n += c
			}
		}
		return float64(n) / float64(len(all))
	}
	share := float64(failed) / float64(len(all))
	t.Logf("%d exchanges: median %s, p99 %s, max %s; failed %.4f (%.1f a minute); share a millisecond %.3f, a nanosecond %.4f; %d apps, %d routes, %d error types",
		len(all), at(.5), at(.99), at(1), share, float64(failed)/(shapeHours*60), shared(perMilli), shared(perNano), len(apps), len(routes), len(types))

	within := func(name string, got, low, high float64) {
		t.Helper()
		if got < low || got > high {
			t.Errorf("%s is %.4f, want %.4f to %.4f", name, got, low, high)
		}
	}
	within("rate", float64(len(all))/(shapeHours*3600), 14.2, 15.8)
	within("median in ms", at(.5).Seconds()*1e3, 2, 9)
	within("p99 in ms", at(.99).Seconds()*1e3, 350, 700)
	within("longest in s", at(1).Seconds(), 29, 30.1)
	within("failure share", share, 0.022, 0.032)
	within("failures a minute", float64(failed)/(shapeHours*60), 20, 30)
	within("share of a millisecond", shared(perMilli), 0.4, 0.65)
	within("share of a nanosecond", shared(perNano), 0.002, 0.02)
	within("staging", float64(staging)/float64(len(all)), 0.08, 0.15)
	within("rows to exchanges", float64(len(rows))/float64(len(all)), 1.05, 1.09)
	within("applications", float64(len(apps)), 12, 13)
	within("routes", float64(len(routes)), 38, 44)
	within("failing routes", float64(len(failedRoutes)), 38, 44)
	within("error types", float64(len(types)), 20, 40)
}

func TestGeneratorRowsAreSound(t *testing.T) {
	t.Parallel()
	terminal := map[string]Row{}
	announced, repeats := 0, 0
	for _, r := range hours(t, 1, Shape{}) {
		switch r.Status {
		case StatusRunning:
			announced++
			if !r.EndTime.IsZero() || r.Duration != 0 || r.ErrorType != "" || !r.InsertAt.Equal(r.StartTime) {
				t.Fatalf("a row of a running exchange knows its end: %+v", r)
			}
			if _, done := terminal[r.ExecutionID]; done {
				t.Fatalf("%s is RUNNING after its end", r.ExecutionID)
			}
			continue
		case StatusCompleted:
			if r.ErrorType+r.ErrorMessage+r.ErrorStack != "" {
				t.Fatalf("a completed exchange has an error: %+v", r)
			}
		case StatusFailed:
			if r.ErrorType == "" || r.ErrorMessage == "" || !strings.Contains(r.ErrorStack, "\tat com.nordhaus."+r.Application+".") {
				t.Fatalf("a failed exchange lacks its error: %+v", r)
			}
		default:
			t.Fatalf("unknown status %q", r.Status)
		}
		if r.EndTime.Sub(r.StartTime) != r.Duration || r.Duration <= 0 {
			t.Fatalf("%s from %s to %s lasts %s", r.ExecutionID, r.StartTime, r.EndTime, r.Duration)
		}
		if before, seen := terminal[r.ExecutionID]; seen {
			repeats++
			if !r.Repeat || cmp.Diff(before.Exchange, r.Exchange) != "" {
				t.Fatalf("%s appears again, changed or not marked", r.ExecutionID)
			}
		} else if r.Repeat {
			t.Fatalf("%s is a repeat of nothing", r.ExecutionID)
		}
		terminal[r.ExecutionID] = r
	}
	if announced == 0 || repeats == 0 {
		t.Errorf("%d announced, %d repeated: want some of each", announced, repeats)
	}
}

func TestMessagesHoldWhatBreaksTemplates(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, r := range hours(t, 1, Shape{}) {
		text.WriteString(r.ErrorMessage)
	}
	for _, want := range []string{`"`, "'", "\n", "ü", "ß", "<", "&", ">", `{"`, "\x00", "${", "—"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no message holds %q", want)
		}
	}
}

func TestOutages(t *testing.T) {
	t.Parallel()
	const n = 2
	calm := len(failures(hours(t, n, Shape{NoOutages: true})))
	rough := len(failures(hours(t, n, Shape{})))
	if more := float64(rough-calm) / (n * 60); more < 8 || more > 20 {
		t.Errorf("outages add %.1f failures a minute, want 8 to 20", more)
	}

	g := NewGenerator(5, start(), Shape{NoOutages: true})
	g.Until(start().Add(time.Minute))
	at := start().Add(time.Minute)
	if err := g.Outage("sepa-export", at); err != nil {
		t.Fatal(err)
	}
	hit := 0
	for _, r := range failures(g.Until(at.Add(15 * time.Second))) {
		if r.Route == "sepa-export" {
			hit++
		}
	}
	if hit < outageFewest || hit > outageMost+3 {
		t.Errorf("an outage on demand made %d failures, want %d to %d", hit, outageFewest, outageMost)
	}
	if err := g.Outage("no-such-route", at); err == nil {
		t.Error("an outage of an unknown route is accepted")
	}
}

func failures(rows []Row) []Row {
	return slices.DeleteFunc(ended(rows), func(r Row) bool { return r.Status != StatusFailed })
}

func TestRoutesAreDistinct(t *testing.T) {
	t.Parallel()
	ids := Routes()
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Error("two routes share an id")
	}
}

// TestRoutesInTrouble compares each route in trouble with itself in the minutes without.
func TestOrdersAreSentAgain(t *testing.T) {
	t.Parallel()
	failed, again := map[string]Row{}, 0
	for _, r := range ended(hours(t, 2, Shape{})) {
		was, known := failed[r.CorrelationID]
		switch {
		case known:
			again++
			if r.Status != StatusCompleted || r.Route != was.Route || r.Environment != was.Environment || r.ExecutionID == was.ExecutionID ||
				!r.StartTime.After(was.EndTime) || r.Attributes["orderId"] != was.Attributes["orderId"] || r.ErrorMessage != "" {
				t.Fatalf("%+v is sent again as %+v", was, r)
			}
		case r.Status == StatusFailed && r.Attributes["orderId"] != "":
			failed[r.CorrelationID] = r
		}
	}
	if 3*again < len(failed) || 3*again > 2*len(failed) {
		t.Errorf("of %d orders that failed, %d are sent again", len(failed), again)
	}
}

func TestRoutesInTrouble(t *testing.T) {
	type measure struct {
		exchanges, failed int
		durations         []time.Duration
	}
	routes := map[string]map[bool]*measure{}
	for _, r := range hours(t, 2, Shape{}) {
		if r.Repeat || r.Status == StatusRunning || r.Environment != Production {
			continue
		}
		of := routes[r.Route]
		if of == nil {
			of = map[bool]*measure{true: {}, false: {}}
			routes[r.Route] = of
		}
		_, troubled := troubleOf(r.Route, r.StartTime)
		m := of[troubled]
		m.exchanges++
		if r.Status == StatusFailed {
			m.failed++
		} else {
			m.durations = append(m.durations, r.Duration)
		}
	}
	p95 := func(m *measure) time.Duration {
		slices.Sort(m.durations)
		return m.durations[len(m.durations)*95/100]
	}
	fails, slow := routes["tax-lookup"], routes["pdf-render"]
	if bad, usual := fails[true], fails[false]; 3*bad.failed < bad.exchanges || 5*usual.failed > usual.exchanges {
		t.Errorf("tax-lookup: %d of %d fail in trouble, %d of %d without", bad.failed, bad.exchanges, usual.failed, usual.exchanges)
	}
	if bad, usual := p95(slow[true]), p95(slow[false]); bad < 4*time.Second || usual > time.Second {
		t.Errorf("pdf-render: p95 %v in trouble, %v without", bad, usual)
	}
	if silent := routes["tracking-import"]; silent[true].exchanges > 0 || silent[false].exchanges < 100 {
		t.Errorf("tracking-import: %d in trouble, %d without", silent[true].exchanges, silent[false].exchanges)
	}
	for name, of := range routes {
		if name != "tax-lookup" && name != "pdf-render" && of[true].exchanges > 0 {
			t.Errorf("%s is in trouble", name)
		}
	}
}
