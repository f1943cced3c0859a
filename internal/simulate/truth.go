package simulate

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/evaluator"
	"tocsin/rules"
)

// truth is what the checker knows by itself: what was written into ClickHouse and when it
// became visible, what people did, and what was sent. It shares with the product the types
// of rules and exchanges, and nothing that decides.
type truth struct {
	w         *world
	began     time.Time
	exchanges []*exchange
	byKey     map[exchangeKey]*exchange
	// unseen are those that not every server shows yet.
	unseen []*exchange
	rules  map[uuid.UUID]*ruleTruth
	order  []uuid.UUID
	pairs  map[pairKey]*pair
	// outstanding are pairs that must have an alert and have none.
	outstanding []*pair
	alerts      map[uuid.UUID]*alertTruth
	messages    map[uuid.UUID]*messageTruth
	// notified holds the ids of notifications, by what makes one unique.
	notified map[string]uuid.UUID
	sent     map[string][]*sending
	// lostCommits is when a failover last took commits back, by the true time; inFailover
	// says that one is under way.
	lostCommits time.Time
	// observedNS is the latest clock of the source that any pass has observed.
	observedNS int64
	inFailover bool
	// setBackNS is the latest instant that ClickHouse's clock showed when it was set back.
	setBackNS int64
	// clockJumped is when the clock of ClickHouse or of Postgres last jumped.
	clockJumped time.Time
	// skewMost is by how much ClickHouse's clock was off at most.
	skewMost time.Duration
	measured map[int]time.Time
	// silences are those that people began, as they are stored.
	silences map[uuid.UUID]silenceTruth
	// digests is which digests each silence has to send, and suppressed are the messages that silences suppressed. latest
	// is the latest instant that Postgres's clock has shown.
	digests    map[uuid.UUID]*digestTruth
	suppressed map[uuid.UUID]*suppressedTruth
	// lasting are messages about ends that rules want, which do not expire.
	lasting map[uuid.UUID]bool
	latest  time.Time
	// policies are the versions of each tenant's routing policy that people wrote.
	policies map[string][]policyTruth
	// hours are the quiet hours of each webhook that people wrote, quieted is what they hold, and stepIDs is of
	// which step each message is by which an alert escalates.
	hours   map[uuid.UUID][]hoursTruth
	quieted map[uuid.UUID]*heldTruth
	stepIDs map[uuid.UUID]int
	// acts are what people did with alerts and may take back.
	acts []deedTruth
	// replays are those that people began.
	replays []*replayTruth
	// hooks is when a person last changed each webhook; checked when each claim was last
	// asked about.
	hooks   map[uuid.UUID]time.Time
	checked map[int64]time.Time
	// watches is how each partition's source was watched.
	watches map[uint32]*watching
}

type exchangeKey struct{ tenant, id string }

// exchange is an execution that has ended.
type exchange struct {
	tenant, app, id string
	// customer is the value of its attribute of that name; "" is that there is none.
	customer       string
	status         rules.Status
	startNS, endNS int64
	// visibleNS is when the last server shows it.
	visibleNS int64
	// seenNS is when the first server shows it.
	seenNS int64
	number int
}

type pairKey struct {
	rule uuid.UUID
	id   string
}

// pair is a rule and an exchange that it wants or wanted.
type pair struct {
	rule *ruleTruth
	e    *exchange
	// must says that there has to be an alert, inTime that the exchange became visible
	// within the look-back.
	must, inTime bool
	// alert is the id of the alert, which it keeps for ever; deleted that retention has
	// deleted it.
	alert   uuid.UUID
	deleted bool
	open    bool
	// excused says that the exchange was evaluated before an edit, whose instant lies before its
	// end: Postgres's clock was behind.
	excused bool
}

// ruleTruth is what people did with a rule.
type ruleTruth struct {
	id        uuid.UUID
	tenant    string
	partition int
	entries   []ruleEntry
}

// ruleEntry is a change of a rule.
type ruleEntry struct {
	version, changed int64
	def              rules.Definition
	armedNS          int64
	// arms says that the rule starts again, edits that another condition decides from here on.
	arms, edits bool
}

// era is a condition and the ends of the exchanges on which it decides.
type era struct {
	def          *rules.Definition
	fromNS, toNS int64
}

func (r *ruleTruth) present() *ruleEntry { return &r.entries[len(r.entries)-1] }

