//go:build unix

package torture

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// plan is everything that a seed decides.
type plan struct {
	exchanges []exchange
	writes    []write
	rules     []rule
	edits     []edit
	faults    []fault
}

// What decides the parts of a plan is drawn apart, so that a change to one leaves the others as they were.
const (
	streamTraffic = iota
	streamEdits
	streamFaults
	streamForm
	streamLag
)

func newPlan(o *Options) *plan {
	stream := func(number uint64) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, number)) }
	p := &plan{rules: startingRules(o)}
	p.exchanges, p.writes = traffic(stream(streamTraffic), o.Exchanges, o.Length)
	p.edits = edits(stream(streamEdits), o.Length)
	if o.Form == Receivers {
		p.toServices()
	}
	if o.Form.hasQuietHours() {
		p.toQuiet()
	}
	if !o.Calm {
		p.faults = append(faults(stream(streamFaults), o.Length), o.Form.faults(stream(streamForm), o.Length)...)
		slices.SortStableFunc(p.faults, func(a, b fault) int { return cmp.Compare(a.atNS, b.atNS) })
	}
	return p
}

// Names of rules that an edit is about.
const (
	ruleAll      = "all failures"
	ruleOrders   = "orders in production"
	ruleSlow     = "slow"
	ruleTimeouts = "timeouts"
	ruleRegion   = "refused in a region"
	ruleShort    = "short look-back"
	ruleExcept   = "all but the known"
	ruleDoomed   = "doomed"
	ruleMended   = "mended"
	ruleAged     = "aged"
	ruleLate     = "late"
	ruleCounting = "counting"
	ruleShare    = "share"
	ruleDuration = "duration"
	ruleAbsence  = "absence"
)

// Look-backs, in seconds.
const (
	hour          = 3600
	shortLookBack = 20
)

func startingRules(o *Options) []rule {
	out := []rule{
		{name: ruleAll, hooks: []string{"a"}, lookBackSeconds: hour, intervalSeconds: 1},
		{
			name: ruleOrders, hooks: []string{"a", "b"}, lookBackSeconds: hour, intervalSeconds: 1, title: "{{exchange.route}}",
			condition: condition{environments: []string{"production"}, applications: []string{"orders*", "*/S*d"}},
		},
		{
			name: ruleSlow, hooks: []string{"b"}, lookBackSeconds: hour, intervalSeconds: 2,
			condition: condition{statuses: []string{"COMPLETED", "FAILED"}, minMS: 4000, maxMS: 900_000},
		},
		{
			name: ruleTimeouts, hooks: []string{"c"}, lookBackSeconds: hour, intervalSeconds: 1,
			condition: condition{errorTypes: []string{"TimeoutException", "ConnectException"}, contains: "timed out"},
		},
		{
			name: ruleRegion, hooks: nil, lookBackSeconds: 2 * hour, intervalSeconds: 1,
			condition: condition{
				matches:    `code=[45]\d*`,
				attributes: []attribute{{Key: "region", Op: "MATCHES", Value: "^(eu|us)"}, {Key: "tenant id", Op: "EXISTS"}},
			},
		},
		{
			name: ruleShort, hooks: []string{"c"}, lookBackSeconds: shortLookBack, intervalSeconds: 1,
			condition: condition{routes: []string{"order*", "pay-*"}},
		},
		{
			name: ruleExcept, hooks: []string{"b"}, lookBackSeconds: hour, intervalSeconds: 1,
			condition: condition{
				notEnvironments: []string{"test"}, notApplications: []string{"pay*"}, notRoutes: []string{"order.*"},
				notErrorTypes: []string{"ValidationError"}, notContains: []string{"timed out"}, notMatches: []string{`code=4\d*$`},
				attributes: []attribute{
					{Key: "amount", Op: "LESS_THAN", Value: "500", Not: true}, {Key: "amount", Op: "AT_LEAST", Value: "-10"}, {Key: "region", Op: "EQUALS", Value: "us", Not: true},
				},
			},
		},
		{
			name: ruleDoomed, hooks: []string{"a", "b", "c"}, lookBackSeconds: hour, intervalSeconds: 1,
			condition: condition{environments: []string{"staging"}, attributes: []attribute{{Key: "region", Op: "EQUALS", Value: "eu"}}},
		},
	}
	if o.Form.hasPolicy() && o.Exchanges >= enoughToCount {
		out = append(out, routedRule())
	}
	if o.Form.resolves() && o.Exchanges >= enoughToCount {
		out = append(out, resolvingRules()...)
	}
	if o.Exchanges >= enoughToCount {
		out = append(out, windowRules(o)...)
	}
	return out
}

