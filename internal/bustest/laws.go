package bustest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tocsin/notify"
	"tocsin/notify/bus"
)

func arrives(t *testing.T, s Server) {
	t.Helper()
	publisher := NewReplica
	if !s.Nature.Broadcasts {
		publisher = newPublisher // one that listens might receive the wake-up itself
	}
	from, r := publisher(t, s.Driver(t, "from", never)), NewReplica(t, s.Driver(t, "to", never))
	const rounds = 200
	took := make([]time.Duration, rounds)
	for i := range took {
		began := time.Now()
		from.publish(1)
		signal := r.next()
		took[i] = time.Since(began)
		signal.Claimed(false, nil)
	}
	slices.Sort(took)
	median := took[rounds/2]
	t.Logf("from publishing to the dispatcher: median %v, p99 %v, longest %v", median, took[rounds*99/100], took[rounds-1])
	if median > time.Second {
		t.Errorf("half of the wake-ups took longer than %v", median)
	}
}

func begins(t *testing.T, s Server) {
	t.Helper()
	// What a server in this process starts for its first client is not a leak.
	NewReplica(t, s.Driver(t, "first", never)).stop()
	before := goleak.IgnoreCurrent()
	driver := s.Driver(t, "one", never)
	NewReplica(t, driver).stop()
	opened := goleak.IgnoreCurrent()
	for range 3 {
		NewReplica(t, driver).stop()
		goleak.VerifyNone(t, opened)
	}
	if err := closeDriver(driver); err != nil {
		t.Errorf("Close = %v", err)
	}
	goleak.VerifyNone(t, before)
}

// closeDriver closes what a driver has open; some have nothing.
func closeDriver(d bus.Driver) error {
	if closer, ok := d.(interface{ Close() error }); ok {
		return closer.Close()
	}
	return nil
}

func shares(t *testing.T, s Server) {
	t.Helper()
	replicas := []*Replica{
		NewReplica(t, s.Driver(t, "a", never)), NewReplica(t, s.Driver(t, "b", never)), NewReplica(t, s.Driver(t, "c", never)),
	}
	for range 20 {
		replicas[0].publish(1)
		if s.Nature.Broadcasts {
			for _, r := range replicas {
				r.claim()
			}
			continue
		}
		select {
		case signal := <-replicas[0].heard:
			signal.Claimed(false, nil)
		case signal := <-replicas[1].heard:
			signal.Claimed(false, nil)
		case signal := <-replicas[2].heard:
			signal.Claimed(false, nil)
		case <-time.After(soon):
			t.Fatal("nobody was woken")
		}
	}
	for _, r := range replicas {
		r.hearsNothing(quiet)
	}
}

