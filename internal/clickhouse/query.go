package clickhouse

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/rules"
)

// maxStackBytes bounds what is read of a stack: it is shown, never matched.
const maxStackBytes = 32 << 10

// maxDateTimeNS is the last instant that a DateTime holds. Beyond, and before
// 1970, ClickHouse's conversions wrap around, and would prune what is there.
const maxDateTimeNS = math.MaxUint32 * int64(1e9)

// The first and the last end that is told. Their scale is the least, so that compared
// with an instant of another scale these are converted, which cannot overflow.
const (
	earliest = "toDateTime64('1900-01-01 00:00:00', 0, 'UTC')"
	latest   = "toDateTime64('2262-04-11 23:47:16', 0, 'UTC')"
)

// query is a statement and its server-side parameters.
//
// Every value is a typed parameter, never text of the statement. Instants
// travel as integer nanoseconds, because a time.Time would be bound in whole
// seconds; strings as hexadecimal, because a source may hold any bytes and
// hexadecimal is the same in every transport. What stands in a statement as
// text comes from the [Mapping], which is configuration.
type query struct {
	sql        string
	parameters map[string]string
	// maxBytes bounds the result, where it is not 0.
	maxBytes int
}

// scanQuery reads a range in order.
func scanQuery(m *Mapping, scan evaluator.Scan) query { return pageQuery(m, scanned(m, scan)) }

// scanned returns the page that a scan asks for.
func scanned(m *Mapping, scan evaluator.Scan) page {
	return page{
		tenantID: scan.TenantID, after: scan.After, beforeNS: scan.BeforeNS, limit: scan.Limit,
		terminal: m.terminalOf(scan.Statuses), condition: narrowed(m, scan),
	}
}

// narrowed returns the condition that an exchange is of one of the applications of
// a scan, ended when it says, and did not complete sooner than it says.
func narrowed(m *Mapping, scan evaluator.Scan) condition {
	b := builder{parameters: map[string]string{}}
	if len(scan.Applications) > 0 {
		// A list of values, since only for that the primary key prunes.
		b.and(b.in(operand(m.Application), "application", scan.Applications))
	}
	if scan.CompletedLeastNS > 0 && slices.Contains(scan.Statuses, rules.Completed) {
		b.and(fmt.Sprintf("(%s OR %s >= %s)", operand(m.Failed), m.duration(), b.integer("completed_least", scan.CompletedLeastNS)))
	}
	if scan.EndedSinceNS != 0 {
		b.and(b.endedSince(m, scan.EndedSinceNS))
	}
	return b.condition()
}

// page is a range of a tenant's terminal exchanges that meet a condition.
type page struct {
	tenantID string
	after    cursor.Position
	beforeNS int64
	limit    int
	// terminal is what [Mapping.terminal] or [Mapping.terminalOf] returned.
	terminal string
	// condition may be empty.
	condition condition
	// strict leaves out an exchange without an id that begins where the range does.
	strict bool
	// maxBytes bounds what is read, where it is not 0 and the limit not a single exchange.
	maxBytes int
}

// begin returns the condition that a row lies after the page's position.
//
// It is a disjunction: the tuple form (start_time, execution_id) > (…) is
// equivalent, but ClickHouse then reads every granule of the tenant instead of those
// of the range. Where the position has no id, as at a horizon, one comparison says
// the same of every exchange that has one; it is strict that demands it of the
// others, too. It spares ClickHouse a tenth of the query, which is analysed anew at
// each tick and dearer than what it reads.
func (p *page) begin(start, id string) string {
	if p.after.ExecutionID == "" && !p.strict {
		return start + " >= fromUnixTimestamp64Nano({after:Int64}, 'UTC')"
	}
	return fmt.Sprintf(`(%[1]s > fromUnixTimestamp64Nano({after:Int64}, 'UTC')
       OR (%[1]s = fromUnixTimestamp64Nano({after:Int64}, 'UTC') AND %[2]s > unhex({after_id:String})))`, start, id)
}