// edit is something that the operator does to a rule.
type edit struct {
	atNS int64
	rule string
	act  act
	// change is applied to the rule before it is created or updated.
	change func(*rule)
}

type act int

const (
	create act = iota
	update
	disable
	enable
	remove
)

func (d act) String() string {
	return [...]string{"create", "update", "disable", "enable", "remove"}[d]
}

// edits are the operator's, in order.
func edits(random *rand.Rand, length time.Duration) []edit {
	within := func(from, to float64) int64 { return int64((from + random.Float64()*(to-from)) * float64(length)) }
	late := rule{
		name: ruleLate, hooks: []string{"b", "c"}, lookBackSeconds: hour, intervalSeconds: 1,
		condition: condition{environments: []string{"test", "production"}, routes: []string{"*sync", "invoice"}},
	}
	out := []edit{
		{within(0.1, 0.4), ruleLate, create, func(r *rule) { *r = late }},
		{within(0.1, 0.9), ruleOrders, update, func(r *rule) { r.title = "Order {{exchange.executionId}} broke" }},
		{within(0.2, 0.5), ruleAll, update, func(r *rule) { r.hooks = []string{"c", "a"} }},
		{within(0.5, 0.9), ruleAll, update, func(r *rule) { r.hooks = []string{"b"} }},
		{within(0.2, 0.8), ruleTimeouts, update, func(r *rule) { r.condition.errorTypes, r.condition.contains = nil, "30 s" }},
		{within(0.2, 0.4), ruleSlow, disable, nil},
		{within(0.5, 0.7), ruleSlow, enable, nil},
		{within(0.4, 0.9), ruleDoomed, remove, nil},
	}
	slices.SortStableFunc(out, func(a, b edit) int { return cmp.Compare(a.atNS, b.atNS) })
	return out
}

// fault is something that breaks, and for how long.
type fault struct {
	atNS int64
	kind kind
	// target is the number of a replica; other targets there is one of.
	target int
	length time.Duration
	// delay is how much each piece of data is slowed down.
	delay time.Duration
}

type kind string

const (
	killReplica      kind = "kill replica"
	stopReplica      kind = "stop replica"
	endReplica       kind = "restart replica"
	restartPostgres  kind = "restart Postgres"
	crashPostgres    kind = "crash Postgres"
	crashClickHouse  kind = "kill ClickHouse"
	cutPostgres      kind = "cut from Postgres"
	cutClickHouse    kind = "cut from ClickHouse"
	cutReceiver      kind = "cut from receiver"
	stallPostgres    kind = "stall to Postgres"
	stallClickHouse  kind = "stall to ClickHouse"
	slowPostgres     kind = "slow to Postgres"
	slowClickHouse   kind = "slow to ClickHouse"
	failOver         kind = "fail over"
	crashPooler      kind = "kill PgBouncer"
	fillDisk         kind = "fill the disk"
	everySoManyTicks      = 1500 * time.Millisecond
)

// ofEngines says whether it strikes an engine, and not a replica.
func (k kind) ofEngines() bool {
	return slices.Contains([]kind{restartPostgres, crashPostgres, crashClickHouse, failOver, crashPooler, fillDisk}, k)
}

func (f fault) String() string {
	text := fmt.Sprintf("%s for %v", f.kind, f.length.Round(10*time.Millisecond))
	if f.kind.ofEngines() {
		return text
	}
	if f.kind == slowPostgres || f.kind == slowClickHouse {
		text += fmt.Sprintf(" by %v", f.delay.Round(time.Millisecond))
	}
	return fmt.Sprintf("replica %d: %s", f.target, text)
}

// faults strike every second and a half on average, between the first and the last tenth of the run.
func faults(random *rand.Rand, length time.Duration) []fault {
	var out []fault
	for range max(int(length/everySoManyTicks), 8) {
		f := fault{
			atNS: int64((0.05 + 0.9*random.Float64()) * float64(length)),
			kind: pick(random, killReplica, killReplica, killReplica, stopReplica, stopReplica, endReplica,
				restartPostgres, crashPostgres, crashClickHouse, crashClickHouse, cutPostgres, cutPostgres, cutClickHouse,
				cutReceiver, stallPostgres, stallClickHouse, slowPostgres, slowClickHouse),
			target: random.IntN(replicas),
			length: time.Duration(100e6 + random.Int64N(1500e6)),
			delay:  time.Duration(10e6 + random.Int64N(100e6)),
		}
		if f.kind == stopReplica || f.kind == stallPostgres {
			// Longer than claim and lease.
			f.length = claimFor + time.Duration(500e6+random.Int64N(2000e6))
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b fault) int { return cmp.Compare(a.atNS, b.atNS) })
	return out
}