// eras returns the conditions since the rule was last armed, none of a disabled rule.
func (r *ruleTruth) eras() []era {
	var list []era
	for i := range r.entries {
		e := &r.entries[i]
		switch {
		case !e.def.Enabled:
			list = nil
		case e.arms:
			list = []era{{&e.def, e.armedNS, math.MaxInt64}}
		case e.edits:
			list[len(list)-1].toNS = e.armedNS
			list = append(list, era{&e.def, e.armedNS, math.MaxInt64})
		}
	}
	return list
}

func (r *ruleTruth) version(n int64) *ruleEntry {
	for i := range r.entries {
		if r.entries[i].version == n {
			return &r.entries[i]
		}
	}
	return nil
}

// wants reports whether a rule must raise an alert for an exchange.
func (r *ruleTruth) wants(e *exchange) bool {
	return e.tenant == r.tenant && !r.window() && slices.ContainsFunc(r.eras(), func(a era) bool {
		return e.endNS >= a.fromNS && e.endNS < a.toNS && matches(a.def, e)
	})
}

// matches is the checker's own matcher.
func matches(d *rules.Definition, e *exchange) bool {
	statuses := d.Filter.Statuses
	if len(statuses) == 0 {
		statuses = []rules.Status{rules.Failed}
	}
	if !slices.Contains(statuses, e.status) || d.Filter.MinDurationMS != nil && e.endNS-e.startNS < *d.Filter.MinDurationMS*1e6 {
		return false
	}
	return len(d.Scope.Applications) == 0 || slices.ContainsFunc(d.Scope.Applications, func(name string) bool {
		prefix, wild := strings.CutSuffix(name, "*")
		return name == e.app || wild && strings.HasPrefix(e.app, prefix)
	})
}

func lookBack(d *rules.Definition) int64 { return int64(d.LookBackSeconds) * int64(time.Second) }

// reach is how far behind a cursor something that became visible within the look-back is
// still found: the product says how long that may take.
func reach(d *rules.Definition) int64 {
	const second = int64(time.Second)
	back := lookBack(d)
	switch {
	case back == 0:
		return 0
	case back <= 50*second:
		return back + 10*second
	case back <= 3600*second:
		return back + 80*second
	}
	return back + 970*second
}

// cursorNS returns how far a partition has come; false before the first pass.
func (t *truth) cursorNS(partition int) (int64, bool) {
	c := t.w.db.Checkpoint(partition)
	if c.Cursor == nil {
		return 0, false
	}
	return c.Cursor.StartTimeNS, true
}

// classify decides whether a rule has to alert an exchange that every server shows.
func (t *truth) classify(r *ruleTruth, e *exchange) {
	key := pairKey{r.id, e.id}
	p := t.pairs[key]
	wanted := r.wants(e)
	if p == nil {
		if !wanted {
			return
		}
		p = &pair{rule: r, e: e}
		t.pairs[key] = p
	}
	if !wanted || p.deleted || p.excused {
		p.must = false
		return
	}
	d := &r.present().def
	fromNS := r.eras()[0].fromNS
	if at, there := t.cursorNS(r.partition); there {
		fromNS = max(fromNS, at, t.w.readingNS(r.partition))
	}
	if ahead := t.w.chSkew > 0 || t.w.Now().UnixNano() < t.setBackNS; ahead || lookBack(d) == 0 {
		// Where ClickHouse's clock, by which the look-back counts, is ahead of the producers', what any pass has
		// observed counts, even one that failed.
		fromNS = max(fromNS, t.observedNS)
	}
	p.inTime = p.inTime || fromNS <= e.startNS+lookBack(d)
	if p.must = p.inTime; p.must && !p.open {
		p.open = true
		t.outstanding = append(t.outstanding, p)
	}
}

// see classifies what has become visible, on any server as something that may be alerted,
// on all as something that must be.
func (t *truth) see() {
	if len(t.unseen) == 0 {
		return
	}
	now := t.w.Now().UnixNano()
	t.unseen = slices.DeleteFunc(t.unseen, func(e *exchange) bool {
		if e.visibleNS > now {
			return false
		}
		for _, id := range t.order {
			t.classify(t.rules[id], e)
		}
		return true
	})
}

// wrote notes an exchange that has ended. It may be alerted as soon as any server shows it.
func (t *truth) wrote(e *exchange) {
	key := exchangeKey{e.tenant, e.id}
	if was := t.byKey[key]; was != nil {
		was.visibleNS = min(was.visibleNS, e.visibleNS)
		return
	}
	e.number = len(t.exchanges)
	t.byKey[key] = e
	t.exchanges = append(t.exchanges, e)
	t.unseen = append(t.unseen, e)
}

