package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tocsin/cursor"
	"tocsin/rules"
)

// Verdict is the meaning of a finding.
type Verdict string

// The verdicts.
const (
	// OK means that nothing is wrong.
	OK Verdict = "OK"
	// Warn means that it works, but that somebody should know.
	Warn Verdict = "WARN"
	// Broken means that rules cannot be evaluated, or that exchanges raise no alerts.
	Broken Verdict = "BROKEN"
)

// Finding is one result of a check.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// About names what was checked: an expression of the mapping or a part of the check.
	About string `json:"about"`
	Text  string `json:"text"`
	// Remedy says what to do; empty if there is nothing to do.
	Remedy string `json:"remedy,omitempty"`
}

// Report is the result of a check of a source. Parts that were not reached or not requested are
// nil.
type Report struct {
	Table    string    `json:"table"`
	Exists   bool      `json:"exists"`
	Findings []Finding `json:"findings"`
	Layout   *Layout   `json:"layout,omitempty"`
	Tick     *Tick     `json:"tick,omitempty"`
	Sample   *Sample   `json:"sample,omitempty"`
	Delay    *Delay    `json:"delay,omitempty"`
}

// Layout is how a table is stored.
type Layout struct {
	Engine       string `json:"engine"`
	SortKey      string `json:"sortKey"`
	PartitionKey string `json:"partitionKey"`
	Rows         uint64 `json:"rows"`
}

// beginsWith reports whether the sort key begins with an expression.
func (l *Layout) beginsWith(expression string) bool {
	return l.SortKey == expression || strings.HasPrefix(l.SortKey, expression+", ")
}

// Tick is what a scan of one second reads.
type Tick struct {
	// Granules is how many granules a scan for one tenant reads.
	Granules uint64 `json:"granules"`
	// AllTenants is how many granules a scan reads for so many tenants that it does not list their
	// names. It is 0 if the mapping has only one tenant.
	AllTenants uint64 `json:"allTenants,omitempty"`
	// Of is the number of granules of the table.
	Of uint64 `json:"of"`
}

// Broken reports whether a finding keeps rules from being evaluated.
func (r *Report) Broken() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Verdict == Broken })
}

// Err returns the broken findings as an error, or nil.
func (r *Report) Err() error {
	var errs []error
	for _, f := range r.Findings {
		if f.Verdict == Broken {
			errs = append(errs, fmt.Errorf("%s: %s; %s", f.About, f.Text, f.Remedy))
		}
	}
	return errors.Join(errs...)
}

func (r *Report) add(v Verdict, about, text, remedy string) {
	r.Findings = append(r.Findings, Finding{v, about, text, remedy})
}

// CheckMapping compares the mapping with the table: whether the table exists, and whether each
// expression has the type that is needed. It reads no rows. An error means that ClickHouse did not
// answer, or, if it is a [RefusedError], that it refused a query.
func (s *Source) CheckMapping(ctx context.Context) (Report, error) {
	r := Report{Table: s.mapping.Table, Findings: []Finding{}}
	err := s.describeTable(ctx)
	if refusal, ok := errors.AsType[*RefusedError](err); ok {
		switch refusal.Code {
		case unknownTable, unknownDatabase:
			r.add(Broken, "table", s.mapping.Table+" does not exist", refusal.Remedy)
			return r, nil
		case accessDenied:
			r.add(Broken, "table", "the user may not read "+s.mapping.Table+", if it exists", refusal.Remedy)
			return r, nil
		}
	}
	if err != nil {
		return r, err
	}
	r.Exists = true
	for _, e := range s.mapping.expressions() {
		if *e.text == "" {
			continue
		}
		got, err := s.typeOf(ctx, *e.text)
		said, ok := errors.AsType[*clickhouse.Exception](err)
		if ok && unrelated(said.Code) {
			return r, s.explain(err)
		}
		if ok {
			message, _, _ := strings.Cut(said.Message, " in scope ")
			message, _, _ = strings.Cut(message, ": While processing ")
			remedy := cmp.Or(s.jsonRemedy(ctx, *e.text), "correct "+e.name+" in the mapping")
			r.add(Broken, e.name, fmt.Sprintf("%s cannot be evaluated: code %d: %s", *e.text, said.Code, message), remedy)
			continue
		}
		if err != nil {
			return r, err
		}
		if want, remedy := e.kind.wants(got, *e.text); remedy != "" {
			remedy = cmp.Or(s.jsonRemedy(ctx, *e.text), "set "+e.name+" to "+remedy)
			r.add(Broken, e.name, fmt.Sprintf("%s is %s; it must be %s", *e.text, got, want), remedy)
			continue
		}
		r.add(OK, e.name, fmt.Sprintf("%s, %s", *e.text, got), "")
	}
	return r, nil
}

