package notify_test

import (
	"testing"
	"time"

	"tocsin/notify"
)

func TestDecide(t *testing.T) {
	retry := notify.Outcome{Verdict: notify.VerdictRetry}
	unsent := notify.Outcome{Verdict: notify.VerdictRetry, NothingSent: true}
	const middle = 0.5
	for name, c := range map[string]struct {
		outcome          notify.Outcome
		attempt, counted int
		random           float64
		want             notify.Decision
	}{
		"delivered":                   {notify.Outcome{Verdict: notify.VerdictDelivered}, 1, 0, middle, notify.Decision{Status: notify.Delivered, Counts: true}},
		"refused":                     {notify.Outcome{Verdict: notify.VerdictRefused}, 1, 0, middle, notify.Decision{Status: notify.Failed, Counts: true}},
		"gone":                        {notify.Outcome{Verdict: notify.VerdictGone}, 3, 2, middle, notify.Decision{Status: notify.Failed, Counts: true, Disable: true}},
		"first retry":                 {retry, 1, 0, middle, notify.Decision{Status: notify.Retrying, Counts: true, Wait: time.Minute}},
		"second retry":                {retry, 2, 1, middle, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 5 * time.Minute}},
		"fifth retry":                 {retry, 6, 4, middle, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 24 * time.Hour}},
		"after the schedule":          {retry, 7, 5, middle, notify.Decision{Status: notify.Exhausted, Counts: true}},
		"shortest jitter":             {retry, 1, 0, 0, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 48 * time.Second}},
		"longest jitter":              {retry, 1, 0, 1, notify.Decision{Status: notify.Retrying, Counts: true, Wait: 72 * time.Second}},
		"nothing sent, first":         {unsent, 1, 0, middle, notify.Decision{Status: notify.Retrying}},
		"nothing sent, second":        {unsent, 2, 0, middle, notify.Decision{Status: notify.Retrying, Counts: true, Wait: time.Minute}},
		"nothing sent, exhausted":     {unsent, 7, 5, middle, notify.Decision{Status: notify.Exhausted, Counts: true}},
		"not made":                    {notify.Outcome{Verdict: notify.VerdictRetry, NothingSent: true, Unmade: true}, 7, 5, middle, notify.Decision{Status: notify.Retrying, Wait: time.Second}},
		"throttled":                   {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: 7 * time.Second}, 2, 1, middle, notify.Decision{Status: notify.Retrying, Wait: 7 * time.Second, Hold: 7 * time.Second}},
		"throttled for no time":       {notify.Outcome{Verdict: notify.VerdictThrottled}, 1, 0, middle, notify.Decision{Status: notify.Retrying, Wait: 30 * time.Second, Hold: 30 * time.Second}},
		"throttled for too long":      {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: 1000 * time.Hour}, 1, 0, middle, notify.Decision{Status: notify.Retrying, Wait: time.Hour, Hold: time.Hour}},
		"throttled at the very end":   {notify.Outcome{Verdict: notify.VerdictThrottled, RetryAfter: time.Second}, 9, 5, middle, notify.Decision{Status: notify.Retrying, Wait: time.Second, Hold: time.Second}},
		"an end that nobody has seen": {notify.Outcome{}, 1, 0, middle, notify.Decision{Status: notify.Retrying, Counts: true, Wait: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := notify.DefaultPolicy().Decide(c.outcome, c.attempt, c.counted, c.random); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestVerdictsReadBack(t *testing.T) {
	for v := notify.VerdictDelivered; v <= notify.VerdictGone; v++ {
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
