package window_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/source"
	"tocsin/evaluator/watch"
	"tocsin/evaluator/window"
	"tocsin/evaluator/window/counting"
	"tocsin/internal/windowtest"
	"tocsin/rules"
)

// row is an exchange of a route, in seconds of the test: when it ended, and when it became visible
// on each server.
type row struct {
	route   string
	ended   int
	visible map[string]int
	// tenant is whose exchange it is for the watch; "" is everybody's.
	tenant string
}

// archive is a source whose servers show rows at their times. They are queried in turn.
type archive struct {
	mu      sync.Mutex // guards servers and queries, of which several are made at once
	rows    []row
	servers []string
	now     int
	down    bool
	// unwatched makes the queries of the watch fail.
	unwatched bool
	// learnsFrom is the server that answers the query of days; "" is the next one.
	learnsFrom string
	// unlearnable makes the query of days fail.
	unlearnable bool
	// queries holds the kinds of queries that were made.
	queries []string
}

// origin is the instant of second 0, in the middle of a bucket.
const origin = watermark + 3*second

func (a *archive) ask(kind string) (server string, err error) {
	if a.down {
		return "", errDown
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queries = append(a.queries, kind)
	server = a.servers[0]
	a.servers = append(a.servers[1:], server)
	return server, nil
}

// seen calls add for each row that ended in a period and is visible on a server.
func (a *archive) seen(server string, fromNS, toNS int64, add func(r *row, endedNS int64)) {
	for i := range a.rows {
		r := &a.rows[i]
		ended := origin + int64(r.ended)*second
		if ended < fromNS || ended >= toNS {
			continue
		}
		if visible, ok := r.visible[server]; ok && visible <= a.now {
			add(r, ended)
		}
	}
}

func (a *archive) Tally(_ context.Context, q counting.TallyQuery) (answer counting.Tallies, err error) {
	answer.Server, err = a.ask("tally")
	if err != nil || !q.NamesServer {
		return answer, err
	}
	for _, tenant := range q.Tenants.Names {
		byRoute := map[string]*counting.Tally{}
		a.seen(answer.Server, q.FromNS[0], q.ToNS, func(r *row, endedNS int64) {
			at, _ := slices.BinarySearch(q.FromNS, endedNS+1)
			key := fmt.Sprint(r.route, at)
			if byRoute[key] == nil {
				byRoute[key] = &counting.Tally{TenantID: tenant, Status: rules.Failed, Route: r.route, FromNS: q.FromNS[at-1]}
			}
			byRoute[key].Observed++
		})
		for _, tally := range byRoute {
			answer.Tallies = append(answer.Tallies, *tally)
		}
	}
	return answer, nil
}

func (a *archive) CountWindows(_ context.Context, windows []counting.Query) (answer counting.Counted, err error) {
	answer.Server, err = a.ask("count")
	for _, w := range windows {
		if a.unlearnable && w.ToNS-w.FromNS > 3600*second {
			return answer, errDown
		}
		if a.learnsFrom != "" && w.ToNS-w.FromNS > 3600*second {
			answer.Server = a.learnsFrom
		}
		byRoute := map[string]int64{}
		a.seen(answer.Server, w.FromNS, w.ToNS, func(r *row, _ int64) {
			if w.Grouping.By == rules.GroupByNothing {
				byRoute[""]++
			} else {
				byRoute[r.route]++
			}
		})
		var groups []counting.Group
		for route, n := range byRoute {
			groups = append(groups, counting.Group{Group: route, Observed: n})
		}
		slices.SortFunc(groups, func(a, b counting.Group) int { return cmp.Compare(b.Observed, a.Observed) })
		answer.Groups = append(answer.Groups, groups[:min(len(groups), w.Limit)])
	}
	return answer, err
}

func (a *archive) Arrivals(_ context.Context, q watch.ArrivalsQuery) (answer watch.Arrivals, err error) {
	if answer.Server, err = a.ask("arrivals"); err != nil || a.unwatched {
		return answer, cmp.Or[error](err, errDown)
	}
	answer.Counts, answer.Before = map[int64]int64{}, map[int64]int64{}
	a.seen(answer.Server, q.FromNS, q.ToNS, func(r *row, endedNS int64) {
		if r.tenant != "" && !slices.Contains(q.Tenants.Names, r.tenant) {
			return
		}
		bucket := endedNS / q.WidthNS * q.WidthNS
		answer.Counts[bucket]++
		if endedNS < q.CutNS {
			answer.Before[bucket]++
		}
	})
	return answer, nil
}

func (a *archive) Newest(context.Context, []counting.NewestQuery) ([][]rules.Exchange, error) {
	return nil, failure("of an absence, there is no newest exchange")
}

func (a *archive) Texts(*rules.Rule, *rules.Exchange) (title, text string, _ error) {
	return "", "", nil
}

func (a *archive) CountTexts(*rules.Rule, *alerts.Count, *rules.Exchange) (title, text string, _ error) {
	return "", "", nil
}

// every makes a route produce a row every few seconds, visible on all servers with the given delay.
func (a *archive) every(seconds int, route string, from, to int, late map[string]int) {
	for at := from; at < to; at += seconds {
		a.add(route, at, late)
	}
}

func (a *archive) add(route string, at int, late map[string]int) {
	visible := map[string]int{}
	for _, server := range a.servers {
		visible[server] = at + late[server]
	}
	a.rows = append(a.rows, row{route: route, ended: at, visible: visible})
}

// world evaluates rules on absence over time.
type world struct {
	*testing.T
	*archive
	engine *window.Evaluator
	list   []counting.Compiled
	watch  watch.State
	open   []alerts.OpenAlert
	// told records what became of alerts.
	told    []string
	tenants []string
}

func newWorld(t *testing.T, list ...counting.Compiled) *world {
	t.Helper()
	w := &world{T: t, archive: &archive{servers: []string{"a"}}, list: list, tenants: []string{"default"}}
	w.restart()
	return w
}

// restart continues with another process from what is stored.
func (w *world) restart() {
	w.engine = window.New(window.Options{Source: w.archive, Texts: w.archive, Logger: slog.New(slog.DiscardHandler)})
}

// absence returns a rule that expects exchanges of each route within a window of a minute.
func absence(expected ...string) counting.Compiled {
	return windowtest.Compiled(&rules.Rule{
		ID: uuid.UUID{15: 1}, TenantID: "default", Version: 1, ArmedSinceNS: origin - 3600*second,
		Definition: rules.Definition{
			Name: "absent", FireMode: rules.AbsentInWindow, Threshold: 1, WindowSeconds: 60, IntervalSeconds: 10, GroupBy: rules.GroupByRoute,
			Expected: expected, Filter: rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}}, NotifyOnResolve: true,
		},
	})
}

