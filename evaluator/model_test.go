package evaluator_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/source"
	"tocsin/notify"
	"tocsin/rules"
)

const (
	second = int64(1e9)
	begin  = 1_795_244_520 * second
)

var (
	errBroken  = errors.New("the source is broken")
	errRefused = fmt.Errorf("the store refuses an alert: %w", evaluator.ErrRefused)
)

// model is a source of several servers, and a store, in memory, for scenarios that are written step by step. What
// happens in any order internal/simulate has happen, on models that pass the law of the real stores.
type model struct {
	// now is the instant of source and store.
	now  int64
	rows []row
	// questions counts what the source was asked.
	questions int
	// pick names the server of the next question; nil is the first.
	pick func() int

	state  state
	states []state
	token  int64
	// refused is a rule whose alerts the store refuses; broken fails the source.
	refused uuid.UUID
	broken  bool
	// mute fails scans, deaf questions about more than the recent past, uncounted counts.
	mute, deaf, uncounted bool
	// announced counts what was announced, failing are the partitions for which a failure is.
	announced map[string]int
	failing   map[int]bool
	// scanning is the scan for which pick names a server; nil is another question.
	scanning *source.Scan
	// committing is called before each commit, which fails with its error.
	committing func(evaluator.Batch) error
	// observes and scans are asked before each question of their kind, which fails with their
	// errors.
	observes func(source.ObserveQuery) error
	scans    func(source.Scan) error
	// within is how much time the last scan was given.
	within time.Duration
	// ahead is how far the store's clock is ahead of the source's.
	ahead time.Duration
	// behind is how far the clock of each server is behind; it may be shorter than the list of servers.
	behind []time.Duration
	// hang has announcements wait until their context ends.
	hang bool
}

// row is a row of an exchange, and when each server shows it.
type row struct {
	rules.Exchange
	visible []int64
}

// state is what the store holds, all of which a failover may take back.
type state struct {
	rules       map[uuid.UUID]ruleState
	checkpoints map[int]checkpoint
	backfills   map[uuid.UUID]ruleset.Backfill
	replays     map[uuid.UUID]ruleset.ReplayStep
	alerts      map[uuid.UUID]alert
}

type ruleState struct {
	rule    rules.Rule
	changed int64
	problem string
}

type checkpoint struct {
	evaluator.Checkpoint
	owner string
}

type alert struct {
	rule     uuid.UUID
	key      string
	notified int
}

func (s *state) copy() state {
	return state{maps.Clone(s.rules), maps.Clone(s.checkpoints), maps.Clone(s.backfills), maps.Clone(s.replays), maps.Clone(s.alerts)}
}

// partitionOf returns the partition of a tenant: that of its last digit.
func partitionOf(tenant string) int { return int(tenant[len(tenant)-1]-'0') % 2 }

func newModel() *model {
	m := &model{now: begin, announced: map[string]int{}, failing: map[int]bool{}}
	m.state = state{
		rules: map[uuid.UUID]ruleState{}, checkpoints: map[int]checkpoint{}, backfills: map[uuid.UUID]ruleset.Backfill{}, alerts: map[uuid.UUID]alert{},
		replays: map[uuid.UUID]ruleset.ReplayStep{},
	}
	for i := range 2 {
		m.state.checkpoints[i] = checkpoint{Checkpoint: evaluator.Checkpoint{Partition: i}}
	}
	return m
}

// server returns the number and the name of the server that answers.
func (m *model) server() (int, string) {
	m.questions++
	n := 0
	if m.pick != nil {
		n = m.pick()
	}
	return n, fmt.Sprint("server ", n)
}

func (m *model) seen(server int, tenants source.Tenants, yield func(*rules.Exchange)) {
	for i := range m.rows {
		r := &m.rows[i]
		if r.visible[server] <= m.now && slices.Contains(tenants.Names, r.TenantID) {
			yield(&r.Exchange)
		}
	}
}

func (m *model) Observe(_ context.Context, q source.ObserveQuery) (source.Observation, error) {
	if m.broken || m.deaf && q.ToNS > q.FromNS || m.observes != nil && m.observes(q) != nil {
		return source.Observation{}, errBroken
	}
	number, name := m.server()
	now, to := m.now, q.ToNS
	if number < len(m.behind) {
		now -= m.behind[number].Nanoseconds()
	}
	if to == 0 {
		to = now - q.SettleNS
	}
	prints := map[int64]source.Fingerprint{}
	m.seen(number, q.Tenants, func(e *rules.Exchange) {
		if e.StartTimeNS < q.FromNS || e.StartTimeNS >= to || !slices.Contains(q.Statuses, e.Status) {
			return
		}
		from := e.StartTimeNS - e.StartTimeNS%q.WidthNS
		if from < q.SplitNS && e.StartTimeNS >= q.SplitNS {
			from = q.SplitNS
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(e.TenantID + "\x00" + e.ExecutionID))
		p := prints[from]
		prints[from] = source.Fingerprint{FromNS: from, Count: p.Count + 1, Checksum: p.Checksum + h.Sum64()}
	})
	return source.Observation{Server: name, NowNS: now, Fingerprints: slices.Collect(maps.Values(prints))}, nil
}

