package reconcile

import (
	"context"
	"slices"

	"tocsin/cursor"
	"tocsin/evaluator/backlog"
	"tocsin/rules"
)

// Comparison is what a comparison leaves for the next ones of the same rule. One comparison cannot see when an
// exchange became visible. Two can: if an exchange lacks its alert now, and the earlier comparison, made when the
// look-back had already passed the exchange, did not find it missing, then it was not visible at that time. So it
// became visible beyond the look-back.
//
// What the earlier comparison cannot prove is missing. Two things look like an exchange that was not visible: its alert
// existed and was deleted by hand, or the ClickHouse server that answered the earlier comparison lagged behind the one
// that the evaluation had read. A failover of Postgres is none of them: if it takes an alert away, it also takes away
// the comparisons after it.
type Comparison struct {
	// Version is that of the rule. After an edit, a comparison proves nothing about it.
	Version int64 `json:"version"`
	// PassedNS is the start time before which the rule no longer evaluated anything.
	PassedNS int64 `json:"passedNs"`
	// Parts are what was compared.
	Parts []Part `json:"parts"`
	// Late are the keys of exchanges that are late-dropped although they ran no longer than the rule
	// looks back, those found last first. They stay so if the rule is edited. If LateCutOff, more were
	// found than are listed.
	Late       []string `json:"late"`
	LateCutOff bool     `json:"lateCutOff"`
}

// Part is a range of ends that was compared.
type Part struct {
	FromNS int64 `json:"fromNs"`
	ToNS   int64 `json:"toNs"`
	// Missing are the keys of the exchanges that had no alert and were not late-dropped. If CutOff, there
	// were more than are listed.
	Missing []string `json:"missing"`
	CutOff  bool     `json:"cutOff"`
}

// mostKeys is how many keys each list of a comparison contains.
const mostKeys = 1000

// passedNS returns the start time before which a rule evaluates nothing any more, whatever becomes visible.
func (p *Progress) passedNS(rule *rules.Rule) int64 {
	lookBack := lookBackNS(rule)
	return p.LookBackFromNS - lookBack - backlog.WaitNS(lookBack)
}

// earlier looks up what an earlier comparison proves.
type earlier struct {
	*Comparison
	late map[string]bool
	// missing are the keys of each part.
	missing []map[string]bool
	// passedNS is where the look-back is now. It is before that of the earlier comparison if the
	// cursor was set back.
	passedNS int64
}

func earlierOf(rule *rules.Rule, progress *Progress) earlier {
	e := earlier{Comparison: progress.Earlier, passedNS: progress.passedNS(rule)}
	if e.Comparison == nil {
		e.Comparison = &Comparison{}
	}
	e.late = setOf(e.Late)
	for i := range e.Parts {
		e.missing = append(e.missing, setOf(e.Parts[i].Missing))
	}
	return e
}

// lateDropped reports whether an exchange without an alert became visible beyond the look-back.
func (e *earlier) lateDropped(rule *rules.Rule, key string, m Matched) bool {
	switch {
	case m.StartTimeNS >= e.passedNS:
		return false
	case e.late[key]:
		return true
	case e.Version != rule.Version || m.StartTimeNS >= e.PassedNS:
		return false
	}
	for i := range e.Parts {
		if p := &e.Parts[i]; m.EndedNS >= p.FromNS && m.EndedNS < p.ToNS {
			return !p.CutOff && !e.missing[i][key]
		}
	}
	return false
}

// uncounted returns how many of the exchanges that are late-dropped by proof no earlier comparison has counted. If that
// is not known, because there were more than are listed, it is 0.
func (e *earlier) uncounted(late []string) (n int64) {
	if e.LateCutOff {
		return 0
	}
	for _, key := range late {
		if !e.late[key] {
			n++
		}
	}
	return n
}

// next returns what a comparison leaves that found exchanges late-dropped by proof.
func (e *earlier) next(version int64, late []string) *Comparison {
	next := &Comparison{Version: version, PassedNS: e.passedNS, LateCutOff: len(late) > mostKeys}
	found := setOf(late)
	for _, key := range e.Late {
		if !found[key] {
			late = append(late, key)
		}
	}
	next.Late = late[:min(len(late), mostKeys)]
	return next
}

// add adds what was compared, and the keys of the exchanges that had no alert and were not late-dropped.
func (c *Comparison) add(compared cursor.Range, missing []string) {
	if compared.FromNS < compared.ToNS {
		c.Parts = append(c.Parts, Part{compared.FromNS, compared.ToNS, slices.Clone(missing[:min(len(missing), mostKeys)]), len(missing) > mostKeys})
	}
}

// behind compares what ended behind the look-back of a rule, if that is an hour or longer, before a range that is
// compared as well. It only counts what is late-dropped by proof. For the rest, it is too late to say whether it is
// missing: it was compared when it ended, or became visible around the end of the look-back.
func (r *Reconciler) behind(ctx context.Context, c *comparing, eras []rules.Era, beforeNS int64) (cursor.Range, error) {
	if r.Behind == 0 || lookBackNS(c.rule) < hourNS {
		return cursor.Range{}, nil
	}
	passedNS := c.earlier.passedNS
	ended := cursor.Range{FromNS: max(passedNS-r.Behind.Nanoseconds(), eras[0].FromNS), ToNS: min(passedNS, beforeNS)}
	return ended, r.eras(ctx, c, eras, ended)
}

func setOf(keys []string) map[string]bool {
	set := make(map[string]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}
