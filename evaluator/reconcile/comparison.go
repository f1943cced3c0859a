package reconcile

import (
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
	// FromNS and ToNS are the range of ends that was compared.
	FromNS int64 `json:"fromNs"`
	ToNS   int64 `json:"toNs"`
	// Missing are the keys of the missing exchanges. If CutOff, there were more than are listed.
	Missing []string `json:"missing"`
	CutOff  bool     `json:"cutOff"`
	// Late are the keys of exchanges that are late-dropped although they ran no longer than the rule
	// looks back, those found last first. They stay so if the rule is edited. If LateCutOff, more were
	// found than are listed.
	Late       []string `json:"late"`
	LateCutOff bool     `json:"lateCutOff"`
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
	missing, late map[string]bool
	// passedNS is where the look-back is now. It is before that of the earlier comparison if the
	// cursor was set back.
	passedNS int64
	// proves says that the lists are complete, and the rule is the same as then.
	proves bool
}

func earlierOf(rule *rules.Rule, progress *Progress) earlier {
	e := earlier{Comparison: progress.Earlier, passedNS: progress.passedNS(rule)}
	if e.Comparison == nil {
		e.Comparison = &Comparison{}
	}
	e.missing, e.late = setOf(e.Missing), setOf(e.Late)
	e.proves = e.Version == rule.Version && !e.CutOff
	return e
}

// lateDropped reports whether an exchange without an alert became visible beyond the look-back.
func (e *earlier) lateDropped(key string, m Matched) bool {
	switch {
	case m.StartTimeNS >= e.passedNS:
		return false
	case e.late[key]:
		return true
	default:
		return e.proves && m.StartTimeNS < e.PassedNS && m.EndedNS >= e.FromNS && m.EndedNS < e.ToNS && !e.missing[key]
	}
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

// next returns what a comparison leaves that found exchanges missing, and late-dropped by proof.
func (e *earlier) next(version int64, compared cursor.Range, missing, late []string) *Comparison {
	next := &Comparison{
		Version: version, PassedNS: e.passedNS, FromNS: compared.FromNS, ToNS: compared.ToNS,
		Missing: slices.Clone(missing[:min(len(missing), mostKeys)]), CutOff: len(missing) > mostKeys, LateCutOff: len(late) > mostKeys,
	}
	found := setOf(late)
	for _, key := range e.Late {
		if !found[key] {
			late = append(late, key)
		}
	}
	next.Late = late[:min(len(late), mostKeys)]
	return next
}

func setOf(keys []string) map[string]bool {
	set := make(map[string]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}
