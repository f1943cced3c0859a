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

// maxStackBytes bounds how much of a stack is read: a stack is shown, never matched.
const maxStackBytes = 32 << 10

// maxDateTimeNS is the last instant of a DateTime. Beyond it, and before 1970, ClickHouse's
// conversions wrap around, and would prune existing rows.
const maxDateTimeNS = math.MaxUint32 * int64(1e9)

// The first and the last known end. Their scale is the smallest, so that in a comparison they are
// converted to the other scale, which cannot overflow.
const (
	earliest = "toDateTime64('1900-01-01 00:00:00', 0, 'UTC')"
	latest   = "toDateTime64('2262-04-11 23:47:16', 0, 'UTC')"
)

// query is a statement with its server-side parameters.
//
// Every text is a typed parameter, never part of the statement. Instants are sent as integer
// nanoseconds, because a time.Time would be bound in whole seconds. Strings are sent as
// hexadecimal, because a source may contain any bytes, and hexadecimal is the same in every
// transport. Text in a statement comes from the [Mapping], which is configuration.
type query struct {
	sql        string
	parameters map[string]string
	// maxBytes bounds the result, unless it is 0.
	maxBytes int
}

// terminal returns the condition that a row is terminal; empty if every row is.
func (m *Mapping) terminal() string {
	if m.Terminal == "" {
		return ""
	}
	return operand(m.Terminal)
}

// terminalOf returns the condition that a row is terminal and has one of some statuses. If failed
// rows are known to be terminal, the condition for them is only that they failed: each condition
// costs a twentieth of a query that finds little.
func (m *Mapping) terminalOf(statuses []rules.Status) string {
	if m.Terminal == "" || m.failedIsTerminal() && !slices.Contains(statuses, rules.Completed) {
		return m.hasStatus(statuses)
	}
	return m.terminal() + "\n  AND " + m.hasStatus(statuses)
}

// failedIsTerminal reports whether every failed row is known to be terminal, because both
// expressions are those of the default table.
func (m *Mapping) failedIsTerminal() bool {
	usual := Exchanges()
	return m.Failed == usual.Failed && m.Terminal == usual.Terminal
}

// pruned returns Prune with the expressions of two instants inserted; empty if there is no Prune.
func (m *Mapping) pruned(from, to string) string {
	if m.Prune == "" {
		return ""
	}
	return operand(strings.NewReplacer("{from}", from, "{to}", to).Replace(m.Prune))
}

// pruneInstant returns an instant that is in range for every conversion in Prune.
func pruneInstant(ns int64) string { return instant(min(max(ns, 0), maxDateTimeNS)) }

// instant returns an instant as the text of a statement. In a statement with many instants, two
// parameters for each range would be most of the text.
func instant(ns int64) string {
	return "fromUnixTimestamp64Nano(toInt64(" + strconv.FormatInt(ns, 10) + "), 'UTC')"
}

// columns returns the select list of an exchange without its tenant, in the order of
// [readExchange].
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

// hasStatus returns the condition that a terminal row has one of the statuses.
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

// end returns when an exchange ended, as nullable nanoseconds. An end beyond the known ones counts
// as the first or the last of these. Columns in milliseconds may contain such ends, for example
// 2299-12-31 for an exchange without an end, and one of them would fail the query for all rows. The
// expression does not use least or greatest, which ignore a NULL in some versions.
func (m *Mapping) end() string {
	if m.EndTime == "" {
		return "CAST(NULL, 'Nullable(Int64)')"
	}
	return fmt.Sprintf("toUnixTimestamp64Nano(multiIf(%[1]s > %[2]s, %[2]s, %[1]s < %[3]s, %[3]s, %[1]s))",
		operand(m.EndTime), latest, earliest)
}

// endedSince returns a condition that is true for what ended at or after an instant, and false for
// what ended more than a microsecond before. ClickHouse may evaluate it on rows that are not
// terminal, whose end may be too far in the future to count in nanoseconds. If the source has no
// ends, the start counts, and the primary key prunes.
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

// textOf returns an expression that may be empty.
func textOf(expression string) string {
	if expression == "" {
		return "''"
	}
	return operand(expression)
}

var column = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// operand returns an expression in a form that is safe next to any operator.
func operand(expression string) string {
	if column.MatchString(expression) {
		return expression
	}
	return "(" + expression + ")"
}

func hexadecimal(text string) string { return hex.EncodeToString([]byte(text)) }
