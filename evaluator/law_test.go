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
	// latest is the latest instant that a tick or the clock has seen.
	now, latest int64
	rows        []rules.Exchange
	rules       map[uuid.UUID]*state
	// alerts counts the alerts of each rule and execution, notified what is owed.
	alerts, notified map[string]int
	token            int64
	cohorts          map[uuid.UUID]*cohort
	// late lets any replica claim any cohort.
	late bool
	// meanwhile runs once, at the so many-th call from now on.
	meanwhile func()
	calls     int
	// refused is a rule whose alerts the store refuses; broken fails scans, and
	// untellable has a problem with each text.
	refused            uuid.UUID
	broken, untellable bool
	// dieBefore and dieAfter are the number of commits until one never arrives,
	// or is written without anybody learning of it; 0 is never.
	dieBefore, dieAfter int
}

type state struct {
	rule   rules.Rule
	cursor *cursor.Position
	token  int64
	// cohort is nil for a rule that is alone.
	cohort *cohort
}

// cohort is what [state] is, of several rules; its token is 0 while it is not claimed.
type cohort struct {
	claim  evaluator.CohortClaim
	cursor cursor.Position
	token  int64
	home   string
}

// called lets happen what is to happen at this moment.
func (m *model) called() {
	if m.calls--; m.calls == 0 && m.meanwhile != nil {
		happen := m.meanwhile
		m.meanwhile = nil
		happen()
	}
}

func (m *model) Now(context.Context) (int64, error) {
	m.latest = max(m.latest, m.now)
	return m.now, nil
}