// pass evaluates at a second, as the partition does.
func (w *world) pass(at int) window.Outcome {
	w.Helper()
	w.now = at
	nowNS := origin + int64(at)*second
	r := window.Request{
		Request: counting.Request{Tenants: source.Tenants{Names: w.tenants}, WatermarkNS: nowNS, Now: time.Unix(0, nowNS), Over: func() bool { return false }},
		Rules:   w.list,
		Open:    w.open,
		Watch:   w.watch,
		Watches: true,
	}
	outcome := w.engine.Evaluate(w.Context(), r)
	if outcome.SourceErr == nil {
		w.watch = outcome.Watch
	}
	for i := range outcome.Changes {
		w.take(at, &outcome.Changes[i])
	}
	return outcome
}

// take makes a step, as the commit does.
func (w *world) take(at int, c *window.Change) {
	text := fmt.Sprintf("%d %v %s %d", at, c.Step, c.Instance.Count.Group, c.Instance.Count.Observed)
	if len(w.list) > 1 {
		text += " " + c.Instance.RuleName
	}
	w.told = append(w.told, text)
	now := time.Unix(0, origin+int64(at)*second)
	is := func(o alerts.OpenAlert) bool { return o.ID == c.Instance.ID }
	switch c.Step {
	case alerts.Wait, alerts.Raise:
		state := alerts.Firing
		if c.Step == alerts.Wait {
			state = alerts.Pending
		}
		w.open = append(w.open, alerts.OpenAlert{ID: c.Instance.ID, RuleID: c.Instance.RuleID, Group: c.Instance.Count.Group, Open: alerts.Open{State: state, Since: now, NotifiedAt: now}})
	case alerts.Fire:
		i := slices.IndexFunc(w.open, is)
		w.open[i].State, w.open[i].Since = alerts.Firing, now
	case alerts.Drop, alerts.Clear, alerts.Release:
		w.open = slices.DeleteFunc(w.open, is)
	case alerts.Stay, alerts.Remind:
	}
}

// until makes passes every ten seconds, up to a second, inclusive.
func (w *world) until(to int) {
	w.Helper()
	for at := w.now + 10; at <= to; at += 10 {
		w.pass(at)
	}
}

func (w *world) want(want ...string) {
	w.Helper()
	if diff := gocmp.Diff(want, w.told); diff != "" {
		w.Error(diff)
	}
	w.told = nil
}

// TestSilenceIsAbsence has a route that becomes silent and returns. The window ends ten seconds
// before the watermark, which is the least assumed lateness.
func TestSilenceIsAbsence(t *testing.T) {
	w := newWorld(t, absence("orders", "billing", "never"))
	w.every(5, "orders", -600, 1000, nil)
	w.every(5, "billing", -600, 200, nil) // to 195
	w.every(5, "billing", 500, 1000, nil)
	w.every(5, "another", -600, 100, nil)
	w.pass(0)
	w.until(60)
	w.want() // no whole window has been watched yet
	w.until(270)
	w.want("70 raise never 0", "270 raise billing 0")
	w.until(510)
	w.want()
	w.until(1000)
	w.want("520 clear billing 2")
	w.list[0].Expected = []string{"orders", "billing"}
	w.until(1010)
	w.want("1010 clear never 0")
}

