package evaluator_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/notify"
	"tocsin/rules"
)

// The law: whatever the order of arrival, the ties, the size of pages and the
// crashes, each exchange that matches a rule has one alert and one notification
// for it, and nothing else has. The engine is the real one; source and store
// are models that fail on demand. Scenarios on real databases stand in internal/app.

var errDied = errors.New("the process died")

// model is a source and a store in memory.
type model struct {
	now   int64
	rows  []rules.Exchange
	rules map[uuid.UUID]*state
	// alerts counts the alerts of each rule and execution, notified what is owed.
	alerts, notified map[string]int
	token            int64
	// dieBefore and dieAfter are the number of commits until one never arrives,
	// or is written without anybody learning of it; 0 is never.
	dieBefore, dieAfter int
}

type state struct {
	rule   rules.Rule
	cursor *cursor.Position
	token  int64
}

func (m *model) Now(context.Context) (int64, error) { return m.now, nil }

func (m *model) Scan(_ context.Context, s evaluator.Scan) ([]rules.Exchange, error) {
	var page []rules.Exchange
	for _, e := range m.rows {
		if e.Position().After(s.After) && e.StartTimeNS < s.BeforeNS && slices.Contains(s.Statuses, e.Status) &&
			(len(s.Applications) == 0 || slices.Contains(s.Applications, e.Application)) {
			page = append(page, e)
		}
	}
	slices.SortStableFunc(page, func(a, b rules.Exchange) int { return a.Position().Compare(b.Position()) })
	return page[:min(len(page), s.Limit)], nil
}

func (m *model) Fingerprints(_ context.Context, q evaluator.FingerprintQuery) ([]evaluator.Fingerprint, error) {
	type key struct {
		status rules.Status
		bucket int64
	}
	prints := map[key]evaluator.Fingerprint{}
	for _, e := range m.rows {
		if e.StartTimeNS < q.FromNS || e.StartTimeNS >= q.ToNS || !slices.Contains(q.Statuses, e.Status) {
			continue
		}
		k := key{e.Status, e.StartTimeNS / q.WidthNS}
		h := fnv.New64a()
		_, _ = h.Write([]byte(e.ExecutionID))
		p := prints[k]
		prints[k] = evaluator.Fingerprint{Status: k.status, Bucket: k.bucket, Count: p.Count + 1, Checksum: p.Checksum + h.Sum64()}
	}
	return slices.Collect(maps.Values(prints)), nil
}

func (m *model) Load(context.Context, evaluator.ClaimRequest) ([]evaluator.Claim, error) {
	var claims []evaluator.Claim
	for _, s := range m.rules {
		m.token++
		s.token = m.token
		claims = append(claims, evaluator.Claim{Rule: s.rule, Token: s.token, From: s.cursor})
	}
	slices.SortFunc(claims, func(a, b evaluator.Claim) int { return cmp.Compare(a.Rule.Name, b.Rule.Name) })
	return claims, nil
}

func (m *model) Commit(_ context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	if died(&m.dieBefore) {
		panic(errDied)
	}
	var done evaluator.Committed
	advanced := map[uuid.UUID]bool{}
	for _, a := range b.Advances {
		s := m.rules[a.RuleID]
		same := (a.From == nil && s.cursor == nil) || (a.From != nil && s.cursor != nil && *a.From == *s.cursor)
		if !same || s.token != a.Token {
			continue
		}
		to := a.To
		s.cursor, advanced[a.RuleID] = &to, true
		done.Advanced = append(done.Advanced, a.RuleID)
	}
	inserted := map[uuid.UUID]bool{}
	for _, i := range b.Instances {
		k := fmt.Sprint(i.RuleID, i.Exchange.ExecutionID)
		if !advanced[i.RuleID] || m.alerts[k] > 0 {
			continue
		}
		m.alerts[k]++
		inserted[i.ID] = true
		done.Inserted = append(done.Inserted, i.ID)
		for _, n := range b.Notifications {
			if n.AlertID == i.ID {
				m.notified[k]++
				done.Notifications++
			}
		}
	}
	if died(&m.dieAfter) {
		panic(errDied)
	}
	return done, nil
}

func died(countdown *int) bool {
	if *countdown == 0 {
		return false
	}
	*countdown--
	return *countdown == 0
}

