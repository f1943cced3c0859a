package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/ruleset"
	"tocsin/internal/simulate/model"
	"tocsin/notify"
	"tocsin/rules"
)

// people are those who change rules and handle alerts and messages.
type people struct {
	rules, webhooks, silences []uuid.UUID
	replays, acted            int
	tenants                   []string
}

func (w *world) tenant() string { return w.people.tenants[w.rand.IntN(len(w.people.tenants))] }

// partitionOf returns the partition of a tenant: that of its last digit.
func partitionOf(tenant string) int { return int(tenant[len(tenant)-1]-'0') % partitions }

const partitions = 2

// begin stores webhooks and rules.
func (w *world) begin() {
	for n := range w.conf.tenants {
		tenant := fmt.Sprint("tenant-", n)
		w.people.tenants = append(w.people.tenants, tenant)
		for i := range 3 {
			hook := model.Webhook{Webhook: notify.Webhook{
				ID: uuid.UUID{1, byte(n), 15: byte(i + 1)}, TenantID: tenant, Enabled: true, Timeout: webhookTimeout,
				MaxConcurrent: 4, Operators: i == 2,
			}}
			if w.conf.events {
				hook.Events, hook.EventMaxAge = chosenEvents(i)
			}
			if i == 1 {
				hook.DigestAbove, hook.RatePerSecond = w.conf.digestAbove, w.conf.rate
			}
			if err := w.db.CreateWebhook(hook); err != nil {
				panic(err)
			}
			w.people.webhooks = append(w.people.webhooks, hook.ID)
		}
	}
	if w.conf.quiet {
		for _, id := range w.people.webhooks {
			w.editQuietHours(id, w.rand.IntN(4) == 0)
		}
	}
	for range w.conf.rules {
		w.addRule()
	}
	if w.conf.routed {
		for range w.conf.tenants {
			w.editPolicy()
		}
	}
}

func (w *world) scope() rules.Scope {
	all := [][]string{{"orders"}, {"billing", "orders"}, {"stock"}, {"billing"}, {"bill*"}, nil}
	return rules.Scope{Applications: all[w.rand.IntN(len(all))]}
}

// scopeOfRule is also narrowed to routes that every exchange has, if a tally is to distinguish these.
func (w *world) scopeOfRule() rules.Scope {
	s := w.scope()
	if w.conf.differs {
		s.Routes = []string{"to-*"}
	}
	return s
}

func (w *world) filter() rules.Filter {
	all := [][]rules.Status{nil, {rules.Failed, rules.Completed}, {rules.Completed}, nil}
	f := rules.Filter{Statuses: all[w.rand.IntN(len(all))]}
	if w.rand.IntN(3) == 0 {
		f.MinDurationMS = new(int64(1000))
	}
	return f
}

func (w *world) addRule() {
	id := uuid.UUID{2, 14: byte(len(w.people.rules) >> 8), 15: byte(len(w.people.rules) + 1)}
	tenant := w.tenant()
	d := rules.Definition{
		Name: short(id), Enabled: true, FireMode: rules.PerExchange, Severity: rules.Warning, IntervalSeconds: 1,
		LookBackSeconds: w.conf.lookBacks[w.rand.IntN(len(w.conf.lookBacks))], Scope: w.scopeOfRule(), Filter: w.filter(),
	}
	w.drawRecipients(tenant, &d)
	if n := w.rand.IntN(3); n == 0 || n == 1 && w.conf.brief {
		w.drawWindow(&d)
	}
	if w.conf.resolves {
		if w.rand.IntN(2) == 0 {
			d.Filter.Statuses = nil
		}
		w.drawResolution(&d)
	}
	if w.conf.quiet && w.rand.IntN(4) == 0 {
		d.Severity = rules.Critical
	}
	r, err := w.db.CreateRule(tenant, id, d)
	if err != nil {
		panic(err)
	}
	w.people.rules = append(w.people.rules, id)
	w.changedRule("creates", &r, ruleEntry{arms: true})
}