// pageQuery reads a page.
func pageQuery(m *Mapping, p page) query {
	start, id := operand(m.StartTime), operand(m.ExecutionID)
	q := query{parameters: maps.Clone(p.condition.parameters)}
	if q.parameters == nil {
		q.parameters = map[string]string{}
	}
	q.sql = fmt.Sprintf(`
SELECT
    %[1]s
FROM %[2]s
WHERE %[3]s
  AND %[4]s
  AND %[5]s < fromUnixTimestamp64Nano({before:Int64}, 'UTC')%[7]s
ORDER BY %[5]s, %[6]s
LIMIT {limit:UInt64}`, strings.Join(m.columns(), ",\n    "), m.Table,
		m.tenantRows(q.parameters, p.tenantID, p.after.StartTimeNS, p.beforeNS)+p.terminal,
		p.begin(start, id), start, id, p.condition.following())
	q.parameters["after"] = strconv.FormatInt(p.after.StartTimeNS, 10)
	q.parameters["after_id"] = hexadecimal(p.after.ExecutionID)
	q.parameters["before"] = strconv.FormatInt(p.beforeNS, 10)
	q.parameters["limit"] = strconv.Itoa(p.limit)
	if p.limit > 1 {
		q.maxBytes = p.maxBytes
	}
	return q
}

// fingerprintQuery counts and sums the exchanges of a range by status and
// bucket. Rows that are there twice are counted twice, until they are merged;
// either way a bucket in which something is new differs from before. A sum, not
// an exclusive or, in which a row that is there twice would cancel itself out.
func fingerprintQuery(m *Mapping, fq evaluator.FingerprintQuery) query {
	q := query{parameters: map[string]string{}}
	start := operand(m.StartTime)
	q.sql = fmt.Sprintf(`
SELECT
    %[1]s AS tocsin_status,
    intDiv(toUnixTimestamp64Nano(%[2]s), {width:Int64}) AS tocsin_bucket,
    %[2]s >= fromUnixTimestamp64Nano({edge:Int64}, 'UTC') AS tocsin_fresh,
    count(),
    sum(cityHash64(%[3]s))
FROM %[4]s
WHERE %[5]s
  AND %[2]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND %[2]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
GROUP BY tocsin_status, tocsin_bucket, tocsin_fresh`, m.status(), start, operand(m.ExecutionID), m.Table,
		m.tenantRows(q.parameters, fq.TenantID, fq.FromNS, fq.ToNS)+m.terminalOf(fq.Statuses))
	q.parameters["from"] = strconv.FormatInt(fq.FromNS, 10)
	q.parameters["to"] = strconv.FormatInt(fq.ToNS, 10)
	q.parameters["width"] = strconv.FormatInt(fq.WidthNS, 10)
	q.parameters["edge"] = strconv.FormatInt(fq.EdgeNS, 10)
	return q
}

// rowsQuery counts the rows of a tenant that begin in a range. It asks nothing else
// of them, since only of what the primary key tells ClickHouse counts whole granules
// without reading them.
func rowsQuery(m *Mapping, tenantID string, fromNS, toNS int64) query {
	q := query{parameters: map[string]string{}}
	q.sql = fmt.Sprintf(`
SELECT count()
FROM %[1]s
WHERE %[2]s
  AND %[3]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND %[3]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')`, m.Table, m.tenantRows(q.parameters, tenantID, fromNS, toNS), operand(m.StartTime))
	q.parameters["from"] = strconv.FormatInt(fromNS, 10)
	q.parameters["to"] = strconv.FormatInt(toNS, 10)
	return q
}

