package ruleset

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/routing"
	"tocsin/cursor"
	"tocsin/evaluator/retry"
	"tocsin/rules"
)

// Changed is what changed in the rules of a partition.
type Changed struct {
	// Revision is the rules revision that the set belongs to.
	Revision int64
	// Rules are those that changed and are enabled; Removed those that changed and are
	// disabled, deleted or of another partition now.
	Rules   []Stored
	Removed []uuid.UUID
	// Backfills and Replays are all of the partition.
	Backfills []Backfill
	Replays   []Replay
}

// Stored is a rule as it was read, or why it cannot be.
type Stored struct {
	Rule rules.Rule
	// Router is the tenant's routing policy as of the rules revision, where the rule
	// uses it; else nil. A policy that cannot be read is an Err: those whom it would notify
	// are notified once it is repaired, when the rule catches up.
	Router *routing.Router
	// Problem is what is recorded on the rule.
	Problem string
	Err     error
}

// Backfill is the progress of a rule that is an exception: it is new, it failed, or a
// part of its exchanges was deferred. The row is deleted once it has caught up.
type Backfill struct {
	RuleID uuid.UUID
	// At is how far the rule has come.
	At cursor.Position
	// Until is where the partition's own evaluation of the rule begins; nil until the
	// partition evaluates the rule.
	Until *cursor.Position
	// Failing says that the rule cannot be evaluated: the partition leaves it out.
	Failing bool
	// Refused is the range of the exchanges about which the database refused the alerts of a
	// rule that fails: it has recovered once it gets past them. Nil where nothing was refused.
	Refused *cursor.Range
	// Err tells why the stored position cannot be read. Nobody knows how far the rule has
	// come: it fails until a person arms it again, and what is stored stays.
	Err error
}

// Done reports whether the rule has caught up.
func (b *Backfill) Done() bool { return !b.Failing && b.Until != nil && !b.Until.After(b.At) }

// Advanced returns it after a commit that took the rule to a position, and the partition to partitionAt. The
// database accepts what it refused before, and the partition evaluates a rule that failed again.
func (b *Backfill) Advanced(to cursor.Position, partitionAt *cursor.Position) Backfill {
	next := *b
	if to.After(b.At) {
		next.At = to
	}
	if next.Refused = nil; b.Failing {
		next.Failing, next.Until = false, partitionAt
	}
	return next
}

// Replay is a range of start times that a person asked to be evaluated again by a rule. The
// store ends it where the rule is disabled, deleted, or given another condition, and where a
// person cancels it; each is a change of the rule.
type Replay struct {
	ID, RuleID uuid.UUID
	// At is how far it has come, ToNS where it ends, exclusive.
	At       cursor.Position
	ToNS     int64
	Messages ReplayMessages
}

// ReplayMessages says how a replay notifies.
type ReplayMessages string

// The ways to notify.
const (
	// ReplayNone writes no notifications.
	ReplayNone ReplayMessages = "NONE"
	// ReplayDigest gathers them into one digest for each webhook, to be sent when the replay
	// ends, however it does.
	ReplayDigest ReplayMessages = "DIGEST"
	// ReplayEach writes them as usual.
	ReplayEach ReplayMessages = "EACH"
)

// ReplayStep is how far a batch takes a replay.
type ReplayStep struct {
	Replay

	// Matched is how many more exchanges match.
	Matched int
	// Problem tells why it does not come further; empty where nothing is wrong.
	Problem string
	// Failed ends it by the problem. It is done where At has come to ToNS.
	Failed bool
}

// Done reports whether the step takes the replay to its end.
func (s *ReplayStep) Done() bool { return s.At.StartTimeNS >= s.ToNS }

// NextRange returns what the rules of [Set.Behind] read next: what begins after a position and before an
// instant, and how far they come by that.
func NextRange(list []*Rule, partitionAt cursor.Position) (after cursor.Position, beforeNS int64, end cursor.Position) {
	lead := list[0].Backfill
	if at := lead.Refused; at != nil {
		// Before it reads from where it is, it has to get past what was refused.
		return cursor.Position{StartTimeNS: at.FromNS - 1, ExecutionID: lead.At.ExecutionID}, at.ToNS, lead.At
	}
	if end = partitionAt; !list[0].Failing {
		end = *slices.MaxFunc(list, func(a, b *Rule) int { return a.Backfill.Until.Compare(*b.Backfill.Until) }).Backfill.Until
	}
	if to := list[0].Span.EndNS(lead.At); to <= end.StartTimeNS {
		end = cursor.Position{StartTimeNS: to}
		return lead.At, to, end
	}
	return lead.At, end.StartTimeNS + 1, end
}

// Defer leaves what lies between two positions to backfills of a tenant's rules, and returns these. A backfill that
// ends later still does: by another server's clock, a watermark may be before that of the last pass.
func (s *Set) Defer(tenant string, from, to cursor.Position) (deferred []Backfill) {
	t := s.tenants[tenant]
	if t == nil {
		return nil
	}
	for _, r := range t.Rules {
		switch {
		case r.Failing:
			continue
		case r.Backfill == nil:
			s.Except(r, &Backfill{RuleID: r.ID, At: from})
		case from.Compare(r.Backfill.At) < 0:
			r.Backfill.At = from
		}
		if until := r.Backfill.Until; until == nil || to.After(*until) {
			r.Backfill.Until = &to
		}
		deferred = append(deferred, *r.Backfill)
	}
	return deferred
}

// Replaying is a replay as a process knows it. Problem is what is recorded.
type Replaying struct {
	Replay
	retry.Span

	Problem string
}

// takeReplays takes over the replays of a partition. What is known of one stays.
func (s *Set) takeReplays(list []Replay) {
	known := map[uuid.UUID]*Replaying{}
	for _, r := range s.replays {
		known[r.Replay.ID], r.Replay = r.Replay, nil
	}
	s.replays = nil
	for i := range list {
		r := s.byID[list[i].RuleID]
		if r == nil || r.Judge == nil || r.FireMode != rules.PerExchange {
			continue
		}
		if r.Replay = known[list[i].ID]; r.Replay == nil {
			r.Replay = &Replaying{Span: retry.SpanOf(hourNS)}
		}
		r.Replay.Replay = list[i]
		s.replays = append(s.replays, r)
	}
	slices.SortFunc(s.replays, func(a, b *Rule) int { return slices.Compare(a.ID[:], b.ID[:]) })
}

// Replayed takes over how far a commit took a replay.
func (s *Set) Replayed(to *ReplayStep) {
	r := s.byID[to.RuleID]
	if r.Replay.Replay, r.Replay.Problem = to.Replay, to.Problem; to.Failed || to.Done() {
		r.Replay = nil
		s.replays = slices.DeleteFunc(s.replays, func(o *Rule) bool { return o == r })
	}
}

// NextReplay returns the rule whose replay comes after that of another rule; nil where none can be
// read now up to the watermark.
func (s *Set) NextReplay(after uuid.UUID, watermarkNS int64, now time.Time) (first *Rule) {
	for _, r := range s.replays {
		if r.Failing || r.Replay.Waits(now) || r.Replay.At.StartTimeNS >= watermarkNS {
			continue
		}
		if slices.Compare(after[:], r.ID[:]) < 0 {
			return r
		}
		if first == nil {
			first = r
		}
	}
	return first
}
