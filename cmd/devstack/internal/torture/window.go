//go:build unix

package torture

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// windowRule is what a rule over a window compares, in the checker's own words. There is one of each mode, and each
// groups by something else.
type windowRule struct {
	mode, groupBy, attribute string
	// threshold is a number of exchanges: at least so many are counted, or so many are expected.
	threshold int
	// percent is the least share of exchanges that match; at least 1 in 100 - percentile exchanges takes minMS or longer.
	percent    float64
	percentile int
	minMS      int64
	// expected are the groups of which exchanges are expected.
	expected []string
}

// The modes.
const (
	modeCount    = "COUNT_IN_WINDOW"
	modeShare    = "RATIO_IN_WINDOW"
	modeDuration = "DURATION_IN_WINDOW"
	modeAbsence  = "ABSENT_IN_WINDOW"
)

const (
	// enoughToCount is how many exchanges there must be for rules over a window.
	enoughToCount = 2000
	windowSeconds = 10
)

// windowRules are one rule of each mode. The thresholds are so low that no fault keeps a value below while exchanges come.
// So each group has exactly one alert from the time when its value reaches the threshold until the exchanges end, however
// often evaluation is interrupted. Then the window slides past them, and a straggler may lift a value once more: what
// fires after the end of the exchanges is held to what it counts, to its messages and to its state alone.
//
// Of absence it is the other way round: the routes that are expected are there while exchanges come, but one that falls
// silent for a while and one that there is not, and all of them are absent for good after the end.
func windowRules(o *Options) []rule {
	perWindow := float64(o.Exchanges) * min(1, windowSeconds/o.Length.Seconds())
	both := []string{"COMPLETED", "FAILED"}
	return []rule{
		{
			// Failures are 12 in 100, those of the rarest environment a fifth of them; the threshold is a tenth of that.
			name: ruleCounting, hooks: []string{"b"}, intervalSeconds: 1, title: "{{count.observed}}",
			window: &windowRule{mode: modeCount, groupBy: "ENVIRONMENT", threshold: max(1, int(perWindow*0.12/5/10))},
		},
		{
			name: ruleShare, hooks: []string{"a"}, intervalSeconds: 1, title: "{{count.observed}} of {{count.volume}}",
			window: &windowRule{mode: modeShare, groupBy: "ATTRIBUTE", attribute: "region", percent: 1.25},
		},
		{
			// Nearly half of all take as long.
			name: ruleDuration, hooks: []string{"c"}, intervalSeconds: 2, title: "{{count.observed}} of {{count.volume}}",
			condition: condition{statuses: both},
			window:    &windowRule{mode: modeDuration, groupBy: "APPLICATION", percentile: 95, minMS: 20},
		},
		{
			name: ruleAbsence, hooks: []string{"b", "c"}, intervalSeconds: 1, title: "{{count.observed}}",
			condition: condition{statuses: both},
			window:    &windowRule{mode: modeAbsence, groupBy: "ROUTE", threshold: 1, expected: []string{"order.sync", silentRoute, "nowhere"}},
		},
	}
}

// groups returns the groups that a rule has while exchanges come.
func (r *windowRule) groups() []string {
	switch r.mode {
	case modeCount:
		return []string{"production", "staging", "test"}
	case modeShare:
		return []string{"eu", "us", "", storedName("eu\x00")}
	case modeDuration:
		return []string{"orders", "orders-eu", "billing", "payments", "crm", "Lager/Süd"}
	default:
		return r.expected
	}
}

// group returns the group of an exchange, as it is stored.
func (r *windowRule) group(e *exchange) string {
	switch r.groupBy {
	case "ENVIRONMENT":
		return storedName(e.environment)
	case "APPLICATION":
		return storedName(e.application)
	case "ROUTE":
		return storedName(e.route)
	default:
		return storedName(e.attributes[r.attribute])
	}
}

// storedName returns a name as an alert shows it: what is no text, in hexadecimal.
func storedName(name string) string {
	if utf8.ValidString(name) && !strings.Contains(name, "\x00") {
		return name
	}
	return "hex:" + hex.EncodeToString([]byte(name))
}

// define adds to a definition what only such a rule has.
func (r *windowRule) define(definition map[string]any) {
	definition["fireMode"], definition["groupBy"], definition["windowSeconds"], definition["notifyOnResolve"] = r.mode, r.groupBy, windowSeconds, true
	if r.attribute != "" {
		definition["groupByAttribute"] = r.attribute
	}
	switch r.mode {
	case modeShare:
		definition["percent"], definition["minVolume"] = r.percent, 1
	case modeDuration:
		definition["percentile"], definition["durationMs"], definition["minVolume"] = r.percentile, r.minMS, 1
	case modeAbsence:
		definition["threshold"], definition["expected"] = r.threshold, r.expected
	default:
		definition["threshold"] = r.threshold
	}
}

// fires says whether a rule fires by what it counted.
func (r *windowRule) fires(observed, volume int64) bool {
	switch r.mode {
	case modeShare:
		return volume > 0 && 100*float64(observed) >= r.percent*float64(volume)
	case modeDuration:
		// Of a hundred, as many as the percentile says took no longer than its value: it is a short one where so many are.
		return volume > 0 && 100*(volume-observed) < int64(r.percentile)*volume
	case modeAbsence:
		return observed < int64(r.threshold)
	default:
		return observed >= int64(r.threshold)
	}
}

// settled says whether a rule on absence has an alert of all that it expects. Of other rules nothing is awaited.
func (l *life) settled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	if !l.rule.counts() || l.rule.window.mode != modeAbsence {
		return true, nil
	}
	var open int
	err := conn.QueryRow(ctx, `SELECT count(*) FROM alert WHERE rule_id = $1::text::uuid AND NOT health AND state = 'FIRING'`, l.id).Scan(&open)
	if err != nil {
		return false, fmt.Errorf("count absences: %w", err)
	}
	return open == len(l.rule.window.expected), nil
}
