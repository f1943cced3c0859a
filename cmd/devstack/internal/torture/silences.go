//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// In the plain form a rule of its own, [ruleRouted], lets a routing policy decide whom its alerts notify. One of its routes leads to the
// webhook with quiet hours. A person makes a silence about this rule and [ruleOrders] while exchanges come, and ends it. Then each
// webhook gets one digest, which lists what was suppressed for it.

// hasPolicy says whether a person makes silences and a routing policy.
func (f Form) hasPolicy() bool { return f == Plain }

// ruleRouted is the rule that uses the routing policy.
const ruleRouted = "routed"

func routedRule() rule {
	return rule{name: ruleRouted, routed: true, lookBackSeconds: hour, intervalSeconds: 1, condition: condition{errorTypes: []string{"TimeoutException"}}}
}

// beginPolicy stores the routing policy, before there is a rule that uses it.
func (o *operator) beginPolicy(ctx context.Context) error {
	if !o.w.options.Form.hasPolicy() {
		return nil
	}
	ids := func(names ...string) []string {
		list := []string{}
		for _, name := range names {
			list = append(list, o.hooks[name])
		}
		return list
	}
	route := func(name string, scope map[string]any, continues bool, webhooks ...string) map[string]any {
		return map[string]any{"name": name, "match": map[string]any{"scope": scope}, "continue": continues, "webhookIds": ids(webhooks...)}
	}
	orders := route("orders", map[string]any{"routes": []string{"order*"}}, false, "a", "c")
	if steps := o.escalation(); steps != nil {
		orders["escalation"] = steps
	}
	policy := map[string]any{"defaultWebhookIds": ids("b"), "routes": []any{
		route("tests", map[string]any{"environments": []string{"test"}}, true, "a", quiet),
		orders,
		route("staging", map[string]any{"environments": []string{"staging"}}, false),
	}}
	stored, err := o.call(ctx, http.MethodGet, "/routing", "", nil)
	if err != nil {
		return fmt.Errorf("read routing policy: %w", err)
	}
	// Nobody else edits: an attempt whose answer was lost has done it.
	if _, err = o.call(ctx, http.MethodPut, "/routing", fmt.Sprintf("%q", fmt.Sprint(stored.Version)), policy); err != nil && !isStale(err) {
		return fmt.Errorf("store routing policy: %w", err)
	}
	return nil
}

// routedTo are the webhooks that the policy leads an alert about an exchange to, in the checker's own words.
func routedTo(e *exchange) []string {
	var hooks []string
	if e.environment == "test" {
		hooks = append(hooks, "a", quiet)
	}
	switch {
	case like("order*", e.route):
		hooks = append(hooks, "a", "c")
	case e.environment == "staging":
	case len(hooks) == 0:
		hooks = append(hooks, "b")
	}
	slices.Sort(hooks)
	return slices.Compact(hooks)
}

// keepSilence makes the silence and ends it.
func (o *operator) keepSilence(ctx context.Context) error {
	at := func(part float64) bool {
		return pause(ctx.Done(), time.Duration(part*float64(o.w.options.Length))-o.w.elapsed())
	}
	if !at(0.3) {
		return ctx.Err()
	}
	const name = "orders are mended"
	from := time.Now().UnixNano()
	made, err := o.call(ctx, http.MethodPost, "/silences", "", map[string]any{
		"name": name, "match": map[string]any{
			"rules": []string{o.w.truth.find(ruleOrders).id, o.w.truth.find(ruleRouted).id}, "scope": map[string]any{"notApplications": unsilenced()},
		},
		"endsAt": time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339), "digest": true,
	})
	if said, ok := errors.AsType[*answerError](err); ok && said.status < http.StatusInternalServerError {
		// An attempt whose answer was lost has made it.
		err = o.w.persist(ctx, func(conn *pgx.Conn) error {
			return conn.QueryRow(ctx, "SELECT silence_id::text FROM silence WHERE name = $1", name).Scan(&made.ID)
		})
	}
	if err != nil {
		return fmt.Errorf("make silence: %w", err)
	}
	o.noteSilence(func(h *hours) { h.began = span{from, time.Now().UnixNano()} })
	o.w.logf("operator: silence of %q and %q", ruleOrders, ruleRouted)
	if !at(0.7) {
		return ctx.Err()
	}
	o.awaitSuppressed(ctx)
	from = time.Now().UnixNano()
	if _, err := o.call(ctx, http.MethodPost, "/silences/"+made.ID+"/end", "", nil); err != nil {
		return fmt.Errorf("end silence: %w", err)
	}
	o.noteSilence(func(h *hours) { h.ended = span{from, time.Now().UnixNano()} })
	o.w.logf("operator: end of the silence")
	return nil
}

