package api_test

import (
	"context"
	"testing"
	"time"

	"tocsin/api"
)

// historyFunc is a history that is read by a function.
type historyFunc func() (api.SystemHistory, error)

func (f historyFunc) History(context.Context, string) (api.SystemHistory, error) { return f() }

func TestTheHistoryOfTheSystemHasGaps(t *testing.T) {
	lag := 1500 * time.Millisecond
	history := api.SystemHistory{From: instant()}
	history.Steps[1] = &api.SystemSample{Lag: &lag, Messages: 3, Oldest: 2 * time.Second, Replicas: 2, Partitions: 8, PartitionsHeld: 7}
	history.Steps[2] = &api.SystemSample{}
	b := newBench(t, func(o *api.Options) {
		o.Past = historyFunc(func() (api.SystemHistory, error) { return history, nil })
	})
	got := into[api.SystemHistoryAnswer](b.do("GET", "/api/v1/status/history", "").want(200))
	if !got.From.Equal(instant()) || got.StepSeconds != 300 || len(got.Steps) != api.HistorySteps {
		t.Fatalf("from %s, %d steps of %d s", got.From, len(got.Steps), got.StepSeconds)
	}
	if s := got.Steps[0]; s.Messages != nil || s.Replicas != nil {
		t.Errorf("a step without a sample is %+v", s)
	}
	if s := got.Steps[1]; *s.LagSeconds != 1.5 || *s.Messages != 3 || *s.OldestSeconds != 2 || *s.Replicas != 2 || *s.Partitions != 8 || *s.PartitionsHeld != 7 {
		t.Errorf("a step is %+v", s)
	}
	if s := got.Steps[2]; s.LagSeconds != nil || *s.Messages != 0 {
		t.Errorf("a step without a cursor is %+v", s)
	}
}