func (m *model) Scan(_ context.Context, s evaluator.Scan) ([]rules.Exchange, error) {
	m.called()
	if m.broken {
		return nil, errors.New("the source is broken")
	}
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
	m.called()
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

func (m *model) Load(_ context.Context, request evaluator.ClaimRequest) ([]evaluator.Claim, error) {
	var claims []evaluator.Claim
	for _, s := range m.rules {
		if s.cohort != nil {
			continue
		}
		m.token++
		s.token = m.token
		claims = append(claims, evaluator.Claim{Rule: s.rule, Token: s.token, From: s.cursor})
	}
	for _, c := range m.cohorts {
		if c.home != request.Replica && !m.late {
			continue
		}
		m.token++
		c.token, c.home = m.token, request.Replica
		said, at := c.claim, c.cursor
		claims = append(claims, evaluator.Claim{Cohort: &said, Token: c.token, From: &at})
	}
	slices.SortFunc(claims, func(a, b evaluator.Claim) int { return cmp.Compare(a.Rule.Name, b.Rule.Name) })
	return claims, nil
}

func (m *model) Members(_ context.Context, id uuid.UUID) ([]evaluator.Member, error) {
	m.called()
	var members []evaluator.Member
	for _, s := range m.rules {
		if s.cohort != nil && s.cohort.claim.ID == id {
			members = append(members, evaluator.Member{RuleID: s.rule.ID, Version: s.rule.Version, ArmedSinceNS: s.rule.ArmedSinceNS})
		}
	}
	return members, nil
}

func (m *model) Definitions(_ context.Context, ids []uuid.UUID) ([]evaluator.Claim, error) {
	m.called()
	var read []evaluator.Claim
	for _, id := range ids {
		read = append(read, evaluator.Claim{Rule: m.rules[id].rule})
	}
	return read, nil
}

// leave has a member go on alone.
func (m *model) leave(s *state) {
	if s.cohort != nil {
		at := s.cohort.cursor
		s.cohort.claim.Revision++
		s.cohort, s.cursor, s.token = nil, &at, 0
	}
}

func (m *model) Leave(_ context.Context, l evaluator.Leaving) ([]uuid.UUID, error) {
	m.called()
	if died(&m.dieBefore) {
		panic(errDied)
	}
	c := m.cohorts[l.Cohort]
	if c == nil || c.token != l.Token {
		return nil, nil
	}
	var left []uuid.UUID
	members := 0
	for id, s := range m.rules {
		if s.cohort != c {
			continue
		}
		if l.Rules == nil || slices.Contains(l.Rules, id) {
			m.leave(s)
			left = append(left, id)
			continue
		}
		members++
	}
	if members == 0 {
		delete(m.cohorts, l.Cohort)
	}
	if died(&m.dieAfter) {
		panic(errDied)
	}
	return left, nil
}

func (m *model) Join(_ context.Context, j evaluator.Joining) (joined int, err error) {
	m.called()
	if died(&m.dieBefore) {
		panic(errDied)
	}
	c := m.cohorts[j.Cohort.ID]
	if j.New {
		c = &cohort{claim: j.Cohort, cursor: j.To, home: j.Replica}
		c.claim.Revision = 1
	}
	if c == nil || c.token != 0 || c.home != j.Replica || c.cursor.After(j.To) || j.NotBefore.After(c.cursor) {
		return 0, nil
	}
	var fit []*state
	for i, member := range j.Rules {
		s := m.rules[member.RuleID]
		// Each fifth is being edited just now.
		if (m.token+int64(i))%5 == 0 || s.cohort != nil || s.token != 0 || s.rule.Version != member.Version || c.cursor.After(*s.cursor) {
			continue
		}
		fit = append(fit, s)
	}
	if len(fit) == 0 || (j.New && len(fit) < j.Least) {
		return 0, nil
	}
	for _, s := range fit {
		s.cohort, s.cursor = c, nil
	}
	c.claim.Revision++
	m.cohorts[c.claim.ID] = c
	if died(&m.dieAfter) {
		panic(errDied)
	}
	return len(fit), nil
}

// advanceCohorts returns the members that found something.
func (m *model) advanceCohorts(b evaluator.Batch, done *evaluator.Committed) (finders map[uuid.UUID]bool) {
	finders = map[uuid.UUID]bool{}
	for _, a := range b.Cohorts {
		c := m.cohorts[a.ID]
		if c == nil || c.token != a.Token || c.cursor != a.From {
			continue
		}
		c.cursor = a.To
		if a.Release {
			c.token = 0
		}
		done.Cohorts = append(done.Cohorts, a.ID)
		for _, f := range a.Finders {
			if s := m.rules[f.RuleID]; s.cohort == c && s.rule.Version == f.Version {
				finders[f.RuleID] = true
			} else {
				done.Strayed++
			}
		}
		for id := range a.Problems {
			if m.rules[id].cohort == c {
				m.leave(m.rules[id])
			}
		}
	}
	return finders
}

var errRefused = errors.New("the store refuses an alert")

func (m *model) Commit(_ context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	m.called()
	if died(&m.dieBefore) {
		panic(errDied)
	}
	for _, i := range b.Instances {
		if i.RuleID == m.refused {
			return evaluator.Committed{}, errRefused
		}
	}
	var done evaluator.Committed
	advanced := m.advanceCohorts(b, &done)
	for _, a := range b.Advances {
		s := m.rules[a.RuleID]
		same := (a.From == nil && s.cursor == nil) || (a.From != nil && s.cursor != nil && *a.From == *s.cursor)
		if !same || s.token != a.Token || s.rule.Version != a.Version {
			continue
		}
		to := a.To
		s.cursor, advanced[a.RuleID] = &to, true
		if a.Release {
			s.token = 0
		}
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
	if m.broken || m.refused != uuid.Nil {
		return nil, nil
	}
	return nil, fmt.Errorf("rule %s: %s", c[0].Rule.Name, problem)
}

func (m *model) Announce(context.Context, []alerts.Instance) (int, error) { return 0, nil }

func (m *model) Publish(context.Context, notify.WakeUp) error { return nil }

func (m *model) Texts(*rules.Rule, *rules.Exchange) (title, message string, problem error) {
	if m.untellable {
		problem = errors.New("the template does not work out")
	}
	return "title", "message", problem
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
	rapid.Check(t, func(t *rapid.T) {
		m := &model{now: begin, rules: map[uuid.UUID]*state{}, cohorts: map[uuid.UUID]*cohort{}, alerts: map[string]int{}, notified: map[string]int{}}
		scope := func(label string) rules.Scope {
			return rules.Scope{Applications: rapid.SampledFrom([][]string{{"orders"}, {"billing", "orders"}, {"stock"}, {"billing"}, {"bill*"}, nil}).Draw(t, label)}
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
					Name: fmt.Sprint(i), Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600, Scope: scope("scope"),
					Filter: rules.Filter{Statuses: rapid.SampledFrom([][]rules.Status{
						nil, {rules.Failed, rules.Completed}, {rules.Completed},
					}).Draw(t, "statuses")},
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
			CohortLeast: rapid.SampledFrom([]int{1, 2, -1}).Draw(t, "least rules of a cohort"),
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
			m.now = max(m.now, m.latest+1, s.rule.ArmedSinceNS)
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
			"clock steps back": func(*rapid.T) { m.latest = max(m.latest, m.now); m.now -= quantum },
			"tick":             func(t *rapid.T) { tick(t, engine) },
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
		})
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
	})
}
