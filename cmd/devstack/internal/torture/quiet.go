//go:build unix

package torture

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// The webhook [quiet] has quiet hours most of the time. A person edits them while exchanges come: they end by their
// clock, where a minute ends in time, or because he deletes them. In a run of less than a minute they end by their clock
// only once they have held enough: what its tests want to see must not depend on the time of day. What is not critical and written in between waits, and
// arrives like everything else; what is critical does not wait.
const quiet = "quiet"

func (f Form) hasQuietHours() bool { return f == Plain || f == Receivers }

// toQuiet binds the window rules, and whatever notifies the webhook b, to the one with quiet hours, too.
func (p *plan) toQuiet() {
	p.bind([]string{quiet}, func(r *rule) bool { return r.counts() || slices.Contains(r.hooks, "b") })
}

// severity is that of a rule's alerts: of those that quiet hours may hold, a third is critical all the same. What is routed
// is not.
func (r *rule) severity() string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(r.name))
	if r.routed || slices.Contains(r.hooks, quiet) && hash.Sum32()%3 > 0 {
		return "WARNING"
	}
	return "CRITICAL"
}

// hours are quiet hours as they were edited: they held when they had begun for sure, until they may have ended.
type hours struct{ began, ended span }

// quietUntil are hours that have begun and end at an instant, to the minute.
func quietUntil(end time.Time) []any {
	return []any{map[string]any{
		"timeZone": "UTC", "weekdays": []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"},
		"from": end.UTC().Add(-3 * time.Hour).Format("15:04"), "to": end.UTC().Format("15:04"),
	}}
}

// beginQuiet makes the webhook, with quiet hours that last.
func (o *operator) beginQuiet(ctx context.Context, timeout time.Duration) error {
	if !o.w.options.Form.hasQuietHours() {
		return nil
	}
	o.quiet = map[string]any{"name": quiet, "kind": "generic", "url": o.w.receiver.url(quiet), "timeoutSeconds": timeout.Seconds(), "maxConcurrent": 16}
	o.quiet["quietHours"] = quietUntil(time.Now().Add(2 * time.Hour))
	from := time.Now().UnixNano()
	hook, err := o.make(ctx, "/webhooks", quiet, o.quiet)
	if err != nil {
		return fmt.Errorf("make webhook %s: %w", quiet, err)
	}
	o.hooks[quiet], o.quietVersion = hook.ID, hook.Version
	o.noteQuiet(hours{began: span{from, time.Now().UnixNano()}})
	delete(o.quiet, "kind")
	return nil
}

func (o *operator) noteQuiet(h hours) {
	o.w.truth.mu.Lock()
	defer o.w.truth.mu.Unlock()
	o.w.truth.quiet = append(o.w.truth.quiet, h)
}

// keepQuiet edits the quiet hours. When it ends, there are none.
func (o *operator) keepQuiet(ctx context.Context) error {
	length := o.w.options.Length
	at := func(part float64) bool {
		return pause(ctx.Done(), time.Duration(part*float64(length))-o.w.elapsed())
	}
	if !at(0.3) {
		return ctx.Err()
	}
	if err := o.editQuiet(ctx, nil, time.Time{}); err != nil {
		return err
	}
	if !at(0.4) {
		return ctx.Err()
	}
	if end := minuteEnd(); length >= time.Minute && end.After(time.Now().Add(2*time.Second)) && end.Before(o.w.began.Add(length*9/10)) {
		if err := o.editQuiet(ctx, quietUntil(end), end); err != nil {
			return err
		}
		if !at(1) {
			return ctx.Err()
		}
		return o.editQuiet(ctx, nil, time.Time{})
	}
	end := minuteEnd().Add(2 * time.Hour)
	if err := o.editQuiet(ctx, quietUntil(end), end); err != nil {
		return err
	}
	began := time.Now()
	if !at(1) {
		return ctx.Err()
	}
	o.awaitHeld(ctx, began)
	if end := minuteEnd(); end.After(time.Now().Add(2*time.Second)) && end.Before(time.Now().Add(10*time.Second)) {
		if err := o.editQuiet(ctx, quietUntil(end), end); err != nil {
			return err
		}
		if !pause(ctx.Done(), time.Until(end)) {
			return ctx.Err()
		}
	}
	return o.editQuiet(ctx, nil, time.Time{})
}

// minuteEnd is when the present minute ends.
func minuteEnd() time.Time { return time.Now().Truncate(time.Minute).Add(time.Minute) }

// enoughHeld is how many messages the last quiet hours hold.
const enoughHeld = 50

