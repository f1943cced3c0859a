package evaluator_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// weighing is a source that holds so many bytes of messages at once, and more only of
// a single exchange.
type weighing struct {
	*model
	most, held int
	scans      int
}

func (w *weighing) Scan(ctx context.Context, s evaluator.Scan) ([]rules.Exchange, error) {
	w.scans++
	page, err := w.model.Scan(ctx, s)
	bytes := 0
	for i := range page {
		bytes += len(page[i].ErrorMessage)
	}
	if bytes > w.most && s.Limit > 1 {
		return nil, fmt.Errorf("source: %w", evaluator.ErrTooMuch)
	}
	w.held = max(w.held, bytes)
	return page, err
}

// TestLargeExchangesAreReadFewAtATime has exchanges behind the cursor and after it that
// the source cannot hold together, and one larger than it holds at all: all are
// alerted, a preview finds them, and pages grow again when these are over.
func TestLargeExchangesAreReadFewAtATime(t *testing.T) {
	const rows, size, most = 60, 1000, 3500
	id := uuid.UUID{1}
	m := &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
	m.rules[id] = &state{rule: rules.Rule{ID: id, TenantID: "default", ArmedSinceNS: begin - second, Definition: rules.Definition{
		Name: "rule", Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600,
	}}}
	source := &weighing{model: m, most: most}
	now := begin
	engine, err := evaluator.New(evaluator.Options{
		Source: source, Store: m, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler), Replica: "model", PageSize: 40,
		Clock: func() time.Time { return time.Unix(0, now) },
	})
	if err != nil {
		t.Fatal(err)
	}
	tick := func() {
		t.Helper()
		m.now += 5 * second
		now = m.now
		if _, err := engine.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	fail := func(at int64, name string, size int) {
		end := m.now
		m.rows = append(m.rows, rules.Exchange{
			TenantID: "default", StartTimeNS: at, EndTimeNS: &end, ExecutionID: name, Status: rules.Failed, ErrorMessage: string(make([]byte, size)),
		})
	}
	tick()
	for i := range int64(rows) {
		fail(m.now+i, fmt.Sprint("new ", i), size)
		fail(m.now-1800*second+i, fmt.Sprint("far behind ", i), size)
		fail(m.now-30*second+i, fmt.Sprint("behind ", i), size)
	}
	fail(m.now+rows, "larger than all", 2*most)
	for range 20 {
		tick()
	}
	if len(m.alerts) != 3*rows+1 || source.held != 2*most {
		t.Errorf("%d of %d alerts, %d bytes held at once", len(m.alerts), 3*rows+1, source.held)
	}
	preview, err := (&evaluator.Previewer{Source: source, Texts: m, Clock: time.Now, PageSize: 40}).Preview(t.Context(), evaluator.PreviewRequest{
		TenantID: "default", Definition: m.rules[id].rule.Definition, Last: 2 * time.Hour,
	})
	if err != nil || preview.Alerts != 3*rows+1 || source.held != 2*most {
		t.Errorf("%d alerts in the preview, %v, %d bytes held at once", preview.Alerts, err, source.held)
	}
	for i := range int64(200) {
		fail(m.now+i, fmt.Sprint("small ", i), 1)
	}
	source.scans = 0
	tick()
	if len(m.alerts) != 3*rows+1+200 || source.scans > 20 {
		t.Errorf("%d alerts, %d scans for what is small again", len(m.alerts), source.scans)
	}
}
