package evaluator_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// The law: whatever the order of arrival, the ties, the size of pages and the
// crashes, each exchange that matches a rule has one alert and one notification
// for it, and nothing else has. The engine is the real one; source and store
// are models that fail on demand. Scenarios on real databases stand in internal/app.

// process starts the engine anew, as after a crash: it remembers nothing.
//
// Each look at the clock takes a millisecond, so that a small budget ends a
// tick in the midst of its pages.
func (m *model) process(t *rapid.T, o evaluator.Options) *evaluator.Evaluator {
	looks := 0
	o.Source, o.Store, o.Cohorts, o.Publisher, o.Texts, o.Logger = m, m, m, m, m, slog.New(slog.DiscardHandler)
	o.Clock = func() time.Time { looks++; return time.Unix(0, m.now).Add(time.Duration(looks) * time.Millisecond) }
	e, err := evaluator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// tick reports whether the process survived.
func tick(t *rapid.T, e *evaluator.Evaluator) (alive bool) {
	defer func() {
		if r := recover(); r == errDied { //nolint:errorlint // the very value that the model panics with
			alive = false
		} else if r != nil {
			panic(r)
		}
	}()
	if _, err := e.Tick(context.Background()); err != nil {
		t.Fatal(err)
	}
	return true
}

const (
	second  = int64(1e9)
	begin   = 1_795_244_520 * second
	quantum = second / 4
)

func TestExactlyOneAlertWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { law(t) })
}

// TestExactlyOneAlertInCompany is the law where rules join and leave all the time.
func TestExactlyOneAlertInCompany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		law(t, "arrive", "tick", "time passes", "clock steps back", "the source's clock is ahead", "a text has errors", "a rule more", "edit", "retry", "tick elsewhere", "in the midst of a tick")
	})
}