// drawRecipients draws webhooks of a rule, or has it use the routing policy.
func (w *world) drawRecipients(tenant string, d *rules.Definition) {
	d.UseRoutingPolicy, d.WebhookIDs = false, nil
	for _, hook := range w.people.webhooks {
		if w.db.Webhook(hook).TenantID == tenant && !w.db.Webhook(hook).Operators && w.rand.IntN(3) > 0 {
			d.WebhookIDs = append(d.WebhookIDs, hook)
		}
	}
	if w.conf.routed && w.rand.IntN(3) > 0 {
		d.UseRoutingPolicy, d.WebhookIDs = true, nil
	}
}

// changedRule notes what a person did with a rule.
func (w *world) changedRule(what string, r *rules.Rule, entry ruleEntry) {
	row, _ := w.db.Rule(r.ID)
	entry.version, entry.changed, entry.def, entry.armedNS = r.Version, row.Changed, r.Definition, r.ArmedSinceNS
	w.note("a person %s rule %s of %s: version %d, armed since %s, applications %v, statuses %v, look-back %d s, resolves %s", what, short(r.ID), r.TenantID, r.Version,
		w.instant(r.ArmedSinceNS), r.Scope.Applications, r.Filter.StatusesOrDefault(), r.LookBackSeconds, saysResolution(r.Resolution))
	w.truth.changed(r.ID, r.TenantID, entry)
}

// act has a person do something.
func (w *world) act() {
	if w.conf.routed {
		if n := w.rand.IntN(10); n < 5 {
			switch {
			case n > 0:
				w.lookAfter()
			case w.rand.IntN(2) == 0:
				w.editPolicy()
			default:
				w.editRecipients()
			}
			w.check()
			return
		}
	}
	if w.conf.digests && w.rand.IntN(4) == 0 {
		w.handleSilence()
		w.check()
		return
	}
	switch w.rand.IntN(13) {
	case 12:
		w.handleReplay()
	case 10, 11:
		w.handleSilence()
	case 0, 1:
		w.editRule()
	case 2:
		w.toggleRule()
	case 3:
		if len(w.people.rules) < w.conf.rules+4 {
			w.addRule()
		}
	case 4, 5:
		w.handleAlerts()
	case 6, 7:
		w.handleMessage()
	default:
		w.handleWebhook()
	}
	w.check()
}

func (w *world) someRule() (uuid.UUID, rules.Rule) {
	id := w.people.rules[w.rand.IntN(len(w.people.rules))]
	row, _ := w.db.Rule(id)
	return id, row.Rule
}

func (w *world) editRule() {
	id, was := w.someRule()
	if was.ID == uuid.Nil {
		return // a failover took it away
	}
	d := was.Definition
	if w.conf.resolves && w.rand.IntN(2) == 0 {
		w.drawResolution(&d)
	}
	switch w.rand.IntN(4) {
	case 0:
		d.Name += "'"
	case 1:
		d.LookBackSeconds = w.conf.lookBacks[w.rand.IntN(len(w.conf.lookBacks))]
		if d.LookBackSeconds < was.LookBackSeconds {
			return // a shorter look-back gives up what the longer one reached
		}
	default:
		d.Scope = w.scopeOfRule()
	}
	r, err := w.db.UpdateRule(id, d)
	if err != nil {
		return
	}
	edits := d.Enabled && fmt.Sprint(was.Scope) != fmt.Sprint(d.Scope)
	w.changedRule("edits", &r, ruleEntry{edits: edits})
}

// editRecipients has a rule notify others, most often a window rule whose alert is open.
func (w *world) editRecipients() {
	id, was := w.someRule()
	if open := slices.DeleteFunc(slices.Clone(w.people.rules), func(id uuid.UUID) bool { return len(w.db.OpenOrHeld(id)) == 0 }); len(open) > 0 {
		id = open[w.rand.IntN(len(open))]
		row, _ := w.db.Rule(id)
		was = row.Rule
	}
	if was.ID == uuid.Nil {
		return // a failover took it away
	}
	d := was.Definition
	w.drawRecipients(was.TenantID, &d)
	if r, err := w.db.UpdateRule(id, d); err == nil {
		w.changedRule("has others notified by", &r, ruleEntry{})
	}
}