// A silence lasts until it has suppressed so many messages, or until so many times the length of the run are over.
const (
	enoughSuppressed = 50
	longestSilence   = 6
)

// awaitSuppressed waits until the silence has suppressed enough to mean something: a busy machine may hardly have evaluated
// anything by then.
func (o *operator) awaitSuppressed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longestSilence*o.w.options.Length-o.w.elapsed())
	defer cancel()
	o.w.until(ctx, func(ctx context.Context, conn *pgx.Conn) (enough bool, err error) {
		err = conn.QueryRow(ctx, "SELECT count(*) >= $1 FROM settlement WHERE status = $2", enoughSuppressed, aSuppression).Scan(&enough)
		return enough, err
	})
}

func (o *operator) noteSilence(note func(*hours)) {
	o.w.truth.mu.Lock()
	defer o.w.truth.mu.Unlock()
	note(&o.w.truth.silence)
}

// unsilenced are the applications that the silence is not about.
func unsilenced() []string { return []string{"billing", "payments"} }

// silenced says whether a message must have been suppressed, and whether it may have been.
func (w *world) silenced(l *life, a *alert, n *notification) (must, may bool) {
	if l == nil || a == nil || l.rule.name != ruleOrders && !l.rule.routed {
		return false, false
	}
	e := w.truth.exchangeOf(a)
	if s := w.truth.silence; e != nil && !slices.Contains(unsilenced(), e.application) && s.began != (span{}) {
		written, stored := n.WrittenAt.UnixNano(), n.StoredAt.UnixNano()
		return s.began.toNS < written && stored < s.ended.fromNS, s.began.fromNS < stored && written < s.ended.toNS
	}
	return false, false
}

// checkSilenced holds that a silence suppressed what it had to, and nothing else, and that this did not arrive.
func (w *world) checkSilenced(report *Report, t *tables) {
	lives := map[string]*life{}
	for _, l := range w.truth.lives {
		lives[l.id] = l
	}
	alerts := map[string]*alert{}
	for i := range t.alerts {
		alerts[t.alerts[i].ID] = &t.alerts[i]
	}
	came := map[string]int{}
	for _, r := range w.receiver.requests() {
		came[r.webhookID]++
	}
	for _, n := range t.notifications {
		must, may := w.silenced(lives[n.RuleID], alerts[n.AlertID], &n)
		suppressed := n.Status == aSuppression
		switch {
		case suppressed && !may:
			report.find(wronglySuppressed, "%s to %s, written at %v", n.Reason, n.Hook, n.WrittenAt)
		case !suppressed && must:
			report.find(notSuppressed, "%s to %s, written at %v, is %q", n.Reason, n.Hook, n.WrittenAt, n.Status)
		case suppressed && came[n.ID] > 0:
			report.find(notSuppressed, "%s to %s came %d times", n.Reason, n.Hook, came[n.ID])
		case suppressed:
			report.Suppressed++
			if lives[n.RuleID].rule.routed {
				report.RoutedSuppressed++
			}
		}
	}
}

// mostListed is how many messages the digest of a silence lists at least, if there are so many.
const mostListed = 5000

// checkSilenceDigests holds that each webhook has one digest of what was suppressed for it, which lists just that. That it
// arrived, and once, is demanded of all messages.
func (w *world) checkSilenceDigests(report *Report, t *tables) {
	suppressed := map[string]map[string]bool{}
	for _, n := range t.notifications {
		if n.Status != aSuppression {
			continue
		}
		if suppressed[n.Hook] == nil {
			suppressed[n.Hook] = map[string]bool{}
		}
		suppressed[n.Hook][n.ID] = true
	}
	of := map[string][]silenceDigest{}
	for _, d := range t.silenceDigests {
		of[d.Hook] = append(of[d.Hook], d)
	}
	for hook, messages := range suppressed {
		if len(of[hook]) != 1 {
			report.find(wrongDigest, "%s has %d digests of %d suppressed messages", hook, len(of[hook]), len(messages))
			continue
		}
		d, listed := of[hook][0], 0
		delete(of, hook)
		for _, l := range t.listings {
			switch {
			case l.DigestID == d.ID && messages[l.NotificationID]:
				listed++
			case l.DigestID == d.ID || messages[l.NotificationID]:
				report.find(wrongDigest, "message %s is listed in digest %s, and that of %s is %s", l.NotificationID, l.DigestID, hook, d.ID)
			}
		}
		if d.Size != len(messages) || listed < min(len(messages), mostListed) {
			report.find(wrongDigest, "the digest of %s is of %d messages and lists %d, and %d were suppressed", hook, d.Size, listed, len(messages))
		}
		report.Listed += listed
	}
	for hook, list := range of {
		report.find(wrongDigest, "%s has %d digests, and nothing was suppressed for it", hook, len(list))
	}
}