// TestLateRowDelaysAbsence has a route whose rows become visible late: once that was measured,
// windows end that much earlier.
func TestLateRowDelaysAbsence(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.every(20, "orders", -600, 200, nil)
	w.every(20, "orders", 200, 2000, map[string]int{"a": 100})
	w.add("another", 50, map[string]int{"a": 105})
	w.pass(0)
	w.until(150)
	w.want()
	if w.watch.LateNS != 0 {
		t.Errorf("measured %v", time.Duration(w.watch.LateNS))
	}
	w.until(160)
	// It ended in a bucket that began at most ten seconds before, and was seen within ten.
	if late := time.Duration(w.watch.LateNS); late < 105*time.Second || late > 125*time.Second {
		t.Errorf("measured %v", late)
	}
	w.until(2000)
	w.want()
	// An absence is noticed with a delay equal to the lateness of rows.
	w.until(2300)
	if len(w.told) != 1 || w.told[0] < "2140 raise orders 0" || w.told[0] > "2180 raise orders 0" {
		t.Errorf("told %v", w.told)
	}
	// Another process continues from what this one stored.
	w.told = nil
	w.every(20, "orders", 2300, 4000, map[string]int{"a": 100})
	w.restart()
	w.until(2310)
	if late := time.Duration(w.watch.LateNS); late < 105*time.Second {
		t.Errorf("another process goes on with %v", late)
	}
	w.until(4000)
	if len(w.told) != 1 || !strings.Contains(w.told[0], " clear orders ") {
		t.Errorf("told %v", w.told)
	}
}

// TestLatenessIsForgottenAfterAnHour has one late row, and none afterwards.
func TestLatenessIsForgottenAfterAnHour(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.every(20, "orders", -600, 9000, nil)
	w.add("another", 50, map[string]int{"a": 300})
	w.pass(0)
	w.until(3900)
	if w.watch.LateNS < 300*second {
		t.Errorf("measured %v", time.Duration(w.watch.LateNS))
	}
	w.until(4000)
	if w.watch.LateNS != 0 {
		t.Errorf("measured %v", time.Duration(w.watch.LateNS))
	}
	w.want()
}

// TestNewLatenessEndsNoAbsence measures a greater lateness while one alert fires and another is
// pending: windows stay where they are until time has caught up.
func TestNewLatenessEndsNoAbsence(t *testing.T) {
	w := newWorld(t, absence("orders", "late"))
	w.every(5, "orders", -600, 100, nil)
	w.every(5, "late", -600, 400, nil)
	w.add("another", 0, map[string]int{"a": 175})
	w.pass(0)
	w.until(800)
	w.want("170 raise orders 0", "640 raise late 0")

	w = newWorld(t, absence("orders"))
	w.list[0].ForDurationSeconds = 60
	w.every(5, "orders", -600, 75, nil)
	w.every(5, "orders", 75, 2000, map[string]int{"a": 200})
	w.add("another", 0, map[string]int{"a": 155})
	w.pass(0)
	w.until(1000)
	if len(w.told) != 2 || w.told[0] != "150 wait orders 0" || !strings.Contains(w.told[1], " drop orders ") {
		t.Errorf("told %v", w.told)
	}
}

// TestRulesThatAreEvaluatedSecond evaluates rules for which there was no time before, at the same
// watermark.
func TestRulesThatAreEvaluatedSecond(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.every(5, "orders", -600, 100, nil)
	w.pass(0)
	w.until(160)
	list := w.list
	w.list = nil
	w.pass(170)
	w.list = list
	w.pass(170)
	w.want("170 raise orders 0")
}

// TestClocksThatDiffer lets the clock of the server that answers be a second behind that of another
// server: this must not be taken for a pause.
func TestClocksThatDiffer(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.every(5, "orders", -600, 100, nil)
	w.pass(0)
	w.until(100)
	w.pass(99)
	w.until(169)
	w.want("169 raise orders 0")
}

// TestOtherTenantsAreNotLate has a tenant that gets a window rule, whose exchanges are counted from
// then on.
func TestOtherTenantsAreNotLate(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.every(5, "orders", -600, 1000, nil)
	w.pass(0)
	w.until(100)
	w.tenants = []string{"default", "new"}
	w.every(5, "of the new one", -600, 1000, nil)
	w.until(300)
	if w.watch.LateNS != 0 {
		t.Errorf("measured %v", time.Duration(w.watch.LateNS))
	}
}

// TestTenantThatGoes has a tenant whose last window rule is deleted. What it had is not missing: the other tenant's
// route that becomes silent soon after is absent one window later.
func TestTenantThatGoes(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.every(5, "orders", -600, 250, nil) // to 245
	w.every(5, "of the one that goes", -600, 2000, nil)
	for i := range w.rows {
		if w.rows[i].route != "orders" {
			w.rows[i].tenant = "goes"
		}
	}
	w.tenants = []string{"default", "goes"}
	w.pass(0)
	w.until(200)
	w.tenants = []string{"default"}
	w.until(400)
	w.want("320 raise orders 0")
}

// TestTenantThatComesWithItsLateness has a tenant move to a partition that did not know how late its exchanges are.
// The move stores it in the checkpoint. They stay as late, and none is absent.
func TestTenantThatComesWithItsLateness(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.every(5, "another", -600, 1000, nil)
	w.every(60, "orders", -600, 1020, map[string]int{"a": 215})
	rule := w.list
	w.list, w.tenants = nil, []string{"another"}
	for i := range w.rows {
		if w.rows[i].route == "orders" {
			w.rows[i].tenant = "default"
		}
	}
	w.pass(0)
	w.until(300)
	w.list, w.tenants = rule, []string{"another", "default"}
	w.watch.LateNS = 225 * second
	w.until(900)
	w.want()
}