func (w *world) toggleRule() {
	id, was := w.someRule()
	r, err := w.db.EnableRule(id, !was.Enabled)
	if err != nil {
		return
	}
	w.changedRule(map[bool]string{true: "enables", false: "disables"}[r.Enabled], &r, ruleEntry{arms: r.Enabled})
}

// handleAlerts acknowledges and resolves.
func (w *world) handleAlerts() {
	ids := w.db.AlertIDs()
	if len(ids) == 0 {
		return
	}
	for range 1 + w.rand.IntN(20) {
		id := ids[w.rand.IntN(len(ids))]
		to, handle := alerts.Resolved, w.db.Resolve
		if w.rand.IntN(3) == 0 {
			to, handle = alerts.Acknowledged, w.db.Acknowledge
		}
		if handle(id) == nil {
			w.expectEvent(id, eventOf(to))
			if known := w.truth.alerts[id]; known != nil {
				known.state = string(to)
			}
			w.note("a person makes alert %s %s", short(id), to)
		}
	}
}

// handleMessage retries or discards.
func (w *world) handleMessage() {
	ids := w.db.Messages()
	if len(ids) == 0 {
		return
	}
	id := ids[w.rand.IntN(len(ids))]
	what, do := "retries", w.db.RetryNotification
	if w.rand.IntN(4) == 0 {
		what, do = "discards", w.db.DiscardNotification
	}
	message := id
	if before, _ := w.db.Message(id); before.Digest != uuid.Nil {
		message = before.Digest
	}
	before, _ := w.db.Message(message)
	if do(id) != nil {
		return
	}
	if known := w.truth.messages[message]; known != nil {
		known.discarded = known.discarded || what == "discards"
	}
	w.note("a person %s message %s", what, short(id))
	if o := before.Row; o != nil && o.Token != 0 && o.DueAt.After(w.pgNow()) {
		w.violate("P3", "a person %s message %s, of which attempt %d is under way", what, short(id), o.Attempts)
	}
}

// handleReplay evaluates a rule over a past range again, or cancels that.
func (w *world) handleReplay() {
	id, r := w.someRule()
	if r.ID == uuid.Nil || r.FireMode != rules.PerExchange {
		return
	}
	if w.rand.IntN(4) == 0 {
		if w.db.CancelReplay(id) == nil {
			w.note("a person cancels the replay of rule %s", short(id))
		}
		return
	}
	w.people.replays++
	p := replayTruth{
		id: uuid.UUID{4, 14: byte(w.people.replays >> 8), 15: byte(w.people.replays)}, rule: id, def: r.Definition, begunNS: w.Now().UnixNano(),
		messages: []ruleset.ReplayMessages{ruleset.ReplayNone, ruleset.ReplayNone, ruleset.ReplayDigest, ruleset.ReplayEach}[w.rand.IntN(4)],
	}
	now := w.pgNow().UnixNano()
	p.fromNS = now - 1 - w.rand.Int64N(int64(2*time.Hour))
	p.toNS = p.fromNS + 1 + w.rand.Int64N(now-p.fromNS)
	if w.db.StartReplay(id, p.id, p.fromNS, p.toNS, p.messages) != nil {
		return
	}
	w.truth.replays = append(w.truth.replays, &p)
	w.note("a person replays rule %s from %s to %s, messages %s, as %s", short(id), w.instant(p.fromNS), w.instant(p.toNS), p.messages, short(p.id))
}

