package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// page is a page of the terminal exchanges of some tenants that meet a condition.
type page struct {
	tenants  source.Tenants
	after    cursor.Position
	beforeNS int64
	limit    int
	// terminal is the condition that a row is terminal.
	terminal string
	// condition may be empty.
	condition condition
	// strict leaves out an exchange without an id that begins at the start of the range.
	strict bool
	// ties also reads all rows of the last position.
	ties bool
	// maxBytes bounds what is read. It has no effect if it is 0 or if the limit is a single
	// exchange.
	maxBytes int
}

// scanned returns the page for a scan.
func scanned(m *Mapping, scan source.Scan) (page, error) {
	p := page{tenants: scan.Tenants, after: scan.After, beforeNS: scan.BeforeNS, limit: scan.Limit}
	if scan.Narrow != nil {
		matches, err := predicate(m, scan.Narrow.Scope, scan.Narrow.Filter)
		p.terminal, p.condition = m.terminal(), matches
		return p, err
	}
	p.terminal, p.condition = m.terminalOf(scan.Statuses), narrowed(m, scan)
	return p, nil
}

// narrowed returns the condition that an exchange belongs to one of the applications of a scan,
// ended at or after the instant that the scan names, and did not complete faster than the scan asks
// for.
func narrowed(m *Mapping, scan source.Scan) condition {
	b := builder{parameters: map[string]string{}}
	if len(scan.Applications) > 0 {
		// A list of values, because the primary key prunes only by that.
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

// begin returns the condition that a row comes after the page's position.
//
// It is a disjunction. The tuple form (start_time, execution_id) > (…) is equivalent, but with it
// ClickHouse reads every granule of the tenant instead of those of the range. If the position has
// no id, as at a watermark, one comparison is equivalent for every exchange with an id; strict adds
// the second one for exchanges without an id. One comparison saves a tenth of the query: ClickHouse
// analyses the query at each pass, which costs more than what it reads.
func (p *page) begin(start, id string) string {
	if p.after.ExecutionID == "" && !p.strict {
		return start + " >= fromUnixTimestamp64Nano({after:Int64}, 'UTC')"
	}
	return fmt.Sprintf(`(%[1]s > fromUnixTimestamp64Nano({after:Int64}, 'UTC')
       OR (%[1]s = fromUnixTimestamp64Nano({after:Int64}, 'UTC') AND %[2]s > unhex({after_id:String})))`, start, id)
}

// pageQuery reads a page into one row of arrays, so that even an empty page names its server.
// Compared with a query for rows, this costs a quarter more if there are none, and saves as much if
// there are a thousand. A UNION ALL with a row for the server costs the same, but max_result_bytes
// does not apply to it.
//
// ClickHouse stores columns that are mostly empty as sparse columns, and groupArray reads the
// values of a sparse column in another order than its rows: the message of one exchange would be
// read as that of another. A materialized column is not sparse.
func pageQuery(m *Mapping, p page) query {
	start, id := operand(m.StartTime), operand(m.ExecutionID)
	q := query{parameters: maps.Clone(p.condition.parameters)}
	if q.parameters == nil {
		q.parameters = map[string]string{}
	}
	where := all(
		m.tenants(q.parameters, p.tenants),
		m.pruned(pruneInstant(p.after.StartTimeNS), pruneInstant(p.beforeNS)),
		p.terminal,
		p.begin(start, id),
		start+" < fromUnixTimestamp64Nano({before:Int64}, 'UTC')",
		p.condition.sql)
	columns := append(m.columns(), m.tenant())
	columns[endColumn] = fmt.Sprintf("ifNull(%s, toInt64(%d))", columns[endColumn], int64(noEnd))
	arrays := make([]string, len(columns))
	for i, c := range columns {
		columns[i], arrays[i] = fmt.Sprintf("%s AS tocsin_%d", c, i), fmt.Sprintf("groupArray(materialize(tocsin_%d))", i)
	}
	q.sql = fmt.Sprintf(`
SELECT
    %[1]s,
    %[2]s
FROM (
SELECT
    %[3]s
FROM %[4]s
WHERE %[5]s
ORDER BY %[6]s, %[7]s
LIMIT {limit:UInt64}%[8]s
)`, server, strings.Join(arrays, ", "), strings.Join(columns, ",\n    "), m.Table, where, start, id,
		map[bool]string{true: " WITH TIES"}[p.ties])
	q.parameters["after"] = strconv.FormatInt(p.after.StartTimeNS, 10)
	q.parameters["after_id"] = hexadecimal(p.after.ExecutionID)
	q.parameters["before"] = strconv.FormatInt(p.beforeNS, 10)
	q.parameters["limit"] = strconv.Itoa(p.limit + 1)
	if p.limit > 1 {
		q.maxBytes = p.maxBytes
	}
	return q
}

// Scan returns the exchanges of a range in the order of their positions, or [source.ErrTooMuch]
// if they are larger than the bound. A condition that is too long for ClickHouse is a fault of the rule.
func (s *Source) Scan(ctx context.Context, scan source.Scan) (source.Page, error) {
	p, err := scanned(&s.mapping, scan)
	if err != nil {
		return source.Page{}, fmt.Errorf("find matching exchanges: %w", err)
	}
	p.maxBytes = s.scanBytes
	answer, err := s.page(ctx, p)
	if err == nil && len(answer.Exchanges) > 0 && !answer.Exchanges[0].Position().After(p.after) {
		// This exchange has no id. If it were dropped here, a full page would look like the last
		// one.
		p.strict = true
		answer, err = s.page(ctx, p)
	}
	return answer, s.tooLong(scan.Narrow, err)
}

// tooLong names the part of a rule because of which ClickHouse does not parse a scan.
func (s *Source) tooLong(n *source.Narrowing, err error) error {
	refusal, ok := errors.AsType[*RefusedError](err)
	if n == nil || !ok || refusal.Text != queryTooLong {
		return err
	}
	whole, wrong := predicate(&s.mapping, n.Scope, n.Filter)
	named, wrongScope := predicate(&s.mapping, n.Scope, rules.Filter{})
	if wrong != nil || wrongScope != nil {
		return err
	}
	longer := fault.Field{
		Field: "scope", Code: "query_too_long",
		Message: "Is too long for ClickHouse: use fewer names and fewer wildcards, or raise max_query_size in the settings profile of Tocsin's user",
	}
	if 2*len(named.sql) < len(whole.sql) {
		longer.Field = "filter"
		longer.Message = "Is too long for ClickHouse: use fewer values, or raise max_query_size in the settings profile of Tocsin's user"
	}
	return fault.InvalidFields("the rule", []fault.Field{longer})
}

// page reads a page. It asks for one row more than the limit, and drops the last position unless
// that is complete. ClickHouse could complete it, but for LIMIT WITH TIES it sorts all rows of the
// range, with all columns, instead of the first few. So this is used only for a page that would
// otherwise be empty.
func (s *Source) page(ctx context.Context, p page) (source.Page, error) {
	q := pageQuery(&s.mapping, p)
	var answer source.Page
	var a arrays
	if err := s.row(ctx, q, append([]any{&answer.Server}, a.destinations()...)...); err != nil {
		return source.Page{}, p.tooMuch(err)
	}
	list, err := a.exchanges()
	if err != nil {
		return source.Page{}, err
	}
	answer.Exchanges, answer.More = list, len(list) > p.limit
	if !answer.More || p.ties {
		return answer, nil
	}
	whole := p.limit
	for whole > 0 && list[whole-1].Position() == list[p.limit].Position() {
		whole--
	}
	if whole == 0 {
		p.ties = true
		return s.page(ctx, p)
	}
	answer.Exchanges = list[:whole]
	return answer, nil
}

// queryMemory matches what ClickHouse says, in its versions, if one query takes more memory than its user's
// profile allows it. The limits of the user and of the server depend on other queries as well.
var queryMemory = regexp.MustCompile(`(?i)\(for query\)|query memory limit`)

// tooMuch adds [source.ErrTooMuch] to the error of a page that takes too much memory: a smaller one takes less.
func (p *page) tooMuch(err error) error {
	refusal, ok := errors.AsType[*RefusedError](err)
	if ok && refusal.Code == memoryLimitExceeded && p.limit > 1 && queryMemory.MatchString(refusal.Text) {
		return fmt.Errorf("%w: %w", source.ErrTooMuch, err)
	}
	return err
}

// exchanges runs a query that selects exchanges of one tenant.
func (s *Source) exchanges(ctx context.Context, q query, tenantID string, limit int) ([]rules.Exchange, error) {
	var list []rules.Exchange
	err := s.each(ctx, q, limit, func(rows driver.Rows) error {
		e, err := readExchange(rows)
		e.TenantID = tenantID
		list = append(list, e)
		return err
	})
	return list, err
}

// row reads the only row of an answer.
func (s *Source) row(ctx context.Context, q query, into ...any) error {
	n := 0
	err := s.each(ctx, q, 1, func(rows driver.Rows) error {
		n++
		return rows.Scan(into...)
	})
	if err == nil && n != 1 {
		return fmt.Errorf("clickhouse: %d rows instead of one", n)
	}
	return err
}

// each calls read for each row of an answer.
func (s *Source) each(ctx context.Context, q query, maxRows int, read func(driver.Rows) error) error {
	rows, err := s.conn.Query(s.bounded(ctx, q, maxRows), q.sql)
	if err != nil {
		return s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports every error
	for rows.Next() {
		if err := read(rows); err != nil {
			return fmt.Errorf("clickhouse: read answer: %w; `tocsin source check` shows which expression of the mapping has another type", err)
		}
	}
	// Without this check, a connection that is lost during an answer would look like its end.
	if err := rows.Err(); err != nil {
		return s.explain(err)
	}
	return nil
}

// readExchange reads the columns of [Mapping.columns].
func readExchange(rows driver.Rows) (rules.Exchange, error) {
	var e rules.Exchange
	var status string
	var duration uint64
	err := rows.Scan(&e.StartTimeNS, &e.ExecutionID, &e.Environment, &e.Application, &e.Route, &status,
		&e.EndTimeNS, &duration, &e.ErrorType, &e.ErrorMessage, &e.ErrorStack, &e.CorrelationID, &e.Attributes)
	e.Status = rules.Status(status)
	e.DurationNS = int64(min(duration, math.MaxInt64))
	return e, err
}