func (m *model) RowCounts(_ context.Context, q source.RowCountQuery) (source.RowCounts, error) {
	if m.broken || m.deaf || m.uncounted {
		return source.RowCounts{}, errBroken
	}
	number, name := m.server()
	out := source.RowCounts{Server: name, Counts: make([]uint64, len(q.Ranges))}
	m.seen(number, q.Tenants, func(e *rules.Exchange) {
		for i, r := range q.Ranges {
			if e.StartTimeNS >= r.FromNS && e.StartTimeNS < r.ToNS {
				out.Counts[i]++
			}
		}
	})
	return out, nil
}

func (m *model) Scan(ctx context.Context, q source.Scan) (source.Page, error) {
	if deadline, bounded := ctx.Deadline(); bounded {
		m.within = time.Until(deadline)
	}
	if m.broken || m.mute || m.scans != nil && m.scans(q) != nil {
		return source.Page{}, errBroken
	}
	m.scanning = &q
	number, name := m.server()
	m.scanning = nil
	var all []rules.Exchange
	m.seen(number, q.Tenants, func(e *rules.Exchange) {
		if e.Position().After(q.After) && e.StartTimeNS < q.BeforeNS && slices.Contains(q.Statuses, e.Status) &&
			(len(q.Applications) == 0 || slices.Contains(q.Applications, e.Application)) && (q.EndedSinceNS == 0 || e.EndedNS() >= q.EndedSinceNS) &&
			(e.Status != rules.Completed || e.DurationNS >= q.CompletedLeastNS) {
			all = append(all, *e)
		}
	})
	slices.SortStableFunc(all, func(a, b rules.Exchange) int { return a.Position().Compare(b.Position()) })
	n := min(len(all), q.Limit)
	for n < len(all) && n > 0 && all[n].Position() == all[n-1].Position() {
		n++
	}
	return source.Page{Server: name, Exchanges: all[:n], More: n >= q.Limit}, nil
}

func (m *model) Hold(_ context.Context, r evaluator.HoldRequest) (evaluator.Holding, error) {
	h := evaluator.Holding{Now: time.Unix(0, m.now).Add(m.ahead), SourceFailed: slices.Sorted(maps.Keys(m.failing))}
	for _, n := range slices.Sorted(maps.Keys(m.state.checkpoints)) {
		c := m.state.checkpoints[n]
		if c.owner == "" {
			m.token++
			c.owner, c.Token = r.Replica, m.token
			m.state.checkpoints[n] = c
		}
		if c.owner == r.Replica {
			h.Checkpoints = append(h.Checkpoints, c.Checkpoint)
		}
	}
	return h, nil
}

// free ends the leases of a replica, of all when it has no name.
func (m *model) free(replica string) {
	for n, c := range m.state.checkpoints {
		if replica == "" || c.owner == replica {
			c.owner = ""
			m.state.checkpoints[n] = c
		}
	}
}

func (m *model) Rules(_ context.Context, partition int, after int64) (ruleset.Changed, error) {
	set := ruleset.Changed{Revision: m.state.checkpoints[partition].RulesRevision}
	for _, id := range slices.SortedFunc(maps.Keys(m.state.rules), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) {
		s := m.state.rules[id]
		if partitionOf(s.rule.TenantID) != partition || (s.changed <= after && after > 0) {
			continue
		}
		if s.rule.Enabled {
			set.Rules = append(set.Rules, ruleset.Stored{Rule: s.rule, Problem: s.problem})
		} else {
			set.Removed = append(set.Removed, id)
		}
	}
	for id, b := range m.state.backfills {
		if partitionOf(m.state.rules[id].rule.TenantID) == partition && m.state.rules[id].rule.Enabled {
			set.Backfills = append(set.Backfills, b)
		}
	}
	for _, p := range m.state.replays {
		if partitionOf(m.state.rules[p.RuleID].rule.TenantID) == partition && m.state.rules[p.RuleID].rule.Enabled && !p.Failed && !p.Done() {
			set.Replays = append(set.Replays, p.Replay)
		}
	}
	return set, nil
}