func (w *world) handleWebhook() {
	id := w.people.webhooks[w.rand.IntN(len(w.people.webhooks))]
	hook := w.db.Webhook(id)
	var err error
	what := "enables"
	switch {
	case !hook.Enabled:
		err = w.db.EnableWebhook(id, true)
	case w.rand.IntN(2) == 0:
		what, err = "disables", w.db.EnableWebhook(id, false)
	default:
		what, err = "edits", w.db.EditWebhook(id)
	}
	if err == nil {
		w.truth.hooks[id] = w.Now()
		w.note("a person %s webhook %s", what, short(id))
	}
}

// row writes rows of an exchange.
func (w *world) row(fromNS, toNS int64, endsNow bool) {
	const quantum = int64(250 * time.Millisecond)
	now := w.Now().Add(w.makerSkew).UnixNano()
	start := now + (fromNS+w.rand.Int64N((toNS-fromNS)/quantum+1)*quantum)/quantum*quantum + []int64{0, 0, 1e6, 3e6}[w.rand.IntN(4)]
	end := max(start, now-w.rand.Int64N(8)*quantum)
	if !endsNow {
		end = max(start, min(now, start+w.rand.Int64N(20)*quantum))
	}
	w.write(&exchange{
		tenant: w.tenant(), app: []string{"orders", "billing", "stock", "elsewhere"}[w.rand.IntN(4)],
		startNS: start, endNS: end, status: []rules.Status{rules.Failed, rules.Failed, rules.Completed}[w.rand.IntN(3)],
	}, w.rand.Int64N(3)*int64(time.Second))
}

// write writes rows of an exchange that ended, the first of which a server shows after a
// while.
func (w *world) write(e *exchange, afterNS int64) {
	const quantum = int64(250 * time.Millisecond)
	e.id = fmt.Sprintf("%c%d", 'a'+rune(w.rand.IntN(4)), len(w.truth.exchanges))
	start, end := e.startNS, e.endNS
	if e.customer == "" {
		e.customer = customers()[len(w.truth.exchanges)%len(customers())]
	}
	r := model.Row{Exchange: rules.Exchange{
		TenantID: e.tenant, StartTimeNS: start, EndTimeNS: &end, DurationNS: end - start, Application: e.app, Route: "to-erp", ExecutionID: e.id, Status: e.status,
		CorrelationID: e.customer,
	}}
	if e.customer != "" {
		r.Attributes = map[string]string{"customer": e.customer}
	}
	visible := w.Now().UnixNano() + afterNS
	r.VisibleNS = []int64{visible, visible + w.rand.Int64N(17)*quantum}
	if w.rand.IntN(2) == 0 {
		r.VisibleNS[0], r.VisibleNS[1] = r.VisibleNS[1], r.VisibleNS[0]
	}
	if w.conf.servers == oneServer {
		r.VisibleNS[1] = r.VisibleNS[0]
	}
	e.visibleNS, e.seenNS = max(r.VisibleNS[0], r.VisibleNS[1]), min(r.VisibleNS[0], r.VisibleNS[1])
	if w.rand.IntN(4) == 0 {
		// The row that was written when the exchange began.
		running := r
		running.Status, running.EndTimeNS, running.DurationNS = rules.Running, nil, 0
		running.VisibleNS = []int64{start, start}
		if w.rand.IntN(2) == 0 {
			running.HiddenNS = r.VisibleNS // it is replaced
		}
		w.ch.Insert(running)
	}
	w.ch.Insert(r)
	w.truth.wrote(e)
	if w.rand.IntN(4) == 0 {
		// The row once more, later, on one of the servers or on both.
		r.VisibleNS = []int64{r.VisibleNS[0] + w.rand.Int64N(60)*quantum, r.VisibleNS[1] + w.rand.Int64N(600)*quantum}
		if w.conf.differs {
			r.Route = "to-crm"
		}
		w.ch.Insert(r)
	}
	w.stats.Exchanges++
	w.note("exchange %s of %s in %s: %s, began %s, ended %s, visible %s", e.id, e.tenant, e.app, e.status, w.instant(start), w.instant(end), w.instant(e.visibleNS))
}
