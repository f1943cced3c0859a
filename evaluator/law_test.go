package evaluator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// The law: whatever the order of arrival, the ties, the size of pages, the servers that
// answer, the crashes and the failovers, each exchange that matches a rule has one alert,
// with the id that is derived for it, and one notification; nothing else has. The engine
// is the real one; source and store are models that fail on demand. Scenarios on real
// databases stand in internal/app.

const (
	second  = int64(1e9)
	begin   = 1_795_244_520 * second
	quantum = second / 4
)

// process starts the engine anew, as after a crash: it remembers nothing. Each look at the
// clock takes a millisecond, so that a short lease ends a pass in the midst of its pages.
func (m *model) process(t *rapid.T, o evaluator.Options) *evaluator.Evaluator {
	looks := 0
	o.Source, o.Store, o.Publisher, o.Texts, o.Logger, o.Workers = m, m, m, m, slog.New(slog.DiscardHandler), 1
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
	_, err := e.Tick(context.Background())
	if err != nil && !errors.Is(err, evaluator.ErrStale) && !errors.Is(err, errBroken) && !isAhead(err) {
		t.Fatal(err)
	}
	return true
}

func isAhead(err error) bool { return err != nil && strings.Contains(err.Error(), "ahead of") }

func TestExactlyOneAlertWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { law(t, 1) })
}

// TestExactlyOneAlertOfServersThatLag is the law where two servers answer, the second of
// which shows each row some seconds later.
func TestExactlyOneAlertOfServersThatLag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { law(t, 2) })
}

func tenantNames() []string { return []string{"tenant-0", "tenant-1", "tenant-2"} }

