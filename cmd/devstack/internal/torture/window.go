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

// windowRule is what a window rule compares, in the checker's own terms. There is one of each mode,
// and each groups by another field.
type windowRule struct {
	mode, groupBy, attribute string
	// threshold is a number of exchanges: the least number that is counted, or that is expected.
	threshold int
	// percent is the least share of exchanges that match; at least 1 in 100 - percentile exchanges
	// takes minMS or longer.
	percent    float64
	percentile int
	minMS      int64
	// expected are the groups whose exchanges are expected.
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
	// enoughToCount is the least number of exchanges that window rules need.
	enoughToCount = 2000
	windowSeconds = 10
)

// windowRules are one rule of each mode. The thresholds are so low that no fault keeps a value
// below them while exchanges arrive. So each group has exactly one alert from the time when its
// value reaches the threshold until the exchanges end, however often evaluation is interrupted.
// Afterwards the window slides past them, and a late exchange may raise a value once more: for an
// alert that fires after the end of the exchanges only its count, its messages and its state are
// checked.
//
// For absence it is the reverse: the expected routes are there while exchanges arrive, except one
// that is silent for a while and one that does not exist, and all of them are absent for good after
// the end.
func windowRules(o *Options) []rule {
	perWindow := float64(o.Exchanges) * min(1, windowSeconds/o.Length.Seconds())
	both := []string{"COMPLETED", "FAILED"}
	return []rule{
		{
			// Failures are 12 in 100, and those of the rarest environment a fifth of them; the
			// threshold is a tenth of that.
			name: ruleCounting, hooks: []string{"b"}, intervalSeconds: 1, title: "{{count.observed}}",
			window: &windowRule{mode: modeCount, groupBy: "ENVIRONMENT", threshold: max(1, int(perWindow*0.12/5/10))},
		},
		{
			name: ruleShare, hooks: []string{"a"}, intervalSeconds: 1, title: "{{count.observed}} of {{count.volume}}",
			window: &windowRule{mode: modeShare, groupBy: "ATTRIBUTE", attribute: "region", percent: 1.25},
		},
		{
			// Nearly half of all exchanges take as long.
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

// groups returns the groups that a rule has while exchanges arrive.
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

// storedName returns a name as an alert shows it: in hexadecimal if it is no text.
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

// fires reports whether a rule fires for what it counted.
func (r *windowRule) fires(observed, volume int64) bool {
	switch r.mode {
	case modeShare:
		return volume > 0 && 100*float64(observed) >= r.percent*float64(volume)
	case modeDuration:
		// The percentile is below minMS if at least that share of exchanges took less than minMS.
		return volume > 0 && 100*(volume-observed) < int64(r.percentile)*volume
	case modeAbsence:
		return observed < int64(r.threshold)
	default:
		return observed >= int64(r.threshold)
	}
}

// settled reports whether a rule on absence has an alert for every expected group. Nothing is
// awaited for other rules.
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
