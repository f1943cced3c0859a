package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/preview"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// replay lets a rule evaluate a range again.
func (w *world) replay(r api.ReplayRequest) api.Replay {
	w.t.Helper()
	begun, err := w.db.Rules().StartReplay(w.t.Context(), tenant, "somebody", r)
	if err != nil {
		w.t.Fatal(err)
	}
	return begun
}

// replayedInTheEnd makes passes until the newest replay of a rule has ended.
func (w *world) replayedInTheEnd(e *evaluator.Evaluator, rule uuid.UUID) api.Replay {
	w.t.Helper()
	for range 1000 {
		if _, err := w.tickWith(e); err != nil {
			w.t.Fatal(err)
		}
		list, err := w.db.Rules().Replays(w.t.Context(), tenant, rule, 1)
		if err != nil {
			w.t.Fatal(err)
		}
		if list[0].EndedAt != nil {
			return list[0]
		}
	}
	w.t.Fatal("after 1000 passes the replay goes on")
	return api.Replay{}
}

// TestReplayIsWhatItsPreviewShows replays ranges of random history, some of which has alerts, with
// rules with all kinds of filters.
func TestReplayIsWhatItsPreviewShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	now := time.Now()
	w.history(random, 3000, now.Add(-30*time.Hour), now.Add(-26*time.Hour))
	hook := w.webhook("hook")
	e := w.newEvaluator(evaluator.Options{PageSize: 20})
	longest := int64(60_000)
	for i, d := range []rules.Definition{
		{},
		{Scope: rules.Scope{Applications: []string{"app-1"}, NotRoutes: []string{"route-1*"}}},
		{Filter: rules.Filter{Statuses: []rules.Status{rules.Completed, rules.Failed}, MinDurationMS: &longest}},
		{Filter: rules.Filter{NotErrorTypes: []string{"Timeout"}, ErrorMessageMatches: "7$"}},
	} {
		d.Name, d.WebhookIDs = fmt.Sprint("rule ", i), []uuid.UUID{hook}
		rule := w.ruleOf(d)
		half := api.ReplayRequest{RuleID: rule.ID, FromNS: now.Add(-29 * time.Hour).UnixNano(), ToNS: now.Add(-28 * time.Hour).UnixNano(), Messages: ruleset.ReplayEach}
		w.replay(half)
		first := w.replayedInTheEnd(e, rule.ID)
		whole := half
		whole.ToNS, whole.Messages = now.Add(-27*time.Hour).UnixNano()+int64(i), ruleset.ReplayNone
		previewed, err := w.previewer(func(p *preview.Previewer) { p.PageSize = 100 + random.IntN(900) }).Replay(t.Context(), preview.ReplayRequest{
			Request: preview.Request{TenantID: tenant, Definition: rule.Definition, RuleID: rule.ID, Version: rule.Version},
			FromNS:  whole.FromNS, ToNS: whole.ToNS,
			Unalerted: func(ctx context.Context, keys []string) ([]string, error) {
				return w.db.Rules().Unalerted(ctx, rule.ID, keys)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range previewed.Newest {
			// What the first replay raised is not to be raised.
			if first := a.Exchange.StartTimeNS; first >= half.FromNS && first < half.ToNS || first < whole.FromNS || first >= whole.ToNS {
				t.Errorf("rule %d: the preview names %s, which has an alert or is out of the range", i, a.Exchange.ExecutionID)
			}
		}
		w.replay(whole)
		second := w.replayedInTheEnd(e, rule.ID)
		raised := w.column(`select count(*)::text from alert where rule_id = $1`, rule.ID)[0]
		if first.State != api.ReplayDone || second.State != api.ReplayDone || second.AtNS != whole.ToNS {
			t.Errorf("rule %d: %+v and %+v", i, first, second)
		}
		if first.Alerts == 0 || second.Alerts == 0 || second.Matched != previewed.Alerts || second.Alerts != previewed.Alerts-previewed.Existing ||
			first.Alerts != previewed.Existing || raised != fmt.Sprint(previewed.Alerts) || len(previewed.Newest) != int(min(second.Alerts, 20)) {
			t.Errorf("rule %d: the preview shows %d with %d alerts and %d new ones, the replays of %+v and %+v; there are %s alerts",
				i, previewed.Alerts, previewed.Existing, len(previewed.Newest), first, second, raised)
		}
		w.wantColumn("messages of the first", `select count(*)::text from notification where rule_id = '`+rule.ID.String()+`'`, fmt.Sprint(first.Alerts))
		if i == 0 {
			w.wantColumn("audit log", `select action || ' ' || (after ->> 'state') from audit where object_kind = 'replay' and object_id = '`+first.ID.String()+`' order by audit_id`,
				"create RUNNING", "update DONE")
		}
	}
}

// TestReplaySurvivesSIGKILL kills the replica during a commit of a replay, and after one.
func TestReplaySurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule(w.webhook("ops"), w.webhook("more"))
	w.tick()
	const n = 300
	from := w.ch.Now(t) - 40*time.Hour.Nanoseconds()
	rows := make([]rules.Exchange, n)
	for i := range rows {
		start := from + int64(i)*time.Second.Nanoseconds()
		rows[i] = rules.Exchange{TenantID: tenant, StartTimeNS: start, EndTimeNS: &start, ExecutionID: fmt.Sprintf("past %03d", i), Status: rules.Failed}
	}
	w.ch.Insert(t, rows...)
	middle := cursor.Position{StartTimeNS: from + 100*time.Second.Nanoseconds()}.String()
	goOn := w.pauseInside(`create trigger pause before update on replay for each row when (old.position > '` + middle + `') execute function pause()`)
	first := w.serve("TOCSIN_PAGE_SIZE=1")
	begun := w.replay(api.ReplayRequest{RuleID: rule.ID, FromNS: from, ToNS: from + time.Hour.Nanoseconds(), Messages: ruleset.ReplayDigest})
	w.untilInside()
	w.wantColumn("part of it is raised", `select (count(*) between 1 and 250)::text from alert`, "true")
	w.wantColumn("digests wait", `select (ready_at is null and after_id = (select replay_id from replay))::text from outbox`, "true", "true")
	first.kill()
	goOn()
	second := w.serve("TOCSIN_PAGE_SIZE=1")
	w.until("the replay goes on", func() bool {
		return w.column(`select (alerts > 150)::text from replay`)[0] == "true"
	})
	second.kill()
	w.serve()
	w.until("it is done", func() bool { return w.column(`select state from replay`)[0] == "DONE" })
	w.wantColumn("alerts", `select count(*) || ' ' || count(distinct execution_id) from alert`, fmt.Sprintf("%[1]d %[1]d", n))
	w.wantColumn("progress", `select matched || ' ' || alerts from replay`, fmt.Sprintf("%[1]d %[1]d", n))
	w.wantColumn("digests", `select d.size || ' ' || count(*) from digest d join digest_member m on m.digest_id = d.notification_id group by d.notification_id, d.size`,
		fmt.Sprintf("%[1]d %[1]d", n), fmt.Sprintf("%[1]d %[1]d", n))
	w.until("its digests are delivered, and nothing else", func() bool {
		return strings.Join(w.column(settlements), ", ") == "DELIVERED 2"
	})
	if begun.State != api.ReplayRunning || len(w.column(`select 1::text from outbox`)) != 0 {
		t.Errorf("begun %+v", begun)
	}
}

// TestReplayIsRefused requests what cannot be replayed.
func TestReplayIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := w.rule()
	now := time.Now().UnixNano()
	r := api.ReplayRequest{RuleID: rule.ID, FromNS: now - int64(time.Hour), ToNS: now, Messages: ruleset.ReplayNone}
	refused := func(what string, kind fault.Kind, change func(r *api.ReplayRequest)) {
		t.Helper()
		asked := r
		change(&asked)
		if _, err := w.db.Rules().StartReplay(t.Context(), tenant, "somebody", asked); fault.KindOf(err) != kind {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("the future", fault.Invalid, func(r *api.ReplayRequest) { r.ToNS += int64(time.Hour) })
	refused("a rule that is not there", fault.NotFound, func(r *api.ReplayRequest) { r.RuleID = uuid.New() })
	windowed, err := w.db.Rules().Create(t.Context(), tenant, rules.Definition{
		Name: "counts", Enabled: true, FireMode: rules.CountInWindow, Severity: rules.Info, Threshold: 1, WindowSeconds: 60, IntervalSeconds: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	refused("a window rule", fault.Conflict, func(r *api.ReplayRequest) { r.RuleID = windowed.ID })
	w.exec(`update rule_state set swept_before_ns = $1 where rule_id = $2`, r.FromNS+1, rule.ID)
	refused("the time of which retention deleted alerts", fault.Invalid, func(*api.ReplayRequest) {})
	if floor, err := w.db.Rules().ReplayFloor(t.Context(), tenant, rule.ID); err != nil || floor.UnixNano() != r.FromNS+1 {
		t.Errorf("floor %v, %v", floor, err)
	}
	r.FromNS++
	// Several requests at once.
	var asked sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		asked.Go(func() { _, errs[i] = w.db.Rules().StartReplay(t.Context(), tenant, "somebody", r) })
	}
	asked.Wait()
	begun := 0
	for _, err := range errs {
		switch {
		case err == nil:
			begun++
		case fault.KindOf(err) != fault.Conflict:
			t.Error(err)
		}
	}
	if begun != 1 {
		t.Errorf("%d replays of one rule began", begun)
	}
	if err := w.db.Rules().Delete(t.Context(), tenant, rule.ID); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("the replay of a deleted rule", `select state || ': ' || problem from replay`, "STOPPED: The rule was deleted.")
	refused("a rule that was deleted", fault.NotFound, func(*api.ReplayRequest) {})
	off := w.ruleOf(rules.Definition{Name: "off"})
	if _, err := w.db.Rules().SetEnabled(t.Context(), tenant, off.ID, false); err != nil {
		t.Fatal(err)
	}
	refused("a disabled rule", fault.Conflict, func(r *api.ReplayRequest) { r.RuleID = off.ID })
}