func law(t *rapid.T, servers int) {
	m := newModel(begin)
	m.servers = servers
	alternate := rapid.Bool().Draw(t, "servers in turn")
	m.pick = func() int {
		if alternate || servers == 1 {
			return m.questions % servers
		}
		return int(uint32(m.questions)*2654435761>>16) % servers
	}
	scope := func(t *rapid.T, label string) rules.Scope {
		return rules.Scope{Applications: rapid.SampledFrom([][]string{{"orders"}, {"billing", "orders"}, {"stock"}, {"billing"}, {"bill*"}, nil}).Draw(t, label)}
	}
	add := func(t *rapid.T) {
		i := len(m.state.rules)
		armed := m.now + rapid.Int64Range(-2, 0).Draw(t, "armed")*quantum
		m.change(rules.Rule{
			ID: uuid.UUID{15: byte(i + 1)}, TenantID: rapid.SampledFrom(tenantNames()).Draw(t, "tenant"), ArmedSinceNS: armed, Version: 1,
			Definition: rules.Definition{
				Name: fmt.Sprint(i), Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600, Scope: scope(t, "scope"),
				Filter: rules.Filter{Statuses: rapid.SampledFrom([][]rules.Status{
					nil, {rules.Failed, rules.Completed}, {rules.Completed},
				}).Draw(t, "statuses"), MinDurationMS: rapid.SampledFrom([]*int64{nil, nil, new(int64(1000))}).Draw(t, "least duration")},
				WebhookIDs: []uuid.UUID{{1}},
			},
		}, true)
	}
	for range rapid.IntRange(1, 3).Draw(t, "rules") {
		add(t)
	}
	options := evaluator.Options{
		PageSize: rapid.IntRange(1, 5).Draw(t, "page size"),
		LeaseFor: time.Duration(rapid.IntRange(15, 90).Draw(t, "lease")) * time.Millisecond,
		Interval: time.Duration(rapid.IntRange(5, 20).Draw(t, "interval")) * time.Millisecond,
	}
	processes, starts := map[string]*evaluator.Evaluator{}, 0
	start := func(name string) {
		starts++
		m.free(name + fmt.Sprint(starts-1))
		options.Replica = name + fmt.Sprint(starts)
		processes[name] = m.process(t, options)
	}
	start("a")
	start("b")
	next := 0
	some := func(t *rapid.T) rules.Rule {
		return m.state.rules[uuid.UUID{15: byte(rapid.IntRange(1, len(m.state.rules)).Draw(t, "rule"))}].rule
	}
	edit := func(t *rapid.T) {
		r := some(t)
		// What was judged before has ended before, and the arming instants of a rule ascend.
		m.now = max(m.now, m.latest, r.ArmedSinceNS) + 1
		if !r.Enabled {
			r.Enabled, r.Former, r.ArmedSinceNS = true, nil, m.now
			r.Version++
			m.change(r, true)
			return
		}
		r.Former = append(slices.Clone(r.Former), rules.Era{Scope: r.Scope, Filter: r.Filter, FromNS: r.ArmedSinceNS, ToNS: m.now})
		r.Scope, r.ArmedSinceNS = scope(t, "scope"), m.now
		r.Version++
		m.change(r, false)
	}
	elsewhere := func(t *rapid.T) {
		if rapid.Bool().Draw(t, "leases expired") {
			m.free("")
		}
		tick(t, processes["b"])
	}
	arrive := func(t *rapid.T, from, to int64) {
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			start := m.now + rapid.Int64Range(from, to).Draw(t, "start")*quantum + rapid.SampledFrom([]int64{0, 0, 1e6, 3e6}).Draw(t, "and a little")
			end := max(start, m.now-rapid.Int64Range(0, 8).Draw(t, "end")*quantum)
			next++
			r := row{Exchange: rules.Exchange{
				TenantID: rapid.SampledFrom(tenantNames()).Draw(t, "tenant"), StartTimeNS: start, EndTimeNS: &end, DurationNS: end - start,
				Application: rapid.SampledFrom([]string{"orders", "billing", "stock", "elsewhere"}).Draw(t, "application"),
				ExecutionID: fmt.Sprintf("%c%d", 'a'+rune(rapid.IntRange(0, 3).Draw(t, "letter")), next),
				Status:      rapid.SampledFrom([]rules.Status{rules.Failed, rules.Failed, rules.Completed, rules.Running}).Draw(t, "status"),
			}}
			for i := range servers {
				r.visible = append(r.visible, m.now+int64(i)*rapid.Int64Range(0, 16).Draw(t, "lag")*quantum)
			}
			m.rows = append(m.rows, r)
			if rapid.IntRange(0, 3).Draw(t, "again") == 0 {
				// The same id of another tenant at the same instant, or the row once more.
				r.TenantID = rapid.SampledFrom(tenantNames()).Draw(t, "tenant")
				m.rows = append(m.rows, r)
			}
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"arrive":                              func(t *rapid.T) { arrive(t, -40, 2) },
		"arrive some minutes late":            func(t *rapid.T) { arrive(t, -1200, -240) },
		"arrive at the edge of the look-back": func(t *rapid.T) { arrive(t, -3600*4, -3600*4+80) },
		"end what runs": func(*rapid.T) {
			for _, r := range m.rows {
				ended := func(o row) bool {
					return o.ExecutionID == r.ExecutionID && o.TenantID == r.TenantID && o.Status != rules.Running
				}
				if m.now-r.StartTimeNS < 3000*second && !slices.ContainsFunc(m.rows, ended) {
					end := max(m.now, r.StartTimeNS)
					r.Status, r.EndTimeNS, r.visible = rules.Failed, &end, slices.Repeat([]int64{m.now}, servers)
					m.rows = append(m.rows, r)
					return
				}
			}
		},
		"time passes":       func(t *rapid.T) { m.now += rapid.Int64Range(1, 12).Draw(t, "quanta") * quantum },
		"minutes pass":      func(t *rapid.T) { m.now += rapid.Int64Range(20, 400).Draw(t, "seconds") * second },
		"outage":            func(*rapid.T) { m.now += 7200 * second },
		"clock steps back":  func(*rapid.T) { m.now -= quantum },
		"tick":              func(t *rapid.T) { tick(t, processes["a"]) },
		"tick elsewhere":    elsewhere,
		"restart":           func(*rapid.T) { start("a") },
		"failover":          func(t *rapid.T) { m.failover(rapid.IntRange(1, 6).Draw(t, "commits lost")) },
		"edit":              edit,
		"disable":           func(t *rapid.T) { r := some(t); r.Enabled = false; r.Version++; m.change(r, false) },
		"a text has errors": func(t *rapid.T) { m.untellable = true; tick(t, processes["a"]); m.untellable = false },
		"the source breaks": func(t *rapid.T) { m.broken = true; tick(t, processes["a"]); m.broken = false },
		"the store refuses": func(t *rapid.T) { m.refused = some(t).ID; tick(t, processes["a"]); m.refused = uuid.Nil },
		"another rule": func(t *rapid.T) {
			if len(m.state.rules) < 6 {
				add(t)
			}
		},
		"the source's clock is ahead": func(t *rapid.T) {
			m.ahead = rapid.SampledFrom([]int64{61 * second, 7200 * second}).Draw(t, "ahead")
			tick(t, processes["a"])
			m.ahead = 0
		},
		"die in a pass": func(t *rapid.T) {
			m.dieBefore = rapid.IntRange(0, 3).Draw(t, "before commit")
			m.dieAfter = rapid.IntRange(0, 3).Draw(t, "after commit")
			if !tick(t, processes["a"]) {
				start("a")
				m.free("")
			}
			m.dieBefore, m.dieAfter = 0, 0
		},
		"in the midst of a pass": func(t *rapid.T) {
			happen := map[string]func(*rapid.T){
				"edit": edit, "tick elsewhere": elsewhere, "failover": func(*rapid.T) { m.failover(2) }, "arrive": func(t *rapid.T) { arrive(t, -40, 2) },
			}
			what := rapid.SampledFrom([]string{"edit", "tick elsewhere", "failover", "arrive"}).Draw(t, "what")
			m.calls, m.meanwhile = rapid.IntRange(1, 10).Draw(t, "call"), func() { happen[what](t) }
			tick(t, processes["a"])
			m.meanwhile = nil
		},
	})
	m.free("")
	// Quiet: what lags is shown, failing rules are tried again, and what passes left over
	// is done.
	for range 6 {
		m.now += 100 * second
		tick(t, processes["a"])
		for n := 0; !m.done(); n++ {
			if n > 2000 {
				t.Fatalf("the backlog does not end: checkpoints %+v, backfills %+v", m.state.checkpoints, m.state.backfills)
			}
			m.now += quantum
			tick(t, processes["a"])
		}
	}
	m.check(t)
}