// jsonRemedy returns the remedy for an expression that reads an attribute of spans from a column of
// type JSON as from a map; empty if it does not.
func (s *Source) jsonRemedy(ctx context.Context, text string) string {
	for _, column := range []string{"ResourceAttributes", "SpanAttributes", "Events.Attributes"} {
		if !strings.Contains(text, column) {
			continue
		}
		if got, err := s.typeOf(ctx, column); err == nil && strings.Contains(got, "JSON") {
			return "the Collector writes JSON columns: take the expressions from the section \"JSON columns\" of docs/sources.md"
		}
	}
	return ""
}

// describeTable returns an error unless the table exists and the user may read it.
func (s *Source) describeTable(ctx context.Context) error {
	return s.each(ctx, query{sql: "DESCRIBE TABLE " + s.mapping.Table}, 10_000, func(driver.Rows) error { return nil })
}

// unrelated reports whether an error of ClickHouse says nothing about the expressions of a query: the server or
// the user has too much to do, or is not what it was a moment ago.
func unrelated(code int32) bool {
	const (
		timeoutExceeded, tooSlow, quotaExceeded, tooManyQueries = 159, 160, 201, 202
		socketTimeout, networkError, aborted, noConnection      = 209, 210, 236, 279
		cancelled, cannotScheduleTask                           = 394, 439
	)
	return slices.Contains([]int32{
		timeoutExceeded, tooSlow, quotaExceeded, tooManyQueries, socketTimeout, networkError, aborted, noConnection,
		cancelled, cannotScheduleTask, memoryLimitExceeded, authenticationFailed, unknownTable, unknownDatabase,
	}, code)
}