// TestMemoryOfWhoDidNotWatchLast hands the partition to another process and back.
func TestMemoryOfWhoDidNotWatchLast(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.every(5, "orders", -600, 1000, nil)
	w.pass(0)
	w.until(100)
	first := w.engine
	w.restart()
	w.until(300)
	w.engine = first
	w.until(400)
	if w.watch.LateNS != 0 {
		t.Errorf("measured %v", time.Duration(w.watch.LateNS))
	}
	w.want()
}

// TestServerThatIsSomewhatBehind makes passes that are further apart than its lag.
func TestServerThatIsSomewhatBehind(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.list[0].WindowSeconds = 20
	w.servers = []string{"a", "b"}
	w.every(5, "orders", -600, 2000, map[string]int{"b": 30})
	for at := 0; at < 1000; at += 40 {
		w.pass(at)
	}
	w.want()
	if late := time.Duration(w.watch.LateNS); late < 30*time.Second || late > 50*time.Second {
		t.Errorf("measured %v", late)
	}
}

// TestOutageIsNoAbsence makes the source unavailable, and later available again with what was
// written meanwhile or afterwards.
func TestOutageIsNoAbsence(t *testing.T) {
	for name, outage := range map[string]func(w *world, at int){
		"the source is down": func(w *world, at int) {
			w.down = true
			if outcome := w.pass(at); outcome.SourceErr == nil || len(outcome.Evaluated) > 0 {
				w.Errorf("%+v", outcome)
			}
			w.down = false
		},
		"no process is there": func(w *world, _ int) { w.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, absence("orders", "gone"))
			w.every(5, "orders", -600, 300, nil)
			w.every(5, "gone", -600, 300, nil)
			w.every(5, "orders", 600, 1000, nil)
			// What ended meanwhile is written after the outage.
			for at := 300; at < 600; at += 5 {
				w.add("orders", at, map[string]int{"a": 640 - at})
			}
			w.pass(0)
			w.until(300)
			for at := 310; at < 600; at += 10 {
				outage(w, at)
			}
			w.now = 600
			w.until(650)
			w.want()
			if w.watch.SinceNS != origin+610*second {
				t.Errorf("watched since %v", time.Unix(0, w.watch.SinceNS))
			}
			// An absence is noticed once a whole window after the outage has passed, later by the
			// lateness of the rows that were written afterwards.
			w.until(950)
			w.want()
			w.until(1100)
			if len(w.told) == 0 || !strings.HasSuffix(w.told[0], "raise gone 0") {
				t.Errorf("told %v", w.told)
			}
		})
	}
}

// TestShortPauseIsNone hands the partition over within a minute.
func TestShortPauseIsNone(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.every(5, "orders", -600, 100, nil)
	w.pass(0)
	w.until(120)
	w.restart()
	w.pass(170)
	w.want()
	w.pass(180)
	w.want("180 raise orders 0")
	w.restart()
	w.every(5, "orders", 171, 300, nil)
	w.pass(230)
	w.want("230 clear orders 2")
}

// TestServerThatLagsAfterAHandover has a new process, and one whose tenants change, that get
// answers from a server which is behind the previous one: by minutes, by more than is watched, and
// where so few exchanges end that the watch can hardly measure the lag.
func TestServerThatLagsAfterAHandover(t *testing.T) {
	const sparse, frequent = 300, 5
	for name, changes := range map[string]func(w *world){
		"another process": func(w *world) { w.restart() },
		"other tenants":   func(w *world) { w.tenants = append(w.tenants, fmt.Sprint("new ", len(w.tenants))) },
		"fewer tenants":   func(w *world) { w.tenants = w.tenants[:max(1, len(w.tenants)-1)] },
	} {
		for _, every := range []int{frequent, sparse} {
			for _, lag := range []int{30, 300, 7200} {
				for turns := range 4 {
					t.Run(fmt.Sprint(name, ", an exchange every ", every, " s, behind by ", lag, " s, turns ", turns), func(t *testing.T) {
						w := newWorld(t, absence("orders"))
						w.list[0].WindowSeconds = 12 * every
						w.servers = []string{"a", "b"}
						w.every(every, "orders", -9000, 6000, map[string]int{"b": lag})
						if name == "fewer tenants" {
							for i := range 6 {
								w.tenants = append(w.tenants, fmt.Sprint("gone ", i))
								w.every(30, "of the one that goes", -9000, 6000, map[string]int{"b": lag})
								for n := range w.rows {
									if r := &w.rows[n]; r.route != "orders" && r.tenant == "" {
										r.tenant = fmt.Sprint("gone ", i)
									}
								}
							}
						}
						w.pass(0)
						for at := 10; at < 6000; at += 10 {
							w.servers = []string{"a", "b"}
							if turns%2 == 1 {
								w.servers = []string{"b", "a"}
							}
							if at%1000 < turns*10 {
								w.servers = []string{"b"}
							}
							if at%1000 == 0 {
								changes(w)
							}
							w.pass(at)
						}
						w.want()
					})
				}
			}
		}
	}
}

