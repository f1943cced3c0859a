package simulate

import (
	"github.com/google/uuid"

	"tocsin/evaluator/ruleset"
	"tocsin/internal/simulate/model"
	"tocsin/rules"
)

// replayTruth is a replay that a user began: the rule at that time, and the range.
type replayTruth struct {
	id, rule     uuid.UUID
	def          rules.Definition
	fromNS, toNS int64
	messages     ruleset.ReplayMessages
	// begunNS is when it began, in true time; done says that its end was seen.
	begunNS int64
	done    bool
}

// covers reports whether a replay may raise an alert about an exchange.
func (p *replayTruth) covers(e *exchange) bool {
	return e.startNS >= p.fromNS && e.startNS < p.toNS && matches(&p.def, e)
}

// replayed returns how many replays of a rule may raise an alert about an exchange, and how many of
// these without messages.
func (t *truth) replayed(r *ruleTruth, e *exchange) (n, quiet int) {
	if e.tenant != r.tenant {
		return 0, 0
	}
	for _, p := range t.replays {
		if p.rule != r.id || !p.covers(e) {
			continue
		}
		if n++; p.messages == ruleset.ReplayNone {
			quiet++
		}
	}
	return n, quiet
}

// checkReplays checks that a completed replay has omitted nothing that every server showed when it
// began.
func (w *world) checkReplays() {
	t := &w.truth
	for _, p := range t.replays {
		row, there := w.db.Replay(p.id)
		if p.done || !there || row.State != model.ReplayDone {
			continue
		}
		p.done = true
		w.stats.Replays++
		r, known := t.rules[p.rule]
		if !known {
			continue
		}
		stored, _ := w.db.Rule(p.rule)
		for _, e := range t.exchanges {
			if e.tenant != r.tenant || e.visibleNS > p.begunNS || !p.covers(e) || e.startNS < stored.RetentionFloorNS {
				continue
			}
			if known := t.pairs[pairKey{p.rule, e.id}]; known != nil && known.deleted {
				continue
			}
			if _, alerted := w.db.AlertOf(p.rule, e.id); !alerted {
				w.violate("P1", "replay %s of rule %s is done, and %s, which began at %s, has no alert", short(p.id), short(p.rule), e.id, w.instant(e.startNS))
			}
		}
	}
}
