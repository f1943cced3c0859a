package evaluator_test

import (
	"cmp"
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
	"tocsin/notify"
	"tocsin/rules"
)

var errDied = errors.New("the process died")

// model is a source and a store in memory.
type model struct {
	// latest is the latest instant that a tick or the clock has seen, read the
	// latest that a scan reached up to.
	now, latest, read int64
	// ahead is how far the clock of the source is ahead of the store's.
	ahead int64
	rows  []rules.Exchange
	rules map[uuid.UUID]*state
	// alerts counts the alerts of each rule and execution, notified what is owed.
	alerts, notified map[string]int
	token            int64
	cohorts          map[uuid.UUID]*cohort
	// late lets any replica claim any cohort.
	late bool
	// meanwhile runs once, at the so many-th call from now on.
	meanwhile func()
	calls     int
	// offered is how many alerts commits were given, known ones among them.
	offered int
	// refused is a rule whose alerts the store refuses; broken fails scans, and
	// untellable has a problem with each text.
	refused            uuid.UUID
	broken, untellable bool
	// dieBefore and dieAfter are the number of commits until one never arrives,
	// or is written without anybody learning of it; 0 is never.
	dieBefore, dieAfter int
}

type state struct {
	rule   rules.Rule
	cursor *cursor.Position
	// owed is what commits said to be owed.
	owed  *int64
	token int64
	// cohort is nil for a rule that is alone.
	cohort *cohort
}

// cohort is what [state] is, of several rules; its token is 0 while it is not claimed.
type cohort struct {
	claim  evaluator.CohortClaim
	cursor cursor.Position
	owed   *int64
	token  int64
	home   string
}

// called lets happen what is to happen at this moment.
func (m *model) called() {
	if m.calls--; m.calls == 0 && m.meanwhile != nil {
		happen := m.meanwhile
		m.meanwhile = nil
		happen()
	}
}

func (m *model) Now(context.Context) (int64, error) {
	m.latest = max(m.latest, m.now)
	return m.now + m.ahead, nil
}

func (m *model) Clock(context.Context) (time.Time, error) {
	m.called()
	return time.Unix(0, m.now), nil
}

func (m *model) Scan(_ context.Context, s evaluator.Scan) ([]rules.Exchange, error) {
	m.called()
	m.read = max(m.read, s.BeforeNS)
	if m.broken {
		return nil, errors.New("the source is broken")
	}
	var page []rules.Exchange
	for _, e := range m.rows {
		if e.Position().After(s.After) && e.StartTimeNS < s.BeforeNS && slices.Contains(s.Statuses, e.Status) &&
			(len(s.Applications) == 0 || slices.Contains(s.Applications, e.Application)) && (s.EndedSinceNS == 0 || e.EndedNS() >= s.EndedSinceNS) &&
			(e.Status != rules.Completed || e.DurationNS >= s.CompletedLeastNS) {
			page = append(page, e)
		}
	}
	slices.SortStableFunc(page, func(a, b rules.Exchange) int { return a.Position().Compare(b.Position()) })
	return page[:min(len(page), s.Limit)], nil
}

func (m *model) Fingerprints(_ context.Context, q evaluator.FingerprintQuery) ([]evaluator.Fingerprint, error) {
	m.called()
	type key struct {
		status rules.Status
		bucket int64
		fresh  bool
	}
	prints := map[key]evaluator.Fingerprint{}
	for _, e := range m.rows {
		if e.StartTimeNS < q.FromNS || e.StartTimeNS >= q.ToNS || !slices.Contains(q.Statuses, e.Status) {
			continue
		}
		k := key{e.Status, e.StartTimeNS / q.WidthNS, e.StartTimeNS >= q.EdgeNS}
		h := fnv.New64a()
		_, _ = h.Write([]byte(e.ExecutionID))
		p := prints[k]
		prints[k] = evaluator.Fingerprint{Status: k.status, Bucket: k.bucket, Fresh: k.fresh, Count: p.Count + 1, Checksum: p.Checksum + h.Sum64()}
	}
	return slices.Collect(maps.Values(prints)), nil
}