// TestServerThatReceivesNothingIsBelievedInTheEnd leaves nothing but a server that receives
// nothing any more. For ten minutes the memory of the previous process contradicts it, and for a quarter of an
// hour what that process saw; one window later, what the server lacks is absent.
func TestServerThatReceivesNothingIsBelievedInTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		restarts        bool
		believed, fires int
	}{
		"a new holder":      {true, 100 + 600, 100 + 600 + 60 + 30},
		"who saw the other": {false, 100 + 900, 100 + 900 + 60 + 40},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, absence("orders"))
			w.servers = []string{"a", "b"}
			w.every(5, "orders", -1000, 3000, map[string]int{"b": 1_000_000})
			for i := range w.rows {
				if w.rows[i].ended < 0 {
					w.rows[i].visible["b"] = w.rows[i].ended
				}
			}
			w.servers = []string{"a"}
			w.pass(0)
			w.until(100)
			if c.restarts {
				w.restart()
			}
			w.servers = []string{"b"}
			w.until(c.believed)
			w.want()
			w.until(c.fires)
			if len(w.told) != 1 || !strings.HasSuffix(w.told[0], " raise orders 0") {
				t.Errorf("%q, want one absence", w.told)
			}
		})
	}
}

// TestServersThatEachMissSomething has two servers of which each shows what was written to it,
// and no more, for a while.
func TestServersThatEachMissSomething(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.servers = []string{"a", "b"}
	w.every(5, "orders", -600, 300, nil)
	w.every(5, "billing", -600, 300, nil)
	w.every(5, "orders", 300, 900, map[string]int{"b": 400})
	for at := 300; at < 900; at += 40 {
		w.every(2, "billing", at, at+20, map[string]int{"a": 400})
	}
	w.every(5, "billing", 900, 2600, nil)
	w.pass(0)
	for at := 10; at < 1300; at += 10 {
		if at%200 == 0 {
			w.restart()
		}
		if at == 900 {
			w.every(5, "orders", 900, 1200, nil)
		}
		w.pass(at)
	}
	w.want()
	w.until(2500)
	if len(w.told) != 1 || !strings.HasSuffix(w.told[0], "raise orders 0") {
		t.Errorf("told %v", w.told)
	}
}

// TestLatenessOfServersThatEachMissSomething has two servers show an exchange late each, which the
// other one shows even later: what both will have shown is known to be late.
func TestLatenessOfServersThatEachMissSomething(t *testing.T) {
	for _, first := range []string{"a", "b"} {
		other := map[string]string{"a": "b", "b": "a"}[first]
		w := newWorld(t, absence("orders"))
		w.servers = []string{"a", "b"}
		w.every(5, "orders", -1000, 400, nil)
		w.rows = append(w.rows, row{route: "x", ended: 100, visible: map[string]int{first: 140, other: 150}}, row{route: "y", ended: 128, visible: map[string]int{first: 150, other: 140}})
		w.pass(0)
		w.until(200)
		if late := w.watch.LateNS; late < 40*second {
			t.Errorf("exchanges are known to be %v late, and one was 40 s", time.Duration(late))
		}
		w.want()
	}
}

// TestServerThatLagsShowsNoAbsence asks two servers in turn, of which one is five minutes
// behind for a while.
func TestServerThatLagsShowsNoAbsence(t *testing.T) {
	w := newWorld(t, absence("orders", "gone"))
	w.servers = []string{"a", "b"}
	w.every(5, "orders", -600, 300, nil)
	w.every(5, "orders", 300, 900, map[string]int{"b": 300})
	w.every(5, "orders", 900, 3000, nil)
	w.every(5, "gone", -600, 400, nil)
	w.pass(0)
	w.until(2500)
	if len(w.told) != 1 || !strings.HasSuffix(w.told[0], "raise gone 0") {
		t.Errorf("told %v", w.told)
	}
}

// TestServerThatIsBehindAloneConcludesNothing gets its answers from a server that is behind the
// previous one.
func TestServerThatIsBehindAloneConcludesNothing(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.servers = []string{"a", "b"}
	w.every(5, "orders", -600, 1000, map[string]int{"b": 600})
	w.every(5, "orders", -600, -300, nil)
	w.servers = []string{"a"}
	w.pass(0)
	w.until(200)
	w.servers = []string{"b"}
	w.until(400)
	w.want()
	if w.watch.UntilNS != origin+200*second {
		t.Errorf("watched until %v", time.Unix(0, w.watch.UntilNS))
	}
}

// TestRowsThatAreGoneAreNoLag deletes rows from the only server.
func TestRowsThatAreGoneAreNoLag(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.every(5, "orders", -600, 100, nil)
	w.every(1, "bulk", -600, 100, nil)
	w.pass(0)
	w.until(100)
	w.rows = slices.DeleteFunc(w.rows, func(r row) bool { return r.route == "bulk" })
	w.until(170)
	w.want("170 raise orders 0")
}