func (m *model) Fail(_ context.Context, c []evaluator.Claim, problem string) ([]uuid.UUID, error) {
	return nil, fmt.Errorf("rule %s: %s", c[0].Rule.Name, problem)
}

func (m *model) Announce(context.Context, []alerts.Instance) (int, error) { return 0, nil }

func (m *model) Publish(context.Context, notify.WakeUp) error { return nil }

func (m *model) Texts(*rules.Rule, *rules.Exchange) (title, message string, problem error) {
	return "title", "message", nil
}

func (m *model) CountWindows(context.Context, []evaluator.WindowQuery) ([][]evaluator.GroupCount, error) {
	return nil, errors.New("no rule counts")
}

func (m *model) Tally(context.Context, evaluator.TallyQuery) ([]evaluator.Tally, bool, error) {
	return nil, false, errors.New("no rule counts")
}

func (m *model) Newest(context.Context, evaluator.WindowQuery, evaluator.GroupCount) (rules.Exchange, error) {
	return rules.Exchange{}, errors.New("the model counts nothing")
}

func (m *model) CountTexts(*rules.Rule, *alerts.Count, *rules.Exchange) (title, message string, problem error) {
	return "title", "message", nil
}

// process starts the engine anew, as after a crash: it remembers nothing.
//
// Each look at the clock takes a millisecond, so that a small budget ends a
// tick in the midst of its pages.
func (m *model) process(t *rapid.T, pageSize int, budget time.Duration) *evaluator.Evaluator {
	looks := 0
	e, err := evaluator.New(evaluator.Options{
		Source: m, Store: m, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler),
		Clock:   func() time.Time { looks++; return time.Unix(0, m.now).Add(time.Duration(looks) * time.Millisecond) },
		Replica: "model", PageSize: pageSize, Budget: budget,
	})
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
	rapid.Check(t, func(t *rapid.T) {
		m := &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
		scope := func(label string) rules.Scope {
			return rules.Scope{Applications: rapid.SampledFrom([][]string{{"orders"}, {"billing", "orders"}, {"stock"}, {"billing"}, {"bill*"}, nil}).Draw(t, label)}
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
			id := uuid.UUID{15: byte(i + 1)}
			armed := begin + rapid.Int64Range(-2, 8).Draw(t, "armed")*quantum
			var former []rules.Era
			if rapid.Bool().Draw(t, "edited") {
				former = []rules.Era{{Scope: scope("former scope"), FromNS: armed - 20*quantum, ToNS: armed}}
			}
			m.rules[id] = &state{rule: rules.Rule{
				ID: id, TenantID: "default", ArmedSinceNS: armed, Former: former,
				Definition: rules.Definition{
					Name: fmt.Sprint(i), Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600, Scope: scope("scope"),
					Filter: rules.Filter{Statuses: rapid.SampledFrom([][]rules.Status{
						nil, {rules.Failed, rules.Completed}, {rules.Completed},
					}).Draw(t, "statuses")},
					WebhookIDs: []uuid.UUID{{1}},
				},
			}}
		}
		pageSize := rapid.IntRange(1, 5).Draw(t, "page size")
		budget := time.Duration(rapid.IntRange(3, 12).Draw(t, "budget")) * time.Millisecond
		engine := m.process(t, pageSize, budget)
		next := 0
		application := func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"orders", "billing", "stock", "elsewhere"}).Draw(t, "application")
		}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "rows") {
					start := m.now + rapid.Int64Range(-40, 2).Draw(t, "start")*quantum
					end := max(start, m.now-rapid.Int64Range(0, 8).Draw(t, "end")*quantum)
					next++
					m.rows = append(m.rows, rules.Exchange{
						TenantID: "default", StartTimeNS: start, EndTimeNS: &end, Application: application(t),
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
			"clock steps back": func(*rapid.T) { m.now -= quantum },
			"tick":             func(t *rapid.T) { tick(t, engine) },
			"die in a tick": func(t *rapid.T) {
				m.dieBefore = rapid.IntRange(0, 3).Draw(t, "before commit")
				m.dieAfter = rapid.IntRange(0, 3).Draw(t, "after commit")
				if !tick(t, engine) {
					engine = m.process(t, pageSize, budget)
				}
				m.dieBefore, m.dieAfter = 0, 0
			},
			"restart": func(t *rapid.T) { engine = m.process(t, pageSize, budget) },
		})
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
	})
}