// typeOf returns the type of an expression over the table.
func (s *Source) typeOf(ctx context.Context, text string) (string, error) {
	m := Mapping{Prune: text}
	q := query{
		sql: fmt.Sprintf("DESCRIBE (SELECT %s FROM %s)", m.pruned(pruneInstant(0), pruneInstant(0)), s.mapping.Table),
	}
	rows, err := s.conn.Query(s.bounded(ctx, q, 10), q.sql)
	if err != nil {
		return "", err
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports every error
	var types []string
	for rows.Next() {
		values := make([]any, len(rows.Columns()))
		for i := range values {
			values[i] = new(string)
		}
		if err := rows.Scan(values...); err != nil {
			return "", err
		}
		types = append(types, *values[1].(*string))
	}
	return strings.Join(types, ", "), rows.Err()
}

// wants returns what an expression of a kind must be. Unless got is that, it also returns an
// expression that would be.
func (k kind) wants(got, text string) (want, remedy string) {
	matches := func(pattern string) bool { return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(got) }
	const instant = `DateTime64\(\d(?:, '[^']*')?\)`
	switch k {
	case kindText:
		want = "String"
		switch {
		case matches(`String|LowCardinality\(String\)`):
		case matches(`Nullable\(String\)|LowCardinality\(Nullable\(String\)\)`):
			remedy = "ifNull(" + text + ", '')"
		case strings.Contains(got, "Nullable("):
			remedy = "ifNull(toString(" + text + "), '')"
		default:
			remedy = "toString(" + text + ")"
		}
	case kindInstant:
		want = "DateTime64"
		switch {
		case matches(instant):
		case matches(`Nullable\(` + instant + `\)`):
			remedy = "assumeNotNull(" + text + ")"
		case matches(`DateTime(?:\('[^']*'\))?`):
			remedy = "toDateTime64(" + text + ", 0)"
		default:
			remedy = "an expression of that type, such as fromUnixTimestamp64Nano or parseDateTime64BestEffort"
		}
	case kindOptionalInstant:
		want = "DateTime64 or Nullable(DateTime64)"
		if !matches(instant + `|Nullable\(` + instant + `\)`) {
			remedy = "an expression of that type, as in toDateTime64(" + text + ", 9)"
		}
	case kindInsertedAt:
		want = "DateTime or DateTime64"
		if !matches(instant + `|DateTime(?:\('[^']*'\))?`) {
			remedy = "an expression of that type, as in toDateTime64(" + text + ", 9)"
		}
	case kindNanoseconds:
		want = "UInt64, in nanoseconds"
		if got != "UInt64" {
			remedy = "toUInt64(greatest(ifNull(" + text + ", 0), 0)), times whatever makes it nanoseconds"
		}
	case kindAttributes:
		want = "Map(String, String)"
		if !matches(`Map\((?:String|LowCardinality\(String\)), (?:String|LowCardinality\(String\))\)`) {
			remedy = "CAST(" + text + ", 'Map(String, String)'), or leave it empty"
		}
	case kindCondition:
		want = "a condition (Bool or UInt8)"
		switch {
		case matches(`Bool|UInt8|LowCardinality\((?:Bool|UInt8)\)`):
		case matches(`(?:LowCardinality\()?Nullable\((?:Bool|UInt8|Nothing)\)+`):
			remedy = "ifNull(" + text + ", false)"
		default:
			remedy = "a comparison, as in status = 'FAILED'"
		}
	}
	return want, remedy
}

// layout reads how the table is stored; nil if ClickHouse does not say.
func (s *Source) layout(ctx context.Context) (*Layout, error) {
	database, table, qualified := strings.Cut(s.mapping.Table, ".")
	where := "database = currentDatabase() AND name = unhex({table:String})"
	q := query{parameters: map[string]string{"table": hexadecimal(database)}}
	if qualified {
		where = "database = unhex({database:String}) AND name = unhex({table:String})"
		q.parameters = map[string]string{"database": hexadecimal(database), "table": hexadecimal(table)}
	}
	q.sql = "SELECT engine, sorting_key, partition_key, ifNull(total_rows, 0) FROM system.tables WHERE " + where
	rows, err := s.conn.Query(s.bounded(ctx, q, 1), q.sql)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports every error
	if !rows.Next() {
		return nil, rows.Err()
	}
	var l Layout
	if err := rows.Scan(&l.Engine, &l.SortKey, &l.PartitionKey, &l.Rows); err != nil {
		return nil, fmt.Errorf("clickhouse: read layout: %w", err)
	}
	return &l, rows.Err()
}

// tick returns what scans of the second before an instant read; nil if the plan does not say, as
// for a view.
func (s *Source) tick(ctx context.Context, tenantID string, endNS int64) (*Tick, error) {
	t, err := s.plan(ctx, &s.mapping, tenantID, endNS)
	if err != nil || t == nil || s.mapping.TenantID == "" {
		return t, err
	}
	// A scan without a condition on the tenant prunes as little as one on the hash of its name.
	all := s.mapping
	all.TenantID, all.Tenant = "", tenantID
	many, err := s.plan(ctx, &all, tenantID, endNS)
	if err != nil || many == nil {
		return nil, err
	}
	t.AllTenants = many.Granules
	return t, nil
}

// plan returns what ClickHouse plans to read for the scan of one second.
func (s *Source) plan(ctx context.Context, m *Mapping, tenantID string, endNS int64) (*Tick, error) {
	q := pageQuery(m, page{
		tenants: one(tenantID), after: cursor.Position{StartTimeNS: endNS - int64(time.Second)}, beforeNS: endNS,
		terminal: m.terminalOf([]rules.Status{rules.Failed, rules.Completed}), limit: 1000,
	})
	// The plan lists one index after the other: the first with all granules of the table, the last
	// with the remaining ones.
	granules := regexp.MustCompile(`Granules: (\d+)/(\d+)`)
	var t *Tick
	q.sql = "EXPLAIN indexes = 1 " + q.sql
	err := s.each(ctx, q, 10_000, func(rows driver.Rows) error {
		var line string
		err := rows.Scan(&line)
		if found := granules.FindStringSubmatch(line); found != nil {
			left, _ := strconv.ParseUint(found[1], 10, 64)
			of, _ := strconv.ParseUint(found[2], 10, 64)
			if t == nil {
				t = &Tick{Of: of}
			}
			t.Granules = left
		}
		return err
	})
	return t, err
}