// change stores a rule, as a person's edit does.
func (m *model) change(r rules.Rule, fresh bool) {
	n := partitionOf(r.TenantID)
	c := m.state.checkpoints[n]
	c.RulesRevision++
	m.state.checkpoints[n] = c
	m.state.rules[r.ID] = ruleState{rule: r, changed: c.RulesRevision, problem: m.state.rules[r.ID].problem}
	if fresh {
		back := int64(r.LookBackSeconds) * second
		m.state.backfills[r.ID] = ruleset.Backfill{RuleID: r.ID, At: cursor.Position{StartTimeNS: r.ArmedSinceNS - back - backlog.WaitNS(back)}}
	}
	if !r.Enabled {
		delete(m.state.backfills, r.ID)
	}
}

func (m *model) Commit(_ context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	if m.committing != nil {
		if err := m.committing(b); err != nil {
			return evaluator.Committed{}, err
		}
	}
	c := m.state.checkpoints[b.Partition]
	if c.Token != b.Token || c.Revision != b.Revision || c.RulesRevision != b.RulesRevision {
		return evaluator.Committed{}, evaluator.ErrStale
	}
	if p := b.Replay; p != nil {
		if stored, there := m.state.replays[p.ID]; !there || stored.Failed || stored.Done() {
			return evaluator.Committed{}, evaluator.ErrStale
		}
	}
	for _, i := range b.Instances {
		if i.RuleID == m.refused {
			return evaluator.Committed{}, errRefused
		}
	}
	before := m.state.copy()
	c.Revision++
	c.Cursor, c.Backfill, c.Watch, c.ClockOffset = b.Cursor, b.Backfill, b.Watch, b.ClockOffset
	m.state.checkpoints[b.Partition] = c
	for _, f := range b.Backfills {
		if m.state.backfills[f.RuleID] = f; f.Done() {
			delete(m.state.backfills, f.RuleID)
		}
	}
	if p := b.Replay; p != nil {
		step := *p
		step.Matched += m.state.replays[p.ID].Matched
		m.state.replays[p.ID] = step
	}
	for id, h := range b.Health {
		s := m.state.rules[id]
		s.problem = h.Problem
		m.state.rules[id] = s
	}
	done := evaluator.Committed{Revision: c.Revision, Notifications: map[uuid.UUID]int{}}
	for _, i := range b.Instances {
		if m.has(i.RuleID, i.Exchange.ExecutionID) {
			continue
		}
		a := alert{rule: i.RuleID, key: i.Exchange.ExecutionID}
		for _, n := range b.Notifications {
			if n.AlertID == i.ID {
				a.notified++
				done.Notifications[n.WebhookID]++
			}
		}
		m.state.alerts[i.ID] = a
		done.Inserted = append(done.Inserted, i.ID)
	}
	m.states = append(m.states, before)
	return done, nil
}

// has is the unique constraint of alerts.
func (m *model) has(rule uuid.UUID, key string) bool {
	for _, a := range m.state.alerts {
		if a.rule == rule && a.key == key {
			return true
		}
	}
	return false
}

// failover takes the last commits back.
func (m *model) failover(n int) {
	if n = min(n, len(m.states)); n == 0 {
		return
	}
	m.state = m.states[len(m.states)-n].copy()
	m.states = m.states[:len(m.states)-n]
}

func (m *model) Release(_ context.Context, replica string, _ []int) error {
	m.free(replica)
	return nil
}

func (m *model) OpenAlerts(context.Context, []uuid.UUID) ([]alerts.OpenAlert, error) {
	return nil, nil
}

func (m *model) SourceFailed(ctx context.Context, _ string, partition int, _ string) (int, error) {
	if m.hang {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if m.failing[partition] {
		return 0, nil
	}
	m.failing[partition] = true
	m.announced["failed"]++
	return 1, nil
}

func (m *model) SourceRecovered(_ context.Context, partition int) (int, error) {
	if !m.failing[partition] {
		return 0, nil
	}
	delete(m.failing, partition)
	m.announced["recovered"]++
	return 1, nil
}

func (m *model) Publish(context.Context, notify.WakeUp) error { return nil }

func (m *model) Texts(*rules.Rule, *rules.Exchange) (title, message string, problem error) {
	return "title", "message", nil
}

func (m *model) CountTexts(*rules.Rule, *alerts.Count, *rules.Exchange) (title, message string, problem error) {
	return "title", "message", nil
}