// law holds the law while things happen: those named, or all.
func law(t *rapid.T, only ...string) {
	m := &model{now: begin, rules: map[uuid.UUID]*state{}, cohorts: map[uuid.UUID]*cohort{}, alerts: map[string]int{}, notified: map[string]int{}}
	scope := func(label string) rules.Scope {
		return rules.Scope{Applications: rapid.SampledFrom([][]string{{"orders"}, {"billing", "orders"}, {"stock"}, {"billing"}, {"bill*"}, nil}).Draw(t, label)}
	}
	// Without a look-back nothing heals what a cursor skips; then nothing comes late.
	lookBack := 3600
	if len(only) > 0 {
		lookBack = rapid.SampledFrom([]int{0, 3600}).Draw(t, "look-back")
	}
	add := func(t *rapid.T) {
		i := len(m.rules)
		id := uuid.UUID{15: byte(i + 1)}
		armed := m.now + rapid.Int64Range(-2, 8).Draw(t, "armed")*quantum
		var former []rules.Era
		if rapid.Bool().Draw(t, "edited") {
			former = []rules.Era{{Scope: scope("former scope"), FromNS: armed - 20*quantum, ToNS: armed}}
		}
		m.rules[id] = &state{rule: rules.Rule{
			ID: id, TenantID: "default", ArmedSinceNS: armed, Former: former,
			Definition: rules.Definition{
				Name: fmt.Sprint(i), Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: lookBack, Scope: scope("scope"),
				Filter: rules.Filter{Statuses: rapid.SampledFrom([][]rules.Status{
					nil, {rules.Failed, rules.Completed}, {rules.Completed},
				}).Draw(t, "statuses"), MinDurationMS: rapid.SampledFrom([]*int64{nil, nil, new(int64(1000))}).Draw(t, "least duration")},
				WebhookIDs: []uuid.UUID{{1}},
			},
		}}
	}
	for range rapid.IntRange(1, 3).Draw(t, "rules") {
		add(t)
	}
	options := evaluator.Options{
		Replica:     "a",
		PageSize:    rapid.IntRange(1, 5).Draw(t, "page size"),
		Budget:      time.Duration(rapid.IntRange(3, 12).Draw(t, "budget")) * time.Millisecond,
		CohortLeast: rapid.SampledFrom([]int{1, 2, -1}[:3-min(1, len(only))]).Draw(t, "least rules of a cohort"),
		CohortMost:  rapid.SampledFrom([]int{20_000, 2}).Draw(t, "most rules of a cohort"),
	}
	engine := m.process(t, options)
	options.Replica = "b"
	other := m.process(t, options)
	options.Replica = "a"
	next := 0
	some := func(t *rapid.T) *state {
		return m.rules[uuid.UUID{15: byte(rapid.IntRange(1, len(m.rules)).Draw(t, "rule"))}]
	}
	edit := func(t *rapid.T) {
		s := some(t)
		m.leave(s)
		// What was judged before has ended before.
		m.now = max(m.now, m.latest+1, m.read, s.rule.ArmedSinceNS)
		r := &s.rule
		r.Former = append(slices.Clone(r.Former), rules.Era{Scope: r.Scope, Filter: r.Filter, FromNS: r.ArmedSinceNS, ToNS: m.now})
		r.Scope, r.ArmedSinceNS, s.token = scope("scope"), m.now, 0
		r.Version++
	}
	elsewhere := func(t *rapid.T) {
		m.late = rapid.Bool().Draw(t, "late")
		tick(t, other)
		m.late = false
	}
	application := func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"orders", "billing", "stock", "elsewhere"}).Draw(t, "application")
	}
	actions := map[string]func(*rapid.T){
		"arrive": func(t *rapid.T) {
			for range rapid.IntRange(1, 6).Draw(t, "rows") {
				start := m.now + rapid.Int64Range(-40, 2).Draw(t, "start")*quantum + rapid.SampledFrom([]int64{0, 0, 1e6, 3e6}).Draw(t, "and a little")
				end := max(start, m.now-rapid.Int64Range(0, 8).Draw(t, "end")*quantum)
				if lookBack == 0 {
					start = max(start, m.latest)
					end = start
				}
				next++
				m.rows = append(m.rows, rules.Exchange{
					TenantID: "default", StartTimeNS: start, EndTimeNS: &end, DurationNS: end - start, Application: application(t),
					ExecutionID: fmt.Sprintf("%c%d", 'a'+rune(rapid.IntRange(0, 3).Draw(t, "letter")), next),
					Status:      rapid.SampledFrom([]rules.Status{rules.Failed, rules.Failed, rules.Completed, rules.Running}).Draw(t, "status"),
				})
			}
		},
		"arrive at the edge of the look-back": func(t *rapid.T) {
			for range rapid.IntRange(1, 3).Draw(t, "rows") {
				end := m.now
				next++
				m.rows = append(m.rows, rules.Exchange{
					TenantID: "default", StartTimeNS: m.now - 3600*second + rapid.Int64Range(0, 80).Draw(t, "start")*quantum,
					EndTimeNS: &end, ExecutionID: fmt.Sprintf("e%d", next), Status: rules.Failed, Application: application(t),
				})
			}
		},
		"repeat a row": func(t *rapid.T) {
			if len(m.rows) > 0 {
				m.rows = append(m.rows, rapid.SampledFrom(m.rows).Draw(t, "row"))
			}
		},
		// Of the rows of an exchange, only the one of its end stays.
		"rows are merged": func(t *rapid.T) {
			last := map[string]int{}
			for i, e := range m.rows {
				if at, there := last[e.ExecutionID]; !there || e.Status != rules.Running || m.rows[at].Status == rules.Running {
					last[e.ExecutionID] = i
				}
			}
			var kept []rules.Exchange
			for i, e := range m.rows {
				if last[e.ExecutionID] == i || rapid.Bool().Draw(t, "kept") {
					kept = append(kept, e)
				}
			}
			m.rows = kept
		},
		"end what runs": func(*rapid.T) {
			for _, e := range m.rows {
				ended := func(o rules.Exchange) bool { return o.ExecutionID == e.ExecutionID && o.Status != rules.Running }
				if m.now-e.StartTimeNS < 3000*second && !slices.ContainsFunc(m.rows, ended) {
					end := max(m.now, e.StartTimeNS)
					e.Status, e.EndTimeNS = rules.Failed, &end
					m.rows = append(m.rows, e)
					return
				}
			}
		},
		"time passes": func(t *rapid.T) { m.now += rapid.Int64Range(1, 12).Draw(t, "quanta") * quantum },
		// Nothing is evaluated for longer than the look-back; what became visible
		// shortly behind the cursor before that, or meanwhile, is still due.
		"outage":           func(*rapid.T) { m.now += 7200 * second },
		"clock steps back": func(*rapid.T) { m.latest = max(m.latest, m.now); m.now -= quantum },
		// Of the source alone, for some ticks, and by more than the look-back.
		"the source's clock is ahead": func(t *rapid.T) {
			m.ahead = rapid.SampledFrom([]int64{61 * second, 7200 * second}).Draw(t, "ahead")
			for range rapid.IntRange(1, 3).Draw(t, "ticks") {
				tick(t, engine)
				m.now += quantum
			}
			m.ahead = 0
		},
		"tick": func(t *rapid.T) { tick(t, engine) },
		"die in a tick": func(t *rapid.T) {
			m.dieBefore = rapid.IntRange(0, 3).Draw(t, "before commit")
			m.dieAfter = rapid.IntRange(0, 3).Draw(t, "after commit")
			if !tick(t, engine) {
				engine = m.process(t, options)
			}
			m.dieBefore, m.dieAfter = 0, 0
		},
		"restart": func(t *rapid.T) { engine = m.process(t, options) },
		"a rule more": func(t *rapid.T) {
			if len(m.rules) < 6 {
				add(t)
			}
		},
		"edit": edit,
		// Whatever a person asks of a rule takes it out of its cohort.
		"retry":             func(t *rapid.T) { m.leave(some(t)) },
		"tick elsewhere":    elsewhere,
		"a text has errors": func(t *rapid.T) { m.untellable = true; tick(t, engine); m.untellable = false },
		"the source breaks": func(t *rapid.T) { m.broken = true; tick(t, engine); m.broken = false },
		"the store refuses": func(t *rapid.T) { m.refused = some(t).rule.ID; tick(t, engine); m.refused = uuid.Nil },
		"in the midst of a tick": func(t *rapid.T) {
			happen := map[string]func(*rapid.T){"edit": edit, "tick elsewhere": elsewhere, "retry": func(t *rapid.T) { m.leave(some(t)) }}
			what := rapid.SampledFrom([]string{"edit", "tick elsewhere", "retry"}).Draw(t, "what")
			m.calls, m.meanwhile = rapid.IntRange(1, 8).Draw(t, "call"), func() { happen[what](t) }
			tick(t, engine)
			m.meanwhile = nil
		},
	}
	if len(only) > 0 {
		maps.DeleteFunc(actions, func(name string, _ func(*rapid.T)) bool { return !slices.Contains(only, name) })
	}
	t.Repeat(actions)
	m.late = true
	// Quiet: what lies in the future comes, the comparison of the whole
	// look-back comes round, and what a budget left over is done.
	for range 3 {
		m.now += 20 * second
		for range len(m.rows) + 1 {
			tick(t, engine)
		}
	}
	want := map[string]int{}
	for id, s := range m.rules {
		eras := append(slices.Clone(s.rule.Former), rules.Era{
			Scope: s.rule.Scope, Filter: s.rule.Filter, FromNS: s.rule.ArmedSinceNS, ToNS: math.MaxInt64,
		})
		for _, era := range eras {
			matcher, err := rules.Compile(era.Scope, era.Filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range m.rows {
				if e.EndedNS() >= era.FromNS && e.EndedNS() < era.ToNS && matcher.Match(&e) {
					want[fmt.Sprint(id, e.ExecutionID)] = 1
				}
			}
		}
	}
	if !maps.Equal(m.alerts, want) {
		t.Fatalf("alerts %v, want %v", m.alerts, want)
	}
	if !maps.Equal(m.notified, want) {
		t.Fatalf("notifications %v, want %v", m.notified, want)
	}
}
