// Package explain says for one exchange, rule by rule, why there is an alert or why there is none.
//
// It evaluates by the same conditions as the evaluation. For each rule it knows what is stored: its
// conditions with the times at which they were in force, its progress, and its alert. The
// explanation is true at that moment. It changes nothing.
package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// Verdict is the result of a rule for an exchange.
type Verdict string

// The verdicts, in the order in which people look for them.
const (
	// Alerted means that the exchange has its alert.
	Alerted Verdict = "ALERTED"
	// Counted means that the exchange matches a window rule, and counts while it is in the window.
	Counted Verdict = "COUNTED"
	// Waiting means that the exchange matches and is still to be evaluated.
	Waiting Verdict = "WAITING"
	// Failing means that the rule is skipped, because it cannot be evaluated.
	Failing Verdict = "FAILING"
	// BeyondLookBack means that the exchange matches, but became visible beyond the rule's
	// look-back.
	BeyondLookBack Verdict = "BEYOND_LOOK_BACK"
	// Expired means that the exchange matches, but is so old that retention may have deleted its
	// alert.
	Expired Verdict = "EXPIRED"
	// NotArmed means that the exchange ended before the rule was armed.
	NotArmed Verdict = "NOT_ARMED"
	// Disabled means that the rule is disabled.
	Disabled Verdict = "DISABLED"
	// NotMatched means that the exchange does not meet the condition in force at its time.
	NotMatched Verdict = "NOT_MATCHED"
)

// Verdicts returns all verdicts in their order.
func Verdicts() []Verdict {
	return []Verdict{Alerted, Counted, Waiting, Failing, BeyondLookBack, Expired, NotArmed, Disabled, NotMatched}
}

// RuleState is what is stored about a rule.
type RuleState struct {
	// Rule includes its former conditions and RetentionFloorNS.
	Rule rules.Rule
	// Err says why the rule, or its progress, cannot be read.
	Err error
	// Failing says that the rule is skipped; Problem says why.
	Failing bool
	Problem string
	// JudgedNS is the start time before which the rule has evaluated everything except in its
	// look-back; nil before its first pass. CursorNS is the base of the look-back.
	JudgedNS, CursorNS *int64
	// Alert is the alert about the exchange, if there is one.
	Alert *Alert
}

// Alert names an alert.
type Alert struct {
	ID    uuid.UUID
	State alerts.State
	// Messages is how many messages there are about it, Suppressed how many of them silences suppressed.
	Messages, Suppressed int
}

// detail says what became of an alert. If no message was sent because of a silence, it says so.
func (a *Alert) detail() string {
	text := "It has an alert, which is " + strings.ToLower(string(a.State)) + "."
	switch {
	case a.Suppressed == 0:
		return text
	case a.Suppressed < a.Messages:
		return fmt.Sprintf("%s Silences suppressed %d of its %d messages.", text, a.Suppressed, a.Messages)
	default:
		return text + " It was silenced: silences suppressed all its messages."
	}
}

// Explanation is the verdict of a rule about an exchange, with its reason.
type Explanation struct {
	RuleID   uuid.UUID
	RuleName string
	Verdict  Verdict
	// Detail is the reason, in a sentence.
	Detail string
	// Unmet are the parts of the condition that the exchange does not meet, by their paths in a
	// definition. For a rule that is disabled or was not armed, they are those of the present
	// condition, and an empty list means that it would match.
	Unmet []string
	Alert *Alert
}