// awaitHeld waits until the hours that began have held enough to mean something, messages of routed alerts among it if there
// are any, and something critical has passed: a busy machine may hardly have evaluated anything by then. A run that is too
// small for window rules holds what it happens to hold.
func (o *operator) awaitHeld(ctx context.Context, began time.Time) {
	if o.w.options.Exchanges < enoughToCount {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestSilence*o.w.options.Length-o.w.elapsed())
	defer cancel()
	isRouted := o.w.truth.find(ruleRouted) != nil
	o.w.until(ctx, func(ctx context.Context, conn *pgx.Conn) (enough bool, err error) {
		err = conn.QueryRow(ctx, `SELECT count(*) >= $1 AND (NOT $2 OR bool_or(rule.name = $3))
				AND EXISTS (SELECT FROM settlement JOIN notification n USING (notification_id) JOIN alert a USING (alert_id) JOIN webhook w ON w.webhook_id = n.webhook_id
					WHERE w.name = $4 AND a.severity = 'CRITICAL' AND settlement.status = 'DELIVERED' AND n.created_at > $5)
			FROM outbox JOIN notification n USING (notification_id) JOIN rule USING (rule_id) WHERE quiet_until IS NOT NULL AND n.created_at > $5`,
			enoughHeld, isRouted, ruleRouted, quiet, began).Scan(&enough)
		return enough, err
	})
}

// editQuiet replaces the quiet hours by ones that end by themselves at an instant, or by none.
func (o *operator) editQuiet(ctx context.Context, list []any, end time.Time) error {
	if delete(o.quiet, "quietHours"); list != nil {
		o.quiet["quietHours"] = list
	}
	from, path := time.Now().UnixNano(), "/webhooks/"+o.hooks[quiet]
	edited, err := o.call(ctx, http.MethodPut, path, strconv.Quote(strconv.FormatInt(o.quietVersion, 10)), o.quiet)
	if isStale(err) {
		// Nobody else edits: an attempt whose answer was lost has done it.
		edited, err = o.call(ctx, http.MethodGet, path, "", nil)
	}
	if err != nil {
		return fmt.Errorf("edit quiet hours: %w", err)
	}
	if edited.Version != o.quietVersion+1 {
		return fmt.Errorf("edit quiet hours: version %d followed %d", edited.Version, o.quietVersion)
	}
	o.quietVersion = edited.Version
	when := span{from, time.Now().UnixNano()}
	o.w.logf("operator: quiet hours %v", list)
	o.w.truth.mu.Lock()
	defer o.w.truth.mu.Unlock()
	until := span{end.UnixNano(), end.UnixNano()}
	if last := &o.w.truth.quiet[len(o.w.truth.quiet)-1]; last.ended == (span{}) || last.ended.fromNS > when.fromNS {
		last.ended = when
		if list != nil {
			// It stays quiet, so that what they held waits for the new end.
			last.ended = until
		}
	}
	if list != nil {
		o.w.truth.quiet = append(o.w.truth.quiet, hours{when, until})
	}
	return nil
}

// heldAt returns the quiet hours within which an instant lies for sure; nil where it lies in none.
func (t *truth) heldAt(ns int64) *hours {
	at := slices.IndexFunc(t.quiet, func(h hours) bool { return h.began.toNS < ns && ns < h.ended.fromNS })
	if at < 0 {
		return nil
	}
	return &t.quiet[at]
}

// checkQuiet holds that what quiet hours must have held did not arrive within them. That it arrived, and once, is
// demanded of all messages.
func (w *world) checkQuiet(report *Report, t *tables) {
	if !w.options.Form.hasQuietHours() {
		return
	}
	isRouted := map[string]bool{}
	for _, l := range w.truth.lives {
		isRouted[l.id] = l.rule.routed
	}
	alerts := map[string]*alert{}
	for i := range t.alerts {
		alerts[t.alerts[i].ID] = &t.alerts[i]
	}
	came := map[string]time.Time{}
	for _, r := range w.receiver.requests() {
		if first, known := came[r.webhookID]; !known || r.at.Before(first) {
			came[r.webhookID] = r.at
		}
	}
	for _, n := range t.notifications {
		a := alerts[n.AlertID]
		held := w.truth.heldAt(n.WrittenAt.UnixNano())
		// What waited together may arrive in a digest.
		first, arrived := came[cmp.Or(n.DigestID, n.ID)]
		if n.Hook != quiet || a == nil || held == nil || !arrived {
			continue
		}
		early := first.UnixNano() < held.ended.fromNS
		switch {
		case a.Severity == "CRITICAL" && early:
			report.Passed++
		case a.Severity == "CRITICAL":
		case early:
			report.find(notHeld, "%s of alert %s, written at %v, came at %v, before %v, when its quiet hours ended", n.Reason, a.ID, n.WrittenAt, first, time.Unix(0, held.ended.fromNS))
		default:
			report.Held++
			if isRouted[n.RuleID] {
				report.RoutedHeld++
			}
		}
	}
}
