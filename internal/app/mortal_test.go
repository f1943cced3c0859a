package app_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"tocsin/evaluator"
	"tocsin/internal/postgres"
	"tocsin/notify/dispatch"
)

// mortal is a replica of this process that can be killed, as Postgres sees it: its connections are cut, and it gets no
// others. Postgres executes what it was sent, and nobody receives the answer. Where it matters what else a process leaves
// behind, such as requests to receivers and heartbeats, tests kill processes.
type mortal struct {
	w          *world
	cable      *cable
	db         *postgres.DB
	evaluator  *evaluator.Evaluator
	dispatcher *dispatch.Dispatcher
}

func (w *world) mortal() *mortal {
	w.t.Helper()
	m := &mortal{w: w, cable: newCable(w)}
	var err error
	if m.db, err = postgres.Open(w.t.Context(), m.cable.url, w.box); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(m.db.Close)
	m.evaluator = w.newEvaluator(evaluator.Options{Store: m.db.Evaluation(time.Minute), Replica: "mortal"})
	m.dispatcher = w.newDispatcher(dispatch.Options{Store: m.db.Outbox(), Replica: "mortal", Lease: 4 * time.Second})
	return m
}

func (m *mortal) evaluate(ctx context.Context) error {
	_, err := m.evaluator.Tick(ctx)
	return err
}

func (m *mortal) deliver(ctx context.Context) error {
	_, err := m.dispatcher.Tick(ctx)
	return err
}

// killedInside makes passes of the replica until one waits at a trigger that calls pause, and kills it there. The statement
// continues when goOn is called.
func (m *mortal) killedInside(trigger string, pass func(context.Context) error) (goOn func()) {
	w := m.w
	w.t.Helper()
	goOn = w.pauseInside(trigger)
	failed := make(chan error, 1)
	var passes sync.WaitGroup
	w.t.Cleanup(func() {
		m.cable.stop()
		passes.Wait()
	})
	passes.Go(func() {
		for {
			if err := pass(w.t.Context()); err != nil {
				failed <- err
				return
			}
			<-time.After(shortestPause)
		}
	})
	w.until("the replica is inside the statement", func() bool {
		select {
		case err := <-failed:
			w.t.Fatalf("the replica is not killed, but fails: %v", err)
		default:
		}
		return w.isInside()
	})
	m.cable.stop()
	return goOn
}

// delivers makes a pass of the world's own dispatcher, which no wake-up precedes.
func (w *world) delivers() {
	w.t.Helper()
	if _, err := w.dispatcher.Tick(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// works makes a pass of the world's own evaluator, and then one of its dispatcher.
func (w *world) works() {
	w.t.Helper()
	w.tick()
	w.delivers()
}

// goesOn makes passes until a query returns what is wanted.
func (w *world) goesOn(pass func(), what, sql string, want ...string) {
	w.t.Helper()
	w.until(what, func() bool {
		pass()
		return slices.Equal(w.column(sql), want)
	})
}