// TestCalendarOfAbsence has a route that is silent before, in and after its hours.
func TestCalendarOfAbsence(t *testing.T) {
	rule := absence("orders")
	began := time.Unix(0, origin).UTC()
	rule.Calendar = &rules.Calendar{
		TimeZone: "UTC", Weekdays: []rules.Weekday{rules.Weekdays()[began.Weekday()]},
		From: began.Add(10 * time.Minute).Format("15:04"), To: began.Add(20 * time.Minute).Format("15:04"),
	}
	rule = windowtest.Compiled(rule.Rule)
	opens := int(began.Add(10*time.Minute).Truncate(time.Minute).Sub(began) / time.Second)
	w := newWorld(t, rule)
	w.now = -10
	w.until(opens + 60)
	w.want()
	w.until(opens + 590)
	if len(w.told) != 1 || !strings.HasSuffix(w.told[0], "raise orders 0") {
		t.Errorf("told %v", w.told)
	}
	// After its hours the alert no longer sends reminders, and it resolves once there is an
	// exchange.
	w.told = nil
	w.list[0].ReNotifyMinutes = 1
	w.until(opens + 620)
	w.told = nil
	w.until(opens + 900)
	w.want()
	w.add("orders", w.now, nil)
	w.until(w.now + 20)
	if len(w.told) != 1 || !strings.Contains(w.told[0], "clear orders 1") {
		t.Errorf("told %v", w.told)
	}
	// Nothing that is pending fires for what was before.
	w.told, w.list[0].ForDurationSeconds = nil, 300
	w.until(opens + 2000)
	w.want()
}

// TestPendingAbsenceEndsWithTheHours drops what did not last within them.
func TestPendingAbsenceEndsWithTheHours(t *testing.T) {
	rule := absence("orders")
	began := time.Unix(0, origin).UTC()
	rule.Calendar = &rules.Calendar{
		TimeZone: "UTC", Weekdays: []rules.Weekday{rules.Weekdays()[began.Weekday()]},
		From: "00:00", To: began.Add(5 * time.Minute).Format("15:04"),
	}
	rule.ForDurationSeconds = 600
	w := newWorld(t, windowtest.Compiled(rule.Rule))
	w.now = -10
	w.until(900)
	if len(w.told) != 2 || !strings.Contains(w.told[0], "wait orders 0") || !strings.Contains(w.told[1], "drop orders 0") {
		t.Errorf("told %v", w.told)
	}
}

// TestLearnedRoutes learns the expected routes from two days.
func TestLearnedRoutes(t *testing.T) {
	rule := absence()
	rule.LearnDays = 2
	w := newWorld(t, windowtest.Compiled(rule.Rule))
	const day = 86_400
	w.every(5, "orders", -600, 8000, nil)
	w.add("yesterday", -day, nil)
	w.add("long ago", -3*day, nil)
	w.every(5, "fresh", 300, 400, nil)
	for _, at := range []int{0, 10} {
		if outcome := w.pass(at); len(outcome.Evaluated) != 0 || len(outcome.Failed) != 0 {
			t.Errorf("evaluated before it learned: %+v", outcome)
		}
	}
	w.until(1000)
	w.want("70 raise yesterday 0")
	// A new route is learned with the next hour, and one last seen two days ago is not expected.
	w.until(3700)
	w.want("3620 raise fresh 0")
	if n := len(slices.DeleteFunc(slices.Clone(w.queries), func(q string) bool { return q != "count" })); n != 369+2 {
		t.Errorf("%d counts", n)
	}
}

