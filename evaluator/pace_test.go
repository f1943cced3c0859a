package evaluator_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// slowStore commits a few alerts in time, and many never.
type slowStore struct {
	*model
	most int
	// page is how many exchanges were last asked for.
	page int
}

func (s *slowStore) Scan(ctx context.Context, scan evaluator.Scan) ([]rules.Exchange, error) {
	s.page = scan.Limit
	return s.model.Scan(ctx, scan)
}

func (s *slowStore) Commit(ctx context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	if len(b.Instances) > s.most {
		<-ctx.Done()
		return evaluator.Committed{}, ctx.Err()
	}
	return s.model.Commit(ctx, b)
}

func (s *slowStore) Fail(ctx context.Context, _ []evaluator.Claim, _ string) ([]uuid.UUID, error) {
	return nil, ctx.Err()
}

// TestPagesShrinkUntilTheyAreCommitted overloads the store: a page of the
// wanted size is never committed within a claim.
func TestPagesShrinkUntilTheyAreCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rows = 1000
		id := uuid.UUID{1}
		m := &model{now: begin, rules: map[uuid.UUID]*state{}, alerts: map[string]int{}, notified: map[string]int{}}
		m.rules[id] = &state{rule: rules.Rule{ID: id, TenantID: "default", ArmedSinceNS: begin, Definition: rules.Definition{
			Name: "rule", Enabled: true, FireMode: rules.PerExchange, LookBackSeconds: 3600,
		}}}
		for i := range rows {
			at := begin + int64(i)*second/rows
			m.rows = append(m.rows, rules.Exchange{
				TenantID: "default", StartTimeNS: at, EndTimeNS: &at, ExecutionID: fmt.Sprint(i), Status: rules.Failed,
			})
		}
		m.now += 10 * second
		store := &slowStore{model: m, most: 70}
		engine, err := evaluator.New(evaluator.Options{
			Source: store, Store: store, Publisher: m, Texts: m, Logger: slog.New(slog.DiscardHandler), Replica: "model",
			Clock: time.Now, PageSize: rows, ClaimFor: 15 * time.Second, Budget: 5 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for len(m.alerts) < rows {
			if _, err := engine.Tick(t.Context()); err != nil {
				failed++
			}
			if failed > 12 {
				t.Fatalf("%d ticks failed, and %d of %d exchanges have an alert", failed, len(m.alerts), rows)
			}
		}
		if failed == 0 {
			t.Error("no tick ran out of time: the test is easier than it means to be")
		}

		// Once the store is quick again, pages grow to what was wanted.
		store.most = rows
		for range 6 {
			m.now += second
			if _, err := engine.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if store.page != rows {
			t.Errorf("a page holds %d exchanges, want %d", store.page, rows)
		}
	})
}
