package notify_test

import (
	"testing"
	"time"

	"tocsin/notify"
)

func TestDecide(t *testing.T) {
	retry := notify.Outcome{Verdict: notify.VerdictRetry}
	unsent := notify.Outcome{Verdict: notify.VerdictRetry, NothingSent: true}
	const middle, span = 0.5, 1*time.Minute + 5*time.Minute + 30*time.Minute + 26*time.Hour
	for name, c := range map[string]struct {
		outcome          notify.Outcome
		attempt, counted int
		random           float64
		want             notify.Decision
		waited           time.Duration
	}{
		"delivered":                   {notify.Outcome{Verdict: notify.VerdictDelivered}, 1, 0, middle, notify.Decision{Status: notify.Delivered, Counts: true}, 0},
		"refused":                     {notify.Outcome{Verdict: notify.VerdictRefused}, 1, 0, middle, notify.Decision{Status: notify.Failed, Counts: true}, 0},
		"gone":                        {notify.Outcome{Verdict: notify.VerdictGone}, 3, 2, middle, notify.Decision{Status: notify.Retrying, Disable: true}, 0},
		"first retry":                 {retry, 1, 0, middle, notify.Decision{Status: notify.Retrying, Counts: true, Wait: time.Minute}, 0},
		"second retry":                {retry, 2, 1, middle, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 5 * time.Minute}, 0},
		"fifth retry":                 {retry, 6, 4, middle, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 24 * time.Hour}, 0},
		"after the schedule":          {retry, 7, 5, middle, notify.Decision{Status: notify.Exhausted, Counts: true}, 0},
		"shortest jitter":             {retry, 1, 0, 0, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 48 * time.Second}, 0},
		"longest jitter":              {retry, 1, 0, 1, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 72 * time.Second}, 0},
		"nothing sent, first":         {unsent, 1, 0, middle, notify.Decision{Status: notify.Retrying}, 0},
		"nothing sent, second":        {unsent, 2, 0, middle, notify.Decision{Status: notify.Retrying, Counts: true, Wait: time.Minute}, 0},
		"nothing sent, exhausted":     {unsent, 7, 5, middle, notify.Decision{Status: notify.Exhausted, Counts: true}, 0},
		"not made":                    {notify.Outcome{Verdict: notify.VerdictNotMade, NothingSent: true}, 7, 5, middle, notify.Decision{Status: notify.Retrying, Wait: time.Second}, 0},
		"throttled":                   {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: 7 * time.Second}, 2, 1, middle, notify.Decision{Status: notify.Retrying, Wait: 7 * time.Second, Hold: 7 * time.Second}, 0},
		"throttled for no time":       {notify.Outcome{Verdict: notify.VerdictThrottled}, 1, 0, middle, notify.Decision{Status: notify.Retrying, Wait: 30 * time.Second, Hold: 30 * time.Second}, 0},
		"throttled for hours":         {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: 5 * time.Hour}, 1, 0, middle, notify.Decision{Status: notify.Retrying, Wait: 5 * time.Hour, Hold: 5 * time.Hour}, 0},
		"throttled for too long":      {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: 1000 * time.Hour}, 1, 0, middle, notify.Decision{Status: notify.Retrying, Wait: 24 * time.Hour, Hold: 24 * time.Hour}, 0},
		"throttled when it is old":    {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: time.Second}, 9, 5, middle, notify.Decision{Status: notify.Retrying, Wait: time.Second, Hold: time.Second}, 100 * span},
		"throttled again and again":   {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: time.Second}, 106, 5, middle, notify.Decision{Status: notify.Exhausted, Hold: time.Second}, span + 1},
		"throttled often, not long":   {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: time.Second}, 999, 5, middle, notify.Decision{Status: notify.Retrying, Wait: time.Second, Hold: time.Second}, span},
		"throttled long, not often":   {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: time.Second}, 105, 5, middle, notify.Decision{Status: notify.Retrying, Wait: time.Second, Hold: time.Second}, span + 1},
		"an end that nobody has seen": {notify.Outcome{}, 1, 0, middle, notify.Decision{Status: notify.Retrying, Counts: true, Wait: time.Minute}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := notify.DefaultPolicy().Decide(c.outcome, &notify.Delivery{Attempt: 100 + c.attempt, Try: c.attempt, CountedAttempts: c.counted, Waited: c.waited}, c.random); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestReceiversHaveSchedulesOfTheirOwn checks the schedules and the age after which nothing is
// attempted any more.
func TestReceiversHaveSchedulesOfTheirOwn(t *testing.T) {
	retry, throttled := notify.Outcome{Verdict: notify.VerdictRetry}, notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: time.Minute}
	own := notify.Schedule{Pauses: []time.Duration{30 * time.Second, 2 * time.Minute}, MaxAge: time.Hour}
	for name, c := range map[string]struct {
		own     notify.Schedule
		outcome notify.Outcome
		counted int
		waited  time.Duration
		want    notify.Decision
	}{
		"first pause":             {own, retry, 0, 0, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 30 * time.Second}},
		"last pause":              {own, retry, 1, 0, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 2 * time.Minute}},
		"after the last":          {own, retry, 2, 0, notify.Decision{Status: notify.Exhausted, Counts: true}},
		"just young enough":       {own, retry, 1, 58 * time.Minute, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 2 * time.Minute}},
		"too old by then":         {own, retry, 1, 58*time.Minute + 1, notify.Decision{Status: notify.Exhausted, Counts: true}},
		"a pause beyond the age":  {own, throttled, 0, time.Hour, notify.Decision{Status: notify.Exhausted, Hold: time.Minute}},
		"delivered though old":    {own, notify.Outcome{Verdict: notify.VerdictDelivered}, 0, 9 * time.Hour, notify.Decision{Status: notify.Delivered, Counts: true}},
		"gone waits for a person": {own, notify.Outcome{Verdict: notify.VerdictGone}, 0, 9 * time.Hour, notify.Decision{Status: notify.Retrying, Disable: true}},
		"not made is no attempt":  {own, notify.Outcome{Verdict: notify.VerdictNotMade}, 0, 9 * time.Hour, notify.Decision{Status: notify.Retrying, Wait: time.Second}},
		"an age alone":            {notify.Schedule{MaxAge: time.Hour}, retry, 1, 0, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 5 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &notify.Delivery{Reason: notify.ReasonFired, Attempt: c.counted + 1, CountedAttempts: c.counted, Waited: c.waited}
			if got := notify.DefaultPolicy().With(c.own).Decide(c.outcome, d, 0.5); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestEndOfAnAlertIsSentHoweverLate checks that a receiver that keeps something open for an alert is
// notified of its end after the maximum age, which holds for a reminder.
func TestEndOfAnAlertIsSentHoweverLate(t *testing.T) {
	own := notify.Schedule{MaxAge: time.Hour, KeepsState: true}
	for reason, want := range map[notify.Reason]notify.Status{notify.ReasonResolved: notify.Retrying, notify.ReasonReminder: notify.Exhausted} {
		d := &notify.Delivery{Reason: reason, Attempt: 1, Waited: 9 * time.Hour}
		if got := notify.DefaultPolicy().With(own).Decide(notify.Outcome{Verdict: notify.VerdictRetry}, d, 0.5); got.Status != want {
			t.Errorf("%s ends as %s, want %s", reason, got.Status, want)
		}
	}
}

func TestVerdictsReadBack(t *testing.T) {
	for v := notify.VerdictDelivered; v <= notify.VerdictNotMade; v++ {
		if got := notify.ParseVerdict(v.String()); got != v {
			t.Errorf("ParseVerdict(%q) = %v", v.String(), got)
		}
	}
	if got := notify.ParseVerdict("nonsense"); got != notify.VerdictUnknown {
		t.Errorf("nonsense is %v", got)
	}
}

func TestPolicyValidate(t *testing.T) {
	for name, spoil := range map[string]func(*notify.Policy){
		"pause of nothing": func(p *notify.Policy) { p.Schedule = []time.Duration{time.Second, 0} },
		"jitter above one": func(p *notify.Policy) { p.Jitter = 1.1 },
		"no hold":          func(p *notify.Policy) { p.DefaultHold = 0 },
		"hold above most":  func(p *notify.Policy) { p.MaxHold = time.Second },
		"no threshold":     func(p *notify.Policy) { p.Breaker.Threshold = 0 },
		"no breaker pause": func(p *notify.Policy) { p.Breaker.Pause = 0 },
		"pause above most": func(p *notify.Policy) { p.Breaker.MaxPause = time.Second },
		"breaker jitter":   func(p *notify.Policy) { p.Breaker.Jitter = -0.1 },
	} {
		p := notify.DefaultPolicy()
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		spoil(&p)
		if err := p.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