// changed notes what a person did with a rule, as the store has stored it.
func (t *truth) changed(id uuid.UUID, tenant string, entry ruleEntry) {
	t.see()
	r := t.rules[id]
	if r == nil {
		r = &ruleTruth{id: id, tenant: tenant, partition: t.w.db.PartitionOf(tenant)}
		t.rules[id] = r
		t.order = append(t.order, id)
	}
	// What one condition wanted may be alerted before the next one is in force.
	for _, e := range t.exchanges {
		t.maybe(r, e)
	}
	r.entries = append(r.entries, entry)
	if entry.edits {
		t.excuse(r, entry.armedNS)
	}
	if entry.arms {
		// What was in time before is behind the cursor by now. It ended after this instant only where Postgres's
		// clock is behind, and only the look-back still finds it.
		for _, e := range t.exchanges {
			if p := t.pairs[pairKey{r.id, e.id}]; p != nil {
				p.inTime = false
			}
		}
	}
	t.reclassify(r)
	t.checkArming(r, &entry)
}

// maybe notes that a rule may have alerted an exchange by now.
func (t *truth) maybe(r *ruleTruth, e *exchange) {
	key := pairKey{r.id, e.id}
	if len(r.entries) > 0 && t.pairs[key] == nil && r.wants(e) {
		t.pairs[key] = &pair{rule: r, e: e}
	}
}

// excuse leaves alone what was evaluated before an edit.
func (t *truth) excuse(r *ruleTruth, armedNS int64) {
	now := t.w.Now().UnixNano()
	for _, e := range t.exchanges {
		if e.tenant != r.tenant || e.endNS < armedNS || e.seenNS > now {
			continue
		}
		t.maybe(r, e)
		if p := t.pairs[pairKey{r.id, e.id}]; p != nil {
			p.excused = true
		}
	}
}

func (t *truth) reclassify(r *ruleTruth) {
	now := t.w.Now().UnixNano()
	for _, e := range t.exchanges {
		if e.tenant == r.tenant && e.visibleNS <= now {
			t.classify(r, e)
		}
	}
}

// committed notes that a partition has measured the source's clock. The measure is off by
// the time between two readings, between which the process may have been paused.
func (t *truth) committed(b *evaluator.Batch) {
	const off = 15 * time.Second
	t.measured[b.Partition] = t.w.Now()
	// What a clock of ClickHouse that is ahead shows is not followed.
	const most, slack = time.Minute, 30 * time.Second
	if now := t.w.Now(); b.Cursor != nil && now.Sub(t.clockJumped) > 2*time.Minute && b.Cursor.StartTimeNS > t.w.pgNow().Add(most+slack).UnixNano() {
		t.w.violate("P1", "the cursor of partition %d is at %s, ahead of Postgres's clock", b.Partition, t.w.instant(b.Cursor.StartTimeNS))
	}
	if b.ClockOffset-(t.w.chSkew-t.w.pgSkew) > off {
		delete(t.measured, b.Partition)
	}
}

// failedOver brings what people did in line with a store that has lost commits.
func (t *truth) failedOver() {
	t.lostCommits = t.w.Now()
	t.unwatched()
	t.order = slices.DeleteFunc(t.order, func(id uuid.UUID) bool {
		r := t.rules[id]
		row, there := t.w.db.Rule(id)
		r.entries = slices.DeleteFunc(r.entries, func(e ruleEntry) bool { return !there || e.changed > row.Changed })
		return len(r.entries) == 0
	})
	for id := range t.silences {
		t.silenced(id)
	}
	for id, list := range t.hours {
		t.hours[id] = slices.DeleteFunc(list, func(h hoursTruth) bool { return h.version > t.w.db.Webhook(id).Version })
	}
	for tenant, list := range t.policies {
		t.policies[tenant] = slices.DeleteFunc(list, func(p policyTruth) bool { return p.version > t.w.db.RoutingPolicy(tenant).Version })
	}
	for id, r := range t.rules {
		if len(r.entries) == 0 {
			delete(t.rules, id)
		}
	}
	t.outstanding = nil
	for _, p := range t.pairs {
		// The cursor is back where it was, and so may be a look-back.
		p.open, p.inTime = false, false
		if t.rules[p.rule.id] == nil {
			p.must = false
		}
	}
	for _, id := range t.order {
		t.reclassify(t.rules[id])
	}
}

// sending is a request.
type sending struct {
	p              *process
	message        string
	id, webhook    uuid.UUID
	attempt        int
	token          int64
	begunAt        time.Time
	body           string
	at             time.Time
	claimed        time.Time
	accepted       bool
	answered, over bool
	ended          bool
	endedAt        time.Time
}
