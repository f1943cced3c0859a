package evaluator_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// looking is an evaluator that looks back for an hour at exchanges of which one
// fails each ten seconds, and has compared all of them.
func looking(t *testing.T) (m *model, source *asked, after func(seconds int64) evaluator.Result) {
	t.Helper()
	// A minute begins with begin, so that the first looks are at one range.
	m = &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
	source = &asked{model: m}
	id := uuid.UUID{1}
	m.rules[id] = &state{rule: rules.Rule{ID: id, TenantID: "default", ArmedSinceNS: begin - 7200*second, Definition: rules.Definition{
		Name: "rule", Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600,
	}}}
	for i := range int64(360) {
		fail(m, begin-3600*second+i*10*second)
	}
	engine, err := evaluator.New(evaluator.Options{
		Source: source, Store: m, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return time.Unix(0, m.now) }, Replica: "model",
	})
	if err != nil {
		t.Fatal(err)
	}
	after = func(seconds int64) evaluator.Result {
		t.Helper()
		m.now += seconds * second
		if seconds == 10 {
			fail(m, m.now-1)
		}
		source.prints = nil
		result, err := engine.Tick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	// The first takes the cursor to the present, and the look-back is counted from it.
	after(0)
	after(10)
	return m, source, after
}

func fail(m *model, start int64) {
	end := m.now
	m.rows = append(m.rows, rules.Exchange{
		TenantID: "default", StartTimeNS: start, EndTimeNS: &end, ExecutionID: fmt.Sprint(start), Status: rules.Failed,
	})
}

// minutes are the questions that read a whole look-back.
func (a *asked) minutes() int {
	return len(slices.DeleteFunc(slices.Clone(a.prints), func(q evaluator.FingerprintQuery) bool { return q.WidthNS != 60*second }))
}

// TestReadsALookBackOnlyWhereItMayHoldMore looks each ten seconds at an hour in
// which nothing becomes visible, and then something does.
func TestReadsALookBackOnlyWhereItMayHoldMore(t *testing.T) {
	m, source, after := looking(t)
	read := 0
	for range 36 {
		after(10)
		read += source.minutes()
	}
	if read != 6 {
		t.Errorf("nothing came: the look-back was read %d times in 6 minutes, want 6", read)
	}
	fail(m, m.now-1800*second+5)
	if got := after(10); got.Late != 1 || source.minutes() != 1 {
		t.Errorf("one became visible: %d late alerts, the look-back was read %d times; want 1 and 1", got.Late, source.minutes())
	}
	if after(10); source.minutes() != 0 {
		t.Errorf("then the look-back was read %d times, want 0", source.minutes())
	}
}

// TestFindsWhatMergedRowsHide has a row disappear for each that becomes visible, so
// that there are as many as before, at the very end of what is looked back at.
func TestFindsWhatMergedRowsHide(t *testing.T) {
	m, _, after := looking(t)
	m.rows = slices.Insert(m.rows, 0, m.rows[100])
	after(10)
	m.rows = m.rows[1:]
	fail(m, m.now-3600*second+5)
	late := 0
	for range 7 {
		late += after(10).Late
	}
	if late != 1 {
		t.Errorf("%d alerts for what became visible within the look-back, want 1", late)
	}
}