func (m *model) Rows(_ context.Context, _ string, fromNS, toNS int64) (rows uint64, err error) {
	m.called()
	for _, e := range m.rows {
		if e.StartTimeNS >= fromNS && e.StartTimeNS < toNS {
			rows++
		}
	}
	return rows, nil
}

func (m *model) Load(_ context.Context, request evaluator.ClaimRequest) (evaluator.Loaded, error) {
	var claims []evaluator.Claim
	for _, s := range m.rules {
		if s.cohort != nil {
			continue
		}
		m.token++
		s.token = m.token
		claims = append(claims, evaluator.Claim{Rule: s.rule, Token: s.token, From: s.cursor, OwedFromNS: s.owed, Now: time.Unix(0, m.now)})
	}
	for _, c := range m.cohorts {
		if c.home != request.Replica && !m.late {
			continue
		}
		m.token++
		c.token, c.home = m.token, request.Replica
		said, at := c.claim, c.cursor
		claims = append(claims, evaluator.Claim{Cohort: &said, Token: c.token, From: &at, OwedFromNS: c.owed, Now: time.Unix(0, m.now)})
	}
	slices.SortFunc(claims, func(a, b evaluator.Claim) int { return cmp.Compare(a.Rule.Name, b.Rule.Name) })
	return evaluator.Loaded{Claims: claims}, nil
}

func (m *model) Members(_ context.Context, id uuid.UUID) ([]evaluator.Member, error) {
	m.called()
	var members []evaluator.Member
	for _, s := range m.rules {
		if s.cohort != nil && s.cohort.claim.ID == id {
			members = append(members, evaluator.Member{RuleID: s.rule.ID, Version: s.rule.Version, ArmedSinceNS: s.rule.ArmedSinceNS})
		}
	}
	return members, nil
}

func (m *model) Definitions(_ context.Context, ids []uuid.UUID) ([]evaluator.Claim, error) {
	m.called()
	var read []evaluator.Claim
	for _, id := range ids {
		read = append(read, evaluator.Claim{Rule: m.rules[id].rule})
	}
	return read, nil
}

// leave has a member go on alone.
func (m *model) leave(s *state) {
	if s.cohort != nil {
		at := s.cohort.cursor
		s.cohort.claim.Revision++
		s.owed = s.cohort.owed
		s.cohort, s.cursor, s.token = nil, &at, 0
	}
}

func (m *model) Leave(_ context.Context, l evaluator.Leaving) ([]uuid.UUID, error) {
	m.called()
	if died(&m.dieBefore) {
		panic(errDied)
	}
	c := m.cohorts[l.Cohort]
	if c == nil || c.token != l.Token {
		return nil, nil
	}
	var left []uuid.UUID
	members := 0
	for id, s := range m.rules {
		if s.cohort != c {
			continue
		}
		if l.Rules == nil || slices.Contains(l.Rules, id) {
			m.leave(s)
			left = append(left, id)
			continue
		}
		members++
	}
	if members == 0 {
		delete(m.cohorts, l.Cohort)
	}
	if died(&m.dieAfter) {
		panic(errDied)
	}
	return left, nil
}

func (m *model) Join(_ context.Context, j evaluator.Joining) (joined int, err error) {
	m.called()
	if died(&m.dieBefore) {
		panic(errDied)
	}
	c := m.cohorts[j.Cohort.ID]
	if j.New {
		c = &cohort{claim: j.Cohort, cursor: j.To, home: j.Replica}
		c.claim.Revision = 1
	}
	if c == nil || c.token != 0 || c.home != j.Replica || c.cursor.After(j.To) || j.NotBefore.After(c.cursor) {
		return 0, nil
	}
	var fit []*state
	for i, member := range j.Rules {
		s := m.rules[member.RuleID]
		// Each fifth is being edited just now.
		if (m.token+int64(i))%5 == 0 || s.cohort != nil || s.owed != nil || s.token != 0 || s.rule.Version != member.Version || c.cursor.After(*s.cursor) {
			continue
		}
		fit = append(fit, s)
	}
	if len(fit) == 0 || (j.New && len(fit) < j.Least) {
		return 0, nil
	}
	for _, s := range fit {
		s.cohort, s.cursor = c, nil
	}
	c.claim.Revision++
	m.cohorts[c.claim.ID] = c
	if died(&m.dieAfter) {
		panic(errDied)
	}
	return len(fit), nil
}