// takeAndDie receives a message at the driver and neither acknowledges nor closes anything.
func takeAndDie(t *testing.T, driver bus.Driver) {
	t.Helper()
	subscription, err := driver.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Publish(t.Context(), []byte(`{"notifications":7}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for {
		batch, err := subscription.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// A driver may have sent messages itself.
		if strings.Contains(string(batch.Payloads[0]), "7") {
			break
		}
	}
	t.Cleanup(func() { subscription.Close(context.Background()) })
}

// crash: if messages are kept, another replica receives it. If none is kept, the message is lost,
// and the next subscription begins with a wake-up.
func crash(t *testing.T, s Server) {
	t.Helper()
	takeAndDie(t, s.Driver(t, "dead", unacked))
	survivor := NewReplica(t, s.Driver(t, "survivor", unacked))
	if s.Nature.Keeps {
		if signal := survivor.next(); signal.WakeUp.Notifications != 7 {
			t.Errorf("woken for %d notifications, want the 7 of the dead", signal.WakeUp.Notifications)
		} else {
			signal.Claimed(false, nil)
		}
	}
	survivor.hearsNothingAgain(s)
}

// failedPass: if messages are kept, it arrives again, but no more once it is claimed. If none is
// kept, the dispatcher looks again by itself.
func failedPass(t *testing.T, s Server) {
	t.Helper()
	r := NewReplica(t, s.Driver(t, "one", unacked))
	r.publish(1)
	r.next().Claimed(false, errors.New("the database is away"))
	if s.Nature.Keeps {
		r.claim()
	}
	r.hearsNothingAgain(s)
}

// givesBack: if messages are kept, another replica has it at once. If none is kept, others received
// it too, or there are none.
func givesBack(t *testing.T, s Server) {
	t.Helper()
	first := NewReplica(t, s.Driver(t, "first", never))
	first.publish(3)
	first.next()
	second := NewReplica(t, s.Driver(t, "second", never))
	first.stop()
	if s.Nature.Keeps {
		second.claim()
	}
	second.hearsNothing(quiet)
}

// passedOn: if a message wakes one of several replicas, one without room for all of its
// notifications wakes the next. If it wakes all, or there is only one, no other needs to be woken.
func passedOn(t *testing.T, s Server) {
	t.Helper()
	first, second := NewReplica(t, s.Driver(t, "first", never)), NewReplica(t, s.Driver(t, "second", never))
	wantWoken, wantFull := 1, 1
	switch {
	case s.Nature.Keeps:
		wantWoken, wantFull = 17, 2
	case s.Nature.Broadcasts:
		wantWoken, wantFull = 2, 2
	}
	full := map[*Replica]bool{}
	// On a busy machine one of them may be the quicker one each time.
	for range 10 {
		if len(full) < wantFull {
			first.publish(1000)
			passOn(t, first, second, wantWoken, full)
		}
	}
	if len(full) != wantFull {
		t.Errorf("the wake-ups reached %d replicas, want %d", len(full), wantFull)
	}
	first.hearsNothing(quiet)
	second.hearsNothing(quiet)
}

// passOn leaves both of two replicas without room for all that wakes them, and records which are
// woken.
func passOn(t *testing.T, first, second *Replica, wantWoken int, full map[*Replica]bool) {
	t.Helper()
	for woken := range wantWoken {
		var signal notify.Signal
		select {
		case signal = <-first.heard:
			full[first] = true
		case signal = <-second.heard:
			full[second] = true
		case <-time.After(soon):
			t.Fatalf("%d wake-ups came, want %d", woken, wantWoken)
		}
		// No replica ever has room for all.
		signal.Claimed(true, nil)
	}
}

// malformed: each malformed message is counted, and acknowledged if messages are kept, so that it
// never arrives again. The next message works.
func malformed(t *testing.T, s Server) {
	t.Helper()
	driver := s.Driver(t, "one", unacked)
	r := NewReplica(t, driver)
	garbage := []string{"x", "{", "null", "[]", `{"notifications":-1}`, `{"notifications":1,"hops":-1}`, `{"notifications":"1"}`, strings.Repeat(" ", 2000)}
	for i, payload := range garbage {
		if err := driver.Publish(t.Context(), []byte(payload)); err != nil {
			t.Fatal(err)
		}
		// One by one, because some providers keep only one.
		until(t, "the malformed message is counted", func() bool { return r.count(bus.Malformed) == i+1 })
	}
	r.publish(5)
	if signal := r.next(); signal.WakeUp.Notifications != 5 {
		t.Errorf("woken for %d notifications, want 5", signal.WakeUp.Notifications)
	} else {
		signal.Claimed(false, nil)
	}
	r.hearsNothingAgain(s)
	if got := r.count(bus.Malformed); got != len(garbage) {
		t.Errorf("%d malformed messages counted, want each of %d once", got, len(garbage))
	}
}

// outage: a server that is the process itself cannot be down; nothing is lost either.
func outage(t *testing.T, s Server) {
	t.Helper()
	driver := s.Driver(t, "one", never)
	r := NewReplica(t, driver)
	r.publish(1)
	r.claim()
	until(t, "the message is counted as sent", func() bool { return r.count(bus.Published) == 1 })
	outages := 0
	if s.Stop != nil {
		s.Stop(t)
		outages = 1
	}
	began := time.Now()
	const publications, last = 1000, 5000
	sent := r.count(bus.Published)
	for range publications {
		r.publish(1)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("publishing %d times took %v", publications, took)
	}
	if s.Stop != nil {
		until(t, "failures are counted", func() bool { return r.count(bus.Failed) > 3 })
		s.Start(t)
		r.await(r.begun, "the wake-up with which the next subscription begins")
	}
	// What could not be sent is sent later without a further event. It arrives unless it was sent
	// before the new subscription, which began with a wake-up.
	until(t, "what could not be sent is sent", func() bool { return r.count(bus.Published) > sent })
	for sum := 0; sum < last; {
		r.publish(last)
		signal := r.next()
		sum += signal.WakeUp.Notifications
		signal.Claimed(false, nil)
	}
	r.stop()
	text := r.logged.String()
	if logged := strings.Count(text, "level=WARN"); logged > 2*outages || logged < outages {
		t.Errorf("%d outages, logged %d times; each of publishing and listening logs once:\n%s", outages, logged, text)
	}
	if logged := strings.Count(text, "works again") + strings.Count(text, "listening for wake-ups again"); outages > 0 && logged == 0 {
		t.Errorf("the end of the outage is not logged:\n%s", text)
	}
}
