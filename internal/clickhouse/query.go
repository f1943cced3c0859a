package clickhouse

import (
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tocsin/rules"
)

// maxStackBytes bounds what is read of a stack: it is shown, never matched.
const maxStackBytes = 32 << 10

// maxDateTimeNS is the last instant that a DateTime holds. Beyond, and before
// 1970, ClickHouse's conversions wrap around, and would prune what is there.
const maxDateTimeNS = math.MaxUint32 * int64(1e9)

// The first and the last end that is known. Their scale is the least, so that compared
// with an instant of another scale these are converted, which cannot overflow.
const (
	earliest = "toDateTime64('1900-01-01 00:00:00', 0, 'UTC')"
	latest   = "toDateTime64('2262-04-11 23:47:16', 0, 'UTC')"
)

// query is a statement and its server-side parameters.
//
// Every text is a typed parameter, never part of the statement. Instants travel as
// integer nanoseconds, because a time.Time would be bound in whole seconds; strings as
// hexadecimal, because a source may hold any bytes and hexadecimal is the same in every
// transport. What is in a statement as text comes from the [Mapping], which is
// configuration.
type query struct {
	sql        string
	parameters map[string]string
	// maxBytes bounds the result, where it is not 0.
	maxBytes int
}

// terminal returns the condition that a row is terminal, empty where every row is.
func (m *Mapping) terminal() string {
	if m.Terminal == "" {
		return ""
	}
	return operand(m.Terminal)
}

// terminalOf returns the condition that a row is terminal and of one of some statuses. Of
// a row that failed nothing else is asked where that says that it is terminal: each
// condition less is a twentieth of what ClickHouse does for a query that finds little.
func (m *Mapping) terminalOf(statuses []rules.Status) string {
	if m.Terminal == "" || m.failedIsTerminal() && !slices.Contains(statuses, rules.Completed) {
		return m.hasStatus(statuses)
	}
	return m.terminal() + "\n  AND " + m.hasStatus(statuses)
}

// failedIsTerminal reports whether every row that failed is known to be terminal:
// where both are expressed as in the default table.
func (m *Mapping) failedIsTerminal() bool {
	usual := Exchanges()
	return m.Failed == usual.Failed && m.Terminal == usual.Terminal
}

// pruned returns Prune with two expressions of instants in place, empty where there is
// no Prune.
func (m *Mapping) pruned(from, to string) string {
	if m.Prune == "" {
		return ""
	}
	return operand(strings.NewReplacer("{from}", from, "{to}", to).Replace(m.Prune))
}

// pruneInstant returns an instant that every conversion in Prune bears.
func pruneInstant(ns int64) string { return instant(min(max(ns, 0), maxDateTimeNS)) }

// instant returns an instant as it stands in the text of a statement. Where a statement
// has many, two parameters for each range would be most of it.
func instant(ns int64) string {
	return "fromUnixTimestamp64Nano(toInt64(" + strconv.FormatInt(ns, 10) + "), 'UTC')"
}

// columns returns the select list of an exchange without its tenant, in the order in
// which [readExchange] takes it.
func (m *Mapping) columns() []string {
	stack := "''"
	if m.ErrorStack != "" {
		stack = fmt.Sprintf("left(%s, %d)", operand(m.ErrorStack), maxStackBytes)
	}
	return []string{
		"toUnixTimestamp64Nano(" + operand(m.StartTime) + ")",
		operand(m.ExecutionID),
		operand(m.Environment),
		operand(m.Application),
		operand(m.Route),
		m.status(),
		m.end(),
		m.duration(),
		textOf(m.ErrorType),
		textOf(m.ErrorMessage),
		stack,
		textOf(m.CorrelationID),
		m.attributes(),
	}
}

func (m *Mapping) status() string {
	return fmt.Sprintf("if(%s, 'FAILED', 'COMPLETED')", operand(m.Failed))
}

// hasStatus returns the condition that a terminal row is of one of the statuses.
func (m *Mapping) hasStatus(statuses []rules.Status) string {
	var completed, failed bool
	for _, s := range statuses {
		completed = completed || s == rules.Completed
		failed = failed || s == rules.Failed
	}
	switch {
	case completed && failed:
		return "true"
	case failed:
		return operand(m.Failed)
	case completed:
		return "NOT " + operand(m.Failed)
	default:
		return "false"
	}
}

// end returns when an exchange ended, as nullable nanoseconds. An end beyond these is
// taken for the first or the last that is known: columns that count in milliseconds hold
// some, as 2299-12-31 where there is none yet, and one would fail the query for all
// rows. No least or greatest, which drop a NULL in some versions.
func (m *Mapping) end() string {
	if m.EndTime == "" {
		return "CAST(NULL, 'Nullable(Int64)')"
	}
	return fmt.Sprintf("toUnixTimestamp64Nano(multiIf(%[1]s > %[2]s, %[2]s, %[1]s < %[3]s, %[3]s, %[1]s))",
		operand(m.EndTime), latest, earliest)
}

// endedSince returns a condition that holds for what ended at or after an instant, and
// for nothing that ended a microsecond before. ClickHouse may try it on rows that are
// not terminal, whose end may lie too far ahead to be counted in nanoseconds. Where the
// source tells no end the start counts, and the primary key prunes.
func (b *builder) endedSince(m *Mapping, ns int64) string {
	start := operand(m.StartTime)
	if m.EndTime == "" {
		return start + " >= fromUnixTimestamp64Nano(" + b.integer("ended_since", ns) + ", 'UTC')"
	}
	return fmt.Sprintf("ifNull(toUnixTimestamp64Micro(%s), toUnixTimestamp64Micro(%s)) >= %s",
		operand(m.EndTime), start, b.integer("ended_since", ns/1000))
}

func (m *Mapping) duration() string {
	switch {
	case m.Duration != "":
		return operand(m.Duration)
	case m.EndTime != "":
		return fmt.Sprintf("toUInt64(greatest(ifNull(%s - toUnixTimestamp64Nano(%s), 0), 0))", m.end(), operand(m.StartTime))
	default:
		return "toUInt64(0)"
	}
}

func (m *Mapping) attributes() string {
	if m.Attributes == "" {
		return "CAST(map(), 'Map(String, String)')"
	}
	return operand(m.Attributes)
}

// textOf returns an expression that may be absent.
func textOf(expression string) string {
	if expression == "" {
		return "''"
	}
	return operand(expression)
}

// operand returns an expression as it can be beside any operator.
func operand(expression string) string {
	if regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`).MatchString(expression) {
		return expression
	}
	return "(" + expression + ")"
}

func hexadecimal(text string) string { return hex.EncodeToString([]byte(text)) }