// Explain returns the verdict of a rule about an exchange that has ended.
func Explain(e *rules.Exchange, s *RuleState) Explanation {
	x := Explanation{RuleID: s.Rule.ID, RuleName: s.Rule.Name, Alert: s.Alert}
	if s.Alert != nil {
		return x.say(Alerted, "%s", s.Alert.detail())
	}
	present, former, err := conditions(&s.Rule)
	if s.Err != nil {
		err = s.Err
	}
	if err != nil {
		return x.say(Failing, "The rule cannot be evaluated: %v.", err)
	}
	x.Unmet = present.Unmet(e)
	if !s.Rule.Enabled {
		return x.say(Disabled, "The rule is disabled. If it were enabled, %s.", would(x.Unmet))
	}
	ended := e.EndedNS()
	if ended < s.Rule.ArmedSinceNS {
		was := -1
		for i, era := range s.Rule.Former {
			if ended >= era.FromNS && ended < era.ToNS {
				was = i
			}
		}
		if was < 0 {
			return x.say(NotArmed, "It ended before the rule was armed, at %s. With the current condition, %s.", instant(s.Rule.ArmedSinceNS), would(x.Unmet))
		}
		x.Unmet = former[was].Unmet(e)
		if len(x.Unmet) > 0 {
			return x.say(NotMatched, "It ended before the edit of %s, and does not meet the condition of that time.", instant(s.Rule.Former[was].ToNS))
		}
	}
	if s.Rule.FireMode == rules.RatioInWindow && len(x.Unmet) > 0 && !slices.ContainsFunc(x.Unmet, func(field string) bool { return strings.HasPrefix(field, "scope.") }) {
		return x.say(NotMatched, "It does not meet the filter, so it counts only in the volume from which the ratio is calculated.")
	}
	if len(x.Unmet) > 0 {
		return x.say(NotMatched, "It does not meet the condition.")
	}
	return x.matched(e, s)
}

// conditions compiles the conditions of a rule.
func conditions(r *rules.Rule) (present *rules.Matcher, former []*rules.Matcher, err error) {
	if present, err = rules.Compile(r.Scope, r.Filter); err != nil {
		return nil, nil, fmt.Errorf("read condition: %w", err)
	}
	for _, era := range r.Former {
		m, err := rules.Compile(era.Scope, era.Filter)
		if err != nil {
			return nil, nil, fmt.Errorf("read former condition: %w", err)
		}
		former = append(former, m)
	}
	return present, former, nil
}

// matched explains why an exchange that matches has no alert.
func (x Explanation) matched(e *rules.Exchange, s *RuleState) Explanation {
	r := &s.Rule
	switch {
	case s.Failing:
		return x.say(Failing, "It matches, and will be evaluated when the rule can be evaluated again: %s.", strings.TrimSuffix(s.Problem, "."))
	case r.FireMode != rules.PerExchange:
		// The first window that it can count in ends right after the exchange.
		if e.StartTimeNS < counting.StartFromNS(r.WindowSeconds, e.EndedNS()+1) {
			return x.say(BeyondLookBack, "It matches, but ran for longer than the exchanges that a window of this length counts.")
		}
		// A rule with an empty list learns what it expects.
		if listed := r.ExpectedGroups(); r.FireMode == rules.AbsentInWindow && len(listed) > 0 && !slices.Contains(listed, r.Grouping().Of(e)) {
			return x.say(Counted, "It matches, but its group is not one from which the rule expects exchanges.")
		}
		return x.say(Counted, "It matches, and counts in each window of %s that contains its end.", words(time.Duration(r.WindowSeconds)*time.Second))
	case e.StartTimeNS < r.RetentionFloorNS:
		return x.say(Expired, "It matches, but is so old that its alert may have been deleted.")
	case s.JudgedNS == nil || s.CursorNS == nil || e.StartTimeNS >= *s.JudgedNS:
		return x.say(Waiting, "It matches, but has not been evaluated yet.")
	}
	lookBack := int64(r.LookBackSeconds) * int64(time.Second)
	if e.StartTimeNS < *s.CursorNS-lookBack-backlog.WaitNS(lookBack) {
		return x.say(BeyondLookBack, "It matches, but became visible more than %s after it started. The rule does not look back further.",
			words(time.Duration(lookBack)))
	}
	return x.say(Waiting, "It matches, became visible behind the cursor, and will be evaluated within %s.", words(time.Duration(backlog.WaitNS(lookBack))))
}

// words formats a duration in the largest unit of which it is a whole number.
func words(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if d >= unit.of && d%unit.of == 0 {
			return fmt.Sprintf("%d %s", d/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

func (x Explanation) say(v Verdict, format string, args ...any) Explanation {
	x.Verdict, x.Detail = v, fmt.Sprintf(format, args...)
	return x
}

// would says whether a condition that is not in force is met.
func would(unmet []string) string {
	if len(unmet) == 0 {
		return "it would match"
	}
	return "it would not match"
}

func instant(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }
