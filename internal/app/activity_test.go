package app_test

import (
	"testing"
	"time"

	"tocsin/api"
	"tocsin/notify"
)

func TestActivityCountsTheLastHourByMinuteAndRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inbox := w.db.Inbox()
	if nothing, err := inbox.Raised(t.Context(), tenant); err != nil || len(nothing.Rules) != 0 || !nothing.Complete || time.Since(nothing.From) < 59*time.Minute {
		t.Fatalf("before there are alerts: %+v, %v", nothing, err)
	}
	// The exchanges of two hours, a second apart; one of the hours is counted.
	rule := w.rule()
	w.plenty(rule, 2*60*60)
	w.exec(`update alert set health = true, execution_id = null where title = 'title 7199'`)
	raised, err := inbox.Raised(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	minutes := raised.Rules[rule.ID]
	if len(raised.Rules) != 1 || minutes == nil {
		t.Fatalf("rules %+v", raised.Rules)
	}
	for i, n := range minutes[:58] {
		if n != 60 {
			t.Errorf("minute %d has %d alerts", i, n)
		}
	}
	var last int64
	for _, n := range minutes[58:] {
		last += n
	}
	// The present minute is under way, and one alert is about the rule's health. Some seconds pass
	// before the request.
	if last < 40 || last > 119 {
		t.Errorf("the last two minutes have %d alerts", last)
	}
	if other, err := inbox.Raised(t.Context(), "another"); err != nil || len(other.Rules) != 0 {
		t.Errorf("another tenant sees %+v, %v", other, err)
	}
}

func TestTheDayOfARuleIsCountedByQuarterHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inbox := w.db.Inbox()
	rule := w.rule()
	if nothing, err := inbox.RaisedBy(t.Context(), tenant, rule.ID); err != nil || !nothing.Complete || nothing.Steps != [api.DaySteps]int64{} ||
		time.Since(nothing.From) < 23*time.Hour {
		t.Fatalf("before there are alerts: %+v, %v", nothing, err)
	}
	w.plenty(rule, 2*60*60)
	day, err := inbox.RaisedBy(t.Context(), tenant, rule.ID)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for i, n := range day.Steps {
		if i > api.DaySteps-8 && i < api.DaySteps-1 && n != 900 {
			t.Errorf("step %d has %d alerts", i, n)
		}
		total += n
	}
	if total != 2*60*60 {
		t.Errorf("%d alerts in all", total)
	}
	if other, err := inbox.RaisedBy(t.Context(), "another", rule.ID); err != nil || other.Steps != [api.DaySteps]int64{} {
		t.Errorf("another tenant sees %+v, %v", other, err)
	}
}

func TestActivityOfAStormIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	w.plentyApart(rule, 100_001, 30*time.Millisecond)
	begun := time.Now()
	raised, err := w.db.Inbox().Raised(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("100,001 alerts in %v", time.Since(begun))
	var total int64
	for _, n := range raised.Rules[rule.ID] {
		total += n
	}
	if raised.Complete || total != 100_000 {
		t.Errorf("complete %t with %d alerts, want 100000 of more", raised.Complete, total)
	}
}

func TestListShowsHowAttemptsEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.raiseFor(w.webhook("ops"), "a")
	wantVerdicts := func(when string, want ...notify.Verdict) (first api.NotificationRecord) {
		t.Helper()
		list, _, err := w.db.Record(nil).List(t.Context(), tenant, api.NotificationQuery{Limit: 10})
		if err != nil || len(list) != 1 || len(list[0].History) != len(want) || list[0].Attempts != len(want) {
			t.Fatalf("%s: %+v, %v", when, list, err)
		}
		one, err := w.db.Record(nil).Get(t.Context(), tenant, list[0].ID)
		title := w.column(`select title from alert`)[0]
		if err != nil || list[0].AlertTitle != title || one.AlertTitle != title {
			t.Errorf("%s: named the alert %q and %q, %v, want %q", when, list[0].AlertTitle, one.AlertTitle, err, title)
		}
		for i, attempt := range list[0].History {
			if attempt.Outcome.Verdict != want[i] || attempt.Number != i+1 {
				t.Errorf("%s: attempt %d is %+v, want %s", when, i, attempt, want[i])
			}
		}
		return list[0]
	}
	wantVerdicts("before the first attempt")
	w.claim()
	var unknown notify.Verdict
	if n := wantVerdicts("under way", unknown); !n.History[0].UnderWay {
		t.Error("the attempt in progress is not shown as such")
	}
	w.exec(`update outbox set due_at = now(), ready_at = now()`) // its lease has expired
	second := w.claim()[0]
	if n := wantVerdicts("after a crash", unknown, unknown); n.History[0].UnderWay || !n.History[1].UnderWay {
		t.Errorf("after a crash: %+v", n.History)
	}
	if err := w.settle(settlement(&second, notify.VerdictDelivered, notify.Delivered)); err != nil {
		t.Fatal(err)
	}
	wantVerdicts("settled", unknown, notify.VerdictDelivered)
}