// done reports whether nothing behind the cursors is left to judge.
func (m *model) done() bool {
	for _, c := range m.state.checkpoints {
		if c.Backfill != nil {
			return false
		}
	}
	return len(m.state.backfills) == 0
}

// check compares the alerts with those that there must be.
func (m *model) check(t *rapid.T) {
	want := m.want()
	have := map[string]bool{}
	for id, a := range m.state.alerts {
		if !m.state.rules[a.rule].rule.Enabled {
			continue
		}
		key := fmt.Sprint(a.rule, " ", a.key)
		if have[key] || (!want[key] && !m.isHistory(a)) {
			t.Fatalf("alert %s must not be", key)
		}
		have[key] = true
		if a.notified != 1 {
			t.Fatalf("alert %s has %d notifications", key, a.notified)
		}
		if !slices.ContainsFunc(m.rows, func(r row) bool { return r.Key() == a.key && evaluator.AlertID(a.rule, &r.Exchange) == id }) {
			t.Fatalf("alert %s has the id %s", key, id)
		}
	}
	for key := range want {
		if !have[key] {
			for _, r := range m.rows {
				if strings.HasSuffix(key, " "+r.Key()) {
					t.Logf("%s %s %s %s start %d end %d visible %v", r.TenantID, r.Application, r.Status, r.ExecutionID, r.StartTimeNS, r.EndedNS(), r.visible)
				}
			}
			t.Fatalf("no alert %s; checkpoints %+v, backfills %+v", key, m.state.checkpoints, m.state.backfills)
		}
	}
}

// isHistory reports whether an alert is about an exchange that ended before the rule was
// last enabled: what was raised before stays.
func (m *model) isHistory(a alert) bool {
	r := m.state.rules[a.rule].rule
	since := r.ArmedSinceNS
	if len(r.Former) > 0 {
		since = r.Former[0].FromNS
	}
	return slices.ContainsFunc(m.rows, func(w row) bool { return w.TenantID == r.TenantID && w.Key() == a.key && w.EndedNS() < since })
}