// advanceCohorts returns the members that found something.
func (m *model) advanceCohorts(b evaluator.Batch, done *evaluator.Committed) (finders map[uuid.UUID]bool) {
	finders = map[uuid.UUID]bool{}
	for _, a := range b.Cohorts {
		c := m.cohorts[a.ID]
		if c == nil || c.token != a.Token || c.cursor != a.From {
			continue
		}
		c.cursor, c.owed = a.To, a.OwedFromNS
		if a.Release {
			c.token = 0
		}
		done.Cohorts = append(done.Cohorts, a.ID)
		for _, f := range a.Finders {
			if s := m.rules[f.RuleID]; s.cohort == c && s.rule.Version == f.Version {
				finders[f.RuleID] = true
			} else {
				done.Strayed++
			}
		}
		for id := range a.Problems {
			if m.rules[id].cohort == c {
				m.leave(m.rules[id])
			}
		}
	}
	return finders
}

var errRefused = errors.New("the store refuses an alert")

func (m *model) Commit(_ context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	m.called()
	if died(&m.dieBefore) {
		panic(errDied)
	}
	for _, i := range b.Instances {
		if i.RuleID == m.refused {
			return evaluator.Committed{}, errRefused
		}
	}
	var done evaluator.Committed
	advanced := m.advanceCohorts(b, &done)
	for _, a := range b.Advances {
		s := m.rules[a.RuleID]
		same := (a.From == nil && s.cursor == nil) || (a.From != nil && s.cursor != nil && *a.From == *s.cursor)
		if !same || s.token != a.Token || s.rule.Version != a.Version {
			continue
		}
		to := a.To
		s.cursor, s.owed, advanced[a.RuleID] = &to, a.OwedFromNS, true
		if a.Release {
			s.token = 0
		}
		done.Advanced = append(done.Advanced, a.RuleID)
	}
	inserted := map[uuid.UUID]bool{}
	m.offered += len(b.Instances)
	for _, i := range b.Instances {
		k := fmt.Sprint(i.RuleID, i.Exchange.ExecutionID)
		if !advanced[i.RuleID] || m.alerts[k] > 0 {
			continue
		}
		m.alerts[k]++
		inserted[i.ID] = true
		done.Inserted = append(done.Inserted, i.ID)
		for _, n := range b.Notifications {
			if n.AlertID == i.ID {
				m.notified[k]++
				done.Notifications++
			}
		}
	}
	if died(&m.dieAfter) {
		panic(errDied)
	}
	return done, nil
}

func died(countdown *int) bool {
	if *countdown == 0 {
		return false
	}
	*countdown--
	return *countdown == 0
}

func (m *model) Fail(_ context.Context, c []evaluator.Claim, problem string) ([]uuid.UUID, error) {
	if m.broken || m.refused != uuid.Nil || m.ahead > 0 {
		return nil, nil
	}
	return nil, fmt.Errorf("rule %s: %s", c[0].Rule.Name, problem)
}

func (m *model) Announce(context.Context, []alerts.Instance) (int, error) { return 0, nil }

func (m *model) Publish(context.Context, notify.WakeUp) error { return nil }

func (m *model) Texts(*rules.Rule, *rules.Exchange) (title, message string, problem error) {
	if m.untellable {
		problem = errors.New("the template does not work out")
	}
	return "title", "message", problem
}

func (m *model) CountWindows(context.Context, []evaluator.WindowQuery) ([][]evaluator.GroupCount, error) {
	return nil, errors.New("no rule counts")
}

func (m *model) Tally(context.Context, evaluator.TallyQuery) ([]evaluator.Tally, bool, error) {
	return nil, false, errors.New("no rule counts")
}

func (m *model) Newest(context.Context, evaluator.WindowQuery, []evaluator.GroupCount) ([]rules.Exchange, error) {
	return nil, errors.New("the model counts nothing")
}

func (m *model) CountTexts(*rules.Rule, *alerts.Count, *rules.Exchange) (title, message string, problem error) {
	return "title", "message", nil
}
