package evaluator_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// returned counts the exchanges that scans return, and holds those that read what is
// new to what any rule wants.
type returned struct {
	*asked
	t    *testing.T
	rows int
}

func (r *returned) Scan(ctx context.Context, s evaluator.Scan) ([]rules.Exchange, error) {
	page, err := r.asked.Scan(ctx, s)
	r.rows += len(page)
	for _, state := range r.rules {
		if s.BeforeNS >= r.now && s.EndedSinceNS > state.rule.ArmedSinceNS {
			r.t.Errorf("a scan of what is new leaves out what ended before %d s, and a rule is armed since %d s",
				(s.EndedSinceNS-begin)/second, (state.rule.ArmedSinceNS-begin)/second)
		}
	}
	return page, err
}

// ended adds an exchange that failed, with its id.
func ended(m *model, id string, start, end int64) {
	m.rows = append(m.rows, rules.Exchange{TenantID: "default", StartTimeNS: start, EndTimeNS: &end, ExecutionID: id, Status: rules.Failed})
}

// arm adds a rule that looks back for an hour.
func arm(m *model, name byte, sinceNS int64, applications ...string) *rules.Rule {
	id := uuid.UUID{name}
	s := &state{rule: rules.Rule{ID: id, TenantID: "default", ArmedSinceNS: sinceNS, Definition: rules.Definition{
		Name: string(name), Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600, Scope: rules.Scope{Applications: applications},
	}}}
	m.rules[id] = s
	return &s.rule
}

func engineOf(t *testing.T, m *model, source evaluator.Source, cohortLeast int) *evaluator.Evaluator {
	t.Helper()
	engine, err := evaluator.New(evaluator.Options{
		Source: source, Store: m, Cohorts: m, CohortLeast: cohortLeast, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return time.Unix(0, m.now) }, Replica: "model",
	})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// TestFirstLookReadsOnlyWhatEndedSince arms rules where an hour holds 7,200
// exchanges: beside one that runs for long, and beside one that runs for some seconds.
// Each alert that is due is raised, whoever reads with whom, and history is not read
// for the sake of it.
func TestFirstLookReadsOnlyWhatEndedSince(t *testing.T) {
	for name, least := range map[string]int{"alone": -1, "in cohorts": 1} {
		t.Run(name, func(t *testing.T) {
			m := &model{now: begin, rules: map[uuid.UUID]*state{}, cohorts: map[uuid.UUID]*cohort{}, alerts: map[string]int{}, notified: map[string]int{}}
			source := &returned{asked: &asked{model: m}, t: t}
			engine := engineOf(t, m, source, least)
			step := func(most int) {
				t.Helper()
				m.now += second
				source.rows = 0
				if _, err := engine.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				if source.rows > most {
					t.Errorf("at %d s, scans returned %d exchanges, want %d at most", (m.now-begin)/second, source.rows, most)
				}
			}
			want := map[string]int{}
			due := func(id string, names ...byte) {
				for _, name := range names {
					want[fmt.Sprint(uuid.UUID{name}, id)] = 1
				}
			}
			for i := range int64(7200) {
				start := begin - 3600*second + i*second/2
				m.rows = append(m.rows, rules.Exchange{
					TenantID: "default", StartTimeNS: start, ExecutionID: fmt.Sprint("history ", i), Status: rules.Failed, Application: "stock",
				})
			}

			// It looks at one application, and has looked at its whole look-back.
			arm(m, 'a', begin-7200*second, "")
			step(0)
			ended(m, "quiet since", m.now-second, m.now)
			due("quiet since", 'a')
			step(2)
			step(2)

			// Nothing is new to the first one when the second one comes.
			arm(m, 'b', m.now+second/2)
			ended(m, "before both looks", m.now+second/2-1, m.now+second/2+1)
			ended(m, "began long ago", begin-1800*second, m.now+second/2+1)
			due("before both looks", 'a', 'b')
			due("began long ago", 'a', 'b')
			step(10)
			step(10)

			// What ends before the third is armed is that of the others, wherever it began.
			ended(m, "new to two", m.now+10, m.now+20)
			ended(m, "late for two", m.now-5*second, m.now+20)
			due("new to two", 'a', 'b')
			due("late for two", 'a', 'b')
			arm(m, 'c', m.now+second/2)
			ended(m, "new to all", m.now+second/2, m.now+second/2)
			ended(m, "late for all", begin-1800*second, m.now+second/2)
			due("new to all", 'a', 'b', 'c')
			due("late for all", 'a', 'b', 'c')
			step(20)
			step(20)

			// By its former conditions a rule wants what ended while they stood.
			arm(m, 'd', m.now).Former = []rules.Era{{FromNS: m.now - second, ToNS: m.now}}
			ended(m, "before an edit", m.now-600*second, m.now-1)
			due("before an edit", 'a', 'b', 'c', 'd')
			step(30)
			step(30)
			if diff := cmp.Diff(want, m.alerts); diff != "" {
				t.Errorf("alerts differ, - is missing:\n%s", diff)
			}
		})
	}
}

// TestNobodyReadsByTheEndLongAfter says that a scan asks for no end once all that it
// can read began later than any rule was armed.
func TestNobodyReadsByTheEndLongAfter(t *testing.T) {
	m, source, after := looking(t)
	fail(m, m.now-30*second)
	source.scans = nil
	after(10)
	behind := false
	for _, s := range source.scans {
		behind = behind || s.After.StartTimeNS < m.now-20*second
		if s.EndedSinceNS != 0 {
			t.Errorf("a scan from %d on asks for what ended since %d", s.After.StartTimeNS, s.EndedSinceNS)
		}
	}
	if !behind {
		t.Error("nothing was read behind the cursor")
	}
}