// TestGroupsThatCannotBeLearnedAgain has the query of days fail. A rule that knows its groups is evaluated all the same,
// says so, and tries again after a minute; one that does not know them fails.
func TestGroupsThatCannotBeLearnedAgain(t *testing.T) {
	rule := absence()
	rule.LearnDays = 2
	w := newWorld(t, windowtest.Compiled(rule.Rule))
	w.every(5, "orders", -600, 4000, nil)
	w.unlearnable = true
	w.pass(0)
	w.pass(10)
	if outcome := w.pass(20); len(outcome.Evaluated) != 0 || outcome.Failed[rule.ID] == nil {
		t.Errorf("at first: %+v", outcome)
	}
	w.unlearnable = false
	w.until(3600)
	w.unlearnable = true
	for at := 3610; at <= 4060; at += 10 {
		w.pass(at)
	}
	w.want()
	failed := 0
	for at := 4070; at <= 4120; at += 10 {
		outcome := w.pass(at)
		if len(outcome.Evaluated) != 1 || len(outcome.Failed) > 0 {
			t.Errorf("at %d: %+v", at, outcome)
		}
		if strings.Contains(outcome.Problems[rule.ID], "could not be learned again") {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("asked %d times within a minute", failed)
	}
	w.want("4070 raise orders 0")
}

// TestEditOfANoteKeepsWhatWasLearned edits the note of a rule while its groups cannot be learned.
func TestEditOfANoteKeepsWhatWasLearned(t *testing.T) {
	rule := absence()
	rule.LearnDays = 2
	w := newWorld(t, windowtest.Compiled(rule.Rule))
	w.every(5, "orders", -600, 300, nil)
	w.until(200)
	edited := new(*rule.Rule)
	edited.Version, edited.Note = 2, "see the runbook"
	w.list, w.unlearnable = []counting.Compiled{windowtest.Compiled(edited)}, true
	w.until(400)
	w.want("370 raise orders 0")
	longer := new(*edited)
	longer.Version, longer.LearnDays = 3, 3
	w.list = []counting.Compiled{windowtest.Compiled(longer)}
	if outcome := w.pass(410); len(outcome.Evaluated) != 0 {
		t.Error("evaluated with what was learned from fewer days")
	}
}

// TestEmptyServerTeachesNothing queries an empty server for the routes to expect, first of all and
// at a later query: the expected routes are those that the other server has.
func TestEmptyServerTeachesNothing(t *testing.T) {
	rule := absence()
	rule.LearnDays = 2
	w := newWorld(t, windowtest.Compiled(rule.Rule))
	w.every(5, "orders", -600, 8000, nil)
	w.every(5, "gone", -600, 300, nil)
	w.learnsFrom = "empty"
	w.pass(0)
	w.until(200)
	w.want()
	w.learnsFrom = ""
	w.until(400)
	w.want("370 raise gone 0")
	w.learnsFrom = "empty"
	w.until(6000)
	w.want()
	w.rows = slices.DeleteFunc(w.rows, func(r row) bool { return r.route == "gone" })
	w.open[0].State, w.open[0].Held, w.open[0].Since = alerts.Resolved, true, time.Unix(0, origin+6000*second)
	w.until(7500)
	w.want()
	w.learnsFrom = ""
	w.until(8000)
	if len(w.told) != 1 || !strings.Contains(w.told[0], " release gone ") || w.told[0] > "7590" {
		t.Errorf("told %v", w.told)
	}
}

// TestForgottenGroupStaysAbsent has a route that is silent for longer than the rule learns: nothing is
// better by that. Its alert ends when the route is back, or when a person resolves it, and nothing
// is raised about a route that is forgotten.
func TestForgottenGroupStaysAbsent(t *testing.T) {
	rule := absence()
	rule.LearnDays = 1
	const day = 86_400
	w := newWorld(t, windowtest.Compiled(rule.Rule))
	w.every(5, "orders", -600, 10_000, nil)
	for i, route := range []string{"back", "resolved", "resolved", "forgotten", "forgotten", "forgotten"} {
		w.add(route, 3000-day+i, nil)
	}
	w.add("back", 9000, nil)
	w.pass(0)
	w.until(100)
	w.want("70 raise forgotten 0", "70 raise resolved 0", "70 raise back 0")
	w.until(8990)
	w.want()
	w.open[1].State, w.open[1].Held, w.open[1].Since = alerts.Resolved, true, time.Unix(0, origin+8990*second)
	w.until(9040)
	w.want("9000 release resolved 0", "9020 clear back 1")
	// The route that is back is expected again.
	w.until(11_000)
	w.want("10070 raise orders 0", "10820 raise back 0")
	// Another condition expects nothing of a route that it did not learn.
	w.list[0].Version, w.list[0].ArmedSinceNS = 2, origin+11_000*second
	w.until(11_200)
	w.want("11070 clear forgotten 0")
}

// TestWindowAsLongAsTheDaysThatAreLearned has a route that ended a day ago, and a window of a day: the
// day that is learned is the one before the window.
func TestWindowAsLongAsTheDaysThatAreLearned(t *testing.T) {
	rule := absence()
	const day = 86_400
	rule.LearnDays, rule.WindowSeconds, rule.ArmedSinceNS = 1, day, origin-3*day*second
	w := newWorld(t, windowtest.Compiled(rule.Rule))
	w.add("orders", 50-day, nil)
	w.add("long ago", -2*day, nil)
	w.watch = watch.State{UntilNS: origin + 70*second, SinceNS: origin - 2*day*second}
	w.now = 70
	w.until(200)
	w.want("100 raise orders 0")
}

// TestNoValueIsNotLearned lets exchanges without the attribute end together with others, and then
// stop: nobody is notified that they are missing.
func TestNoValueIsNotLearned(t *testing.T) {
	for by, want := range map[rules.Grouping][]string{
		{By: rules.GroupByRoute}:                            {"80 raise  0", "80 raise 7 0"},
		{By: rules.GroupByAttribute, Attribute: "customer"}: {"80 raise 7 0"},
	} {
		rule := absence()
		rule.LearnDays, rule.GroupBy, rule.GroupByAttribute = 2, by.By, by.Attribute
		w := newWorld(t, windowtest.Compiled(rule.Rule))
		w.every(5, "8", -600, 1000, nil)
		w.add("7", -86_400, nil)
		w.add("", -86_400, nil)
		w.add("", -86_399, nil)
		w.until(500)
		w.want(want...)
	}
}

// TestValuesWithoutEndAreNotLearned has exchanges with distinct values, such as an id: none of them
// is expected, and the rule says so. Of routes, those with the most exchanges are.
func TestValuesWithoutEndAreNotLearned(t *testing.T) {
	for by, raised := range map[rules.Grouping]int{
		{By: rules.GroupByRoute}:                            1000,
		{By: rules.GroupByAttribute, Attribute: "customer"}: 0,
	} {
		rule := absence()
		rule.LearnDays, rule.GroupBy, rule.GroupByAttribute = 2, by.By, by.Attribute
		w := newWorld(t, windowtest.Compiled(rule.Rule))
		for i := range 1001 {
			w.add(fmt.Sprint("id-", i), -86_400, nil)
		}
		w.until(200)
		outcome := w.pass(210)
		if len(w.told) != raised || !strings.Contains(outcome.Problems[rule.ID], "more than 1000") {
			t.Errorf("by %v: %d raised, problem %q", by, len(w.told), outcome.Problems[rule.ID])
		}
	}
}

// TestArmedOfLate counts nothing that ended before the rule was armed, and misses nothing
// afterwards.
func TestArmedOfLate(t *testing.T) {
	rule := absence("orders")
	w := newWorld(t, rule)
	w.every(5, "orders", -600, 100, nil)
	w.pass(0)
	w.until(100)
	w.list[0].ArmedSinceNS = origin + 130*second
	w.until(190)
	w.want()
	w.until(200)
	w.want("200 raise orders 0")
}

// TestManyAbsences has 2,000 rules of 500 tenants: one query per length of window, and one of the
// watch.
func TestManyAbsences(t *testing.T) {
	var list []counting.Compiled
	for i := range 2000 {
		rule := absence("orders", "gone")
		rule.ID, rule.TenantID, rule.Name = uuid.UUID{14: byte(i >> 8), 15: byte(i)}, fmt.Sprintf("tenant-%03d", i%500), fmt.Sprint(i)
		rule.WindowSeconds = []int{60, 300}[i%2]
		list = append(list, windowtest.Compiled(rule.Rule))
	}
	w := newWorld(t, list...)
	w.every(5, "orders", -600, 1000, nil)
	w.every(5, "gone", -600, 50, nil)
	w.pass(0)
	for at := 10; at < 400; at += 10 {
		w.now = at
		w.watch = watch.State{UntilNS: origin + int64(at)*second, SinceNS: origin - 600*second}
	}
	w.restart()
	w.pass(400) // it has nothing to compare the server with yet
	w.want()
	w.queries = nil
	w.pass(410)
	if diff := gocmp.Diff([]string{"arrivals", "tally", "tally"}, w.queries); diff != "" {
		t.Error(diff)
	}
	if len(w.told) != 2000 {
		t.Errorf("%d raised", len(w.told))
	}
}

// TestHeldAbsence lets a user resolve the alert about a route that stays silent: it is held until
// the route has been seen once.
func TestHeldAbsence(t *testing.T) {
	w := newWorld(t, absence("orders"))
	w.pass(0)
	w.until(70)
	w.want("70 raise orders 0")
	w.open[0].State, w.open[0].Held, w.open[0].Since = alerts.Resolved, true, time.Unix(0, origin+75*second)
	w.until(300)
	w.want()
	w.add("orders", 300, nil)
	w.until(500)
	w.want("320 release orders 1", "380 raise orders 0")
}

// TestWatchThatFails has a source on which only the watch fails: absence rules fail, and no other.
func TestWatchThatFails(t *testing.T) {
	absent, counts := absence("orders"), absence("orders")
	counts.Rule = new(*counts.Rule)
	counts.ID, counts.FireMode, counts.Expected = uuid.UUID{15: 2}, rules.CountInWindow, nil
	w := newWorld(t, absent, windowtest.Compiled(counts.Rule))
	w.unwatched = true
	outcome := w.pass(-10)
	if outcome.SourceErr != nil || !slices.Equal(outcome.Evaluated, []uuid.UUID{counts.ID}) || len(outcome.Failed) > 0 {
		t.Errorf("at first %+v", outcome)
	}
	outcome = w.pass(0)
	if outcome.SourceErr != nil || !slices.Equal(outcome.Evaluated, []uuid.UUID{counts.ID}) || outcome.Failed[absent.ID] == nil || len(outcome.Failed) != 1 {
		t.Errorf("%+v", outcome)
	}
	if outcome.Watch != (watch.State{}) {
		t.Errorf("watched: %+v", outcome.Watch)
	}
	w.unwatched = false
	if outcome := w.pass(10); len(outcome.Evaluated) != 2 || len(outcome.Failed) > 0 {
		t.Errorf("then %+v", outcome)
	}
}

// TestWatchThatTakesAllTheTime lets the watch over absence rules take longer than the time
// available: rules are counted all the same.
func TestWatchThatTakesAllTheTime(t *testing.T) {
	absent, counts := absence("orders"), absence("orders")
	counts.Rule = new(*counts.Rule)
	counts.ID, counts.FireMode, counts.Expected = uuid.UUID{15: 2}, rules.CountInWindow, nil
	w := newWorld(t, windowtest.Compiled(counts.Rule), absent)
	outcome := w.engine.Evaluate(t.Context(), window.Request{
		Request: counting.Request{Tenants: source.Tenants{Names: w.tenants}, WatermarkNS: origin, Now: time.Unix(0, origin), Over: func() bool { return len(w.queries) > 0 }},
		Rules:   w.list,
		Watches: true,
	})
	if !slices.Contains(outcome.Evaluated, counts.ID) {
		t.Errorf("evaluated %v, after %v", outcome.Evaluated, w.queries)
	}
}
