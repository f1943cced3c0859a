package notify_test

import (
	"testing"
	"time"

	"tocsin/notify"
)

func TestBreakerNext(t *testing.T) {
	const middle = 0.5
	now := time.Unix(1_795_244_520, 0)
	earlier := now.Add(-time.Hour)
	timeout := notify.Outcome{Verdict: notify.VerdictRetry, Error: "no answer"}
	broken := notify.Outcome{Verdict: notify.VerdictRetry, StatusCode: 502, Error: "no answer"}
	answered := func(v notify.Verdict, status int) notify.Outcome {
		return notify.Outcome{Verdict: v, StatusCode: status, Error: "not taken"}
	}
	failed := func(failures int) notify.Breaker {
		return notify.Breaker{Failures: failures, LastError: "no answer", LastErrorAt: now}
	}
	opened := func(failures, openings int, since time.Time, pause time.Duration) notify.Breaker {
		b := failed(failures)
		b.Openings, b.OpenedAt, b.Until = openings, since, now.Add(pause)
		return b
	}
	forgiven := notify.Breaker{LastError: "no answer", LastErrorAt: now}
	held := forgiven
	held.Holds, held.HeldSince, held.HeldFor, held.HeldUntil = 1, now, 7*time.Second, now.Add(7*time.Second)
	for name, c := range map[string]struct {
		was     notify.Breaker
		outcome notify.Outcome
		probe   bool
		random  float64
		want    notify.Breaker
	}{
		"closed, delivered":              {notify.Breaker{}, answered(notify.VerdictDelivered, 200), false, middle, notify.Breaker{}},
		"closed, first timeout":          {notify.Breaker{}, timeout, false, middle, failed(1)},
		"closed, 5xx":                    {failed(1), broken, false, middle, failed(2)},
		"closed, an end nobody has seen": {failed(1), notify.Outcome{Error: "no answer"}, false, middle, failed(2)},
		"closed, one before the last":    {failed(3), timeout, false, middle, failed(4)},
		"closed, the last":               {failed(4), timeout, false, middle, opened(5, 1, now, 30*time.Second)},
		"closed, shortest jitter":        {failed(4), timeout, false, 0, opened(5, 1, now, 24*time.Second)},
		"closed, longest jitter":         {failed(4), timeout, false, 1, opened(5, 1, now, 36*time.Second)},
		"closed, delivered after some":   {failed(4), answered(notify.VerdictDelivered, 200), false, middle, forgiven},
		"closed, refused after some":     {failed(4), answered(notify.VerdictRefused, 400), false, middle, forgiven},
		"closed, asked for a pause":      {failed(4), answered(notify.VerdictThrottled, 429), false, middle, held},
		"closed, in maintenance":         {failed(4), answered(notify.VerdictThrottled, 503), false, middle, held},
		"closed, timed out over there":   {failed(4), answered(notify.VerdictRetry, 408), false, middle, forgiven},
		"closed, gone":                   {failed(4), answered(notify.VerdictGone, 410), false, middle, forgiven},
		"open, a latecomer fails":        {opened(5, 1, now, time.Second), timeout, false, middle, opened(6, 1, now, time.Second)},
		"open, a latecomer succeeds":     {opened(5, 1, now, time.Second), answered(notify.VerdictDelivered, 200), false, middle, forgiven},
		"half-open, probe succeeds":      {opened(9, 3, earlier, 0), answered(notify.VerdictDelivered, 200), true, middle, forgiven},
		"half-open, probe is refused":    {opened(9, 3, earlier, 0), answered(notify.VerdictRefused, 422), true, middle, forgiven},
		"half-open, first probe fails":   {opened(5, 1, earlier, 0), timeout, true, middle, opened(6, 2, earlier, time.Minute)},
		"half-open, fourth probe fails":  {opened(8, 4, earlier, 0), broken, true, middle, opened(9, 5, earlier, 8*time.Minute)},
		"half-open, at most ten minutes": {opened(9, 5, earlier, 0), broken, true, middle, opened(10, 6, earlier, 10*time.Minute)},
		"half-open, jitter at the most":  {opened(9, 5, earlier, 0), broken, true, 1, opened(10, 6, earlier, 10*time.Minute)},
		"half-open, for a year":          {opened(99999, 50000, earlier, 0), broken, true, middle, opened(100000, 50001, earlier, 10*time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			e := notify.Evidence{Outcome: c.outcome, Hold: 7 * time.Second, Probe: c.probe, Now: now, Random: c.random}
			if got := notify.DefaultPolicy().Breaker.Next(c.was, e); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestBreakerState(t *testing.T) {
	now := time.Unix(1_795_244_520, 0)
	since := now.Add(-time.Minute)
	hook := func(enabled bool, hold time.Duration) *notify.Webhook {
		return &notify.Webhook{Enabled: enabled, HeldUntil: now.Add(hold)}
	}
	for name, c := range map[string]struct {
		breaker notify.Breaker
		webhook *notify.Webhook
		state   notify.BreakerState
		flow    notify.FlowState
		until   time.Time
	}{
		"closed":            {notify.Breaker{Failures: 4}, hook(true, 0), notify.BreakerClosed, notify.FlowOK, time.Time{}},
		"closed and held":   {notify.Breaker{}, hook(true, time.Second), notify.BreakerClosed, notify.FlowHeld, now.Add(time.Second)},
		"open":              {notify.Breaker{Failures: 5, OpenedAt: since, Until: now.Add(1)}, hook(true, 0), notify.BreakerOpen, notify.FlowOpen, now.Add(1)},
		"open and held":     {notify.Breaker{OpenedAt: since, Until: now.Add(1)}, hook(true, time.Second), notify.BreakerOpen, notify.FlowOpen, now.Add(1)},
		"open and off":      {notify.Breaker{OpenedAt: since, Until: now.Add(1)}, hook(false, time.Second), notify.BreakerOpen, notify.FlowOff, time.Time{}},
		"the pause is over": {notify.Breaker{OpenedAt: since, Until: now}, hook(true, 0), notify.BreakerHalfOpen, notify.FlowOpen, now},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.breaker.State(now); got != c.state {
				t.Errorf("state %v, want %v", got, c.state)
			}
			got := notify.FlowOf(c.webhook, c.breaker, now)
			if got.State != c.flow || !got.Until.Equal(c.until) || got.Failures != c.breaker.Failures {
				t.Errorf("flow %+v, want %s until %v", got, c.flow, c.until)
			}
			if open := c.flow == notify.FlowOpen; open != got.Since.Equal(since) {
				t.Errorf("since %v", got.Since)
			}
		})
	}
}

// TestHoldsGrow has a receiver that asks for a pause of a second each time: the pauses grow, a
// delivery ends that, and an attempt that was under way when a pause began does not prolong it.
func TestHoldsGrow(t *testing.T) {
	now := time.Unix(1_795_244_520, 0)
	p := notify.DefaultPolicy().Breaker
	var b notify.Breaker
	answer := func(v notify.Verdict, hold time.Duration) {
		b = p.Next(b, notify.Evidence{Outcome: notify.Outcome{Verdict: v, StatusCode: 429}, Hold: hold, Now: now})
	}
	var pauses []time.Duration
	for range 14 {
		answer(notify.VerdictThrottled, time.Second)
		answer(notify.VerdictThrottled, time.Second)
		answer(notify.VerdictDelivered, 0)
		pauses = append(pauses, b.HeldUntil.Sub(now))
		now = b.HeldUntil
	}
	for i, pause := range pauses {
		if want := min(time.Second<<i, time.Hour); pause != want {
			t.Errorf("pause %d is %v, want %v", i+1, pause, want)
		}
	}
	// A receiver's own pause is respected, however long.
	if answer(notify.VerdictThrottled, 5*time.Hour); b.HeldUntil.Sub(now) != 5*time.Hour || b.Holds != 15 {
		t.Errorf("held for %v, want 5h", b.HeldUntil.Sub(now))
	}
	if want := time.Unix(1_795_244_520, 0); !b.HeldSince.Equal(want) {
		t.Errorf("held since %v, want %v", b.HeldSince, want)
	}
	// The receiver asked for no pause within an hour: what follows does not continue the series.
	now = b.HeldUntil.Add(time.Hour + 1)
	if answer(notify.VerdictThrottled, time.Second); b.HeldUntil.Sub(now) != time.Second || b.Holds != 1 || !b.HeldSince.Equal(now) {
		t.Errorf("held for %v since %v, want a second from now on", b.HeldUntil.Sub(now), b.HeldSince)
	}
	now = b.HeldUntil
	if answer(notify.VerdictDelivered, 0); b.Holds != 0 || !b.HeldSince.IsZero() {
		t.Errorf("%d holds after a delivery, want none", b.Holds)
	}
}