// countQuery counts, by bucket, the exchanges of a range that meet a condition.
// A row that is there twice counts once, as it raises one alert.
func countQuery(m *Mapping, c CountQuery, cond condition) query {
	q := query{parameters: maps.Clone(cond.parameters)}
	start := operand(m.StartTime)
	q.sql = fmt.Sprintf(`
SELECT
    intDiv(toUnixTimestamp64Nano(%[1]s), {width:Int64}) AS tocsin_bucket,
    uniqExact(%[2]s)
FROM %[3]s
WHERE %[4]s
  AND %[1]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND %[1]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND %[5]s
GROUP BY tocsin_bucket
ORDER BY tocsin_bucket`, start, operand(m.ExecutionID), m.Table, m.rows(q.parameters, c.TenantID, c.FromNS, c.ToNS), cond.sql)
	q.parameters["from"] = strconv.FormatInt(c.FromNS, 10)
	q.parameters["to"] = strconv.FormatInt(c.ToNS, 10)
	q.parameters["width"] = strconv.FormatInt(c.WidthNS, 10)
	return q
}

// rows returns the condition that holds for the terminal rows of a tenant, and
// prunes to a range of start times. The range itself is the caller's to demand.
func (m *Mapping) rows(parameters map[string]string, tenantID string, fromNS, toNS int64) string {
	return m.tenantRows(parameters, tenantID, fromNS, toNS) + m.terminal()
}

// tenantRows is the same for all rows of a tenant.
func (m *Mapping) tenantRows(parameters map[string]string, tenantID string, fromNS, toNS int64) string {
	tenant := "unhex('" + hexadecimal(m.Tenant) + "')"
	if m.TenantID != "" {
		tenant = operand(m.TenantID)
	}
	parameters["tenant"] = hexadecimal(tenantID)
	conditions := tenant + " = unhex({tenant:String})"
	if m.Prune != "" {
		conditions += "\n  AND " + m.pruned()
		setPruneRange(parameters, fromNS, toNS)
	}
	return conditions
}

// terminal returns what is to follow a condition for it to hold only for terminal rows.
func (m *Mapping) terminal() string {
	if m.Terminal == "" {
		return ""
	}
	return "\n  AND " + operand(m.Terminal)
}

// terminalOf is the same for those of some statuses. Of a row that failed nothing
// else is asked where that says that it is terminal: each condition less is a
// twentieth of what ClickHouse does for a query that finds little.
func (m *Mapping) terminalOf(statuses []rules.Status) string {
	and := "\n  AND " + m.hasStatus(statuses)
	if m.failedIsTerminal() && !slices.Contains(statuses, rules.Completed) {
		return and
	}
	return m.terminal() + and
}

// failedIsTerminal reports whether every row that failed is known to be terminal:
// where both are told as in the default table.
func (m *Mapping) failedIsTerminal() bool {
	usual := Exchanges()
	return m.Failed == usual.Failed && m.Terminal == usual.Terminal
}

// pruned returns Prune with the instants in place, which the parameters
// prune_from and prune_to give. There must be a Prune.
func (m *Mapping) pruned() string {
	return operand(strings.NewReplacer(
		"{from}", "fromUnixTimestamp64Nano({prune_from:Int64}, 'UTC')",
		"{to}", "fromUnixTimestamp64Nano({prune_to:Int64}, 'UTC')").Replace(m.Prune))
}

func setPruneRange(parameters map[string]string, fromNS, toNS int64) {
	parameters["prune_from"] = strconv.FormatInt(min(max(fromNS, 0), maxDateTimeNS), 10)
	parameters["prune_to"] = strconv.FormatInt(min(max(toNS, 0), maxDateTimeNS), 10)
}

// columns returns the select list of an exchange, in the order in which
// [readExchange] takes it.
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
// taken for the first or the last that is told: columns that count in milliseconds hold
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

// operand returns an expression as it can stand beside any operator.
func operand(expression string) string {
	if regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`).MatchString(expression) {
		return expression
	}
	return "(" + expression + ")"
}

func hexadecimal(text string) string { return hex.EncodeToString([]byte(text)) }
