package clickhouse

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Mapping says where a table holds the fields of an exchange. Each text except Table and Tenant is
// a ClickHouse expression over the columns of the table, usually the name of a column. A mapping is
// configuration, written by the operators of Tocsin: its expressions become part of the text of
// queries. Nothing that comes from a user of Tocsin ever does.
//
// The zero Mapping is empty. Start from [Exchanges] or [OtelTraces].
type Mapping struct {
	// Table is the name of the table, as table or database.table.
	Table string
	// Tenant is the tenant of every row. It is empty if TenantID gives the tenant.
	Tenant string
	// TenantID is the tenant of a row. It is empty if Tenant gives the tenant.
	TenantID string

	// StartTime (a DateTime64) and ExecutionID give the position of an exchange. ExecutionID must
	// identify one exchange for ever: a rule raises at most one alert for it.
	StartTime, ExecutionID string
	// EndTime is a DateTime64, NULL while there is no end. It is empty if the table has no end;
	// then an exchange counts from its start. Ends before 1900 or after 2262-04-11 are bounded.
	EndTime string
	// Duration is a UInt64 of nanoseconds. If it is empty, the duration is the time from StartTime
	// to EndTime; without either, it is 0.
	Duration string

	Environment, Application, Route string
	// ErrorType, ErrorMessage, ErrorStack, CorrelationID and Attributes are empty if the table has
	// no such field.
	ErrorType, ErrorMessage, ErrorStack, CorrelationID, Attributes string

	// Failed is true for an exchange that failed.
	Failed string
	// Terminal is true for a row of an exchange that has ended; other rows are not read. Empty
	// means that every row is terminal.
	Terminal string
	// Prune must be true for every row whose StartTime is between {from} and {to}, which are
	// replaced by DateTime64(9) instants. It reduces what ClickHouse reads if its index cannot use
	// a range of StartTime. It may be empty.
	Prune string
	// InsertedAt is when a row became visible, a DateTime or DateTime64. It may be empty.
	InsertedAt string
}

// Preset is the name of a built-in mapping.
type Preset string

// The presets.
const (
	PresetExchanges  Preset = "exchanges"
	PresetOtelTraces Preset = "otel_traces"
)

// Presets returns every preset.
func Presets() []Preset { return []Preset{PresetExchanges, PresetOtelTraces} }

// DefaultTenant is the tenant of a source without tenants.
const DefaultTenant = "default"

// Mapping returns the mapping of a preset.
func (p Preset) Mapping() (Mapping, error) {
	switch p {
	case PresetExchanges:
		return Exchanges(), nil
	case PresetOtelTraces:
		return OtelTraces(), nil
	default:
		return Mapping{}, fmt.Errorf("unknown preset %q; the presets are exchanges and otel_traces", string(p))
	}
}

// Exchanges returns the mapping of the default source table, which package
// schema defines.
func Exchanges() Mapping {
	return Mapping{
		Table:         "exchanges",
		TenantID:      "tenant_id",
		StartTime:     "start_time",
		ExecutionID:   "execution_id",
		EndTime:       "end_time",
		Duration:      "duration",
		Environment:   "environment",
		Application:   "application_id",
		Route:         "route_id",
		ErrorType:     "error_type",
		ErrorMessage:  "error_message",
		ErrorStack:    "error_stack",
		CorrelationID: "correlation_id",
		Attributes:    "attributes",
		Failed:        "status = 'FAILED'",
		Terminal:      "status IN ('COMPLETED', 'FAILED')",
	}
}

// OtelTraces returns the mapping of the spans that the ClickHouse exporter of the OpenTelemetry
// Collector writes. Every span is an exchange, and its kind is the attribute span.kind, so that a
// rule can match a kind. Set Terminal to select spans for all rules, for example SpanKind IN
// ('Server', 'Consumer').
//
// The execution id is TraceId:SpanId. A SpanId is eight random bytes and unique only within its
// trace: among a billion spans, two have the same one with a probability of about 3%, and the
// second would raise no alert.
//
// The table is sorted by (ServiceName, SpanName, toDateTime(Timestamp)). In some versions of the
// exporter, Timestamp follows as a fourth column that is not in the primary key. So a range of
// start times prunes by day, by part and, within each service and span name, by granule: a tick
// reads one or two granules for each of them. If Timestamp is in the primary key as well, a bound
// on it would prune only by that last column, which has almost no effect. Prune makes ClickHouse
// use the third column.
func OtelTraces() Mapping {
	return Mapping{
		Table:       "otel_traces",
		Tenant:      DefaultTenant,
		StartTime:   "Timestamp",
		ExecutionID: "concat(TraceId, ':', SpanId)",
		// The bound is a hundred years, because a larger Duration would make the sum overflow.
		EndTime:     "Timestamp + toIntervalNanosecond(least(Duration, 3153600000000000000))",
		Duration:    "Duration",
		Environment: firstSet("ResourceAttributes['deployment.environment.name']", "ResourceAttributes['deployment.environment']"),
		Application: "ServiceName",
		Route:       "SpanName",
		// The conventions have had three places for it. The last one is the event that a recorded
		// exception leaves.
		ErrorType:     firstSet("SpanAttributes['exception.type']", "SpanAttributes['error.type']", eventAttribute("exception.type"), "ResourceAttributes['exception.type']"),
		ErrorMessage:  firstSet("StatusMessage", "SpanAttributes['exception.message']", eventAttribute("exception.message")),
		ErrorStack:    firstSet("SpanAttributes['exception.stacktrace']", eventAttribute("exception.stacktrace")),
		CorrelationID: "TraceId",
		// The column takes precedence over an attribute that an instrumentation of earlier days set itself.
		Attributes: "mapUpdate(mapUpdate(ResourceAttributes, SpanAttributes), map('span.kind', SpanKind))",
		Failed:     "StatusCode IN ('Error', 'STATUS_CODE_ERROR')",
		Prune:      "toDateTime(Timestamp) >= toDateTime({from}) AND toDateTime(Timestamp) <= toDateTime({to})",
	}
}

func firstSet(expressions ...string) string {
	last := len(expressions) - 1
	var b strings.Builder
	b.WriteString("coalesce(")
	for _, e := range expressions[:last] {
		fmt.Fprintf(&b, "nullIf(%s, ''), ", e)
	}
	return b.String() + expressions[last] + ")"
}

func eventAttribute(key string) string {
	return "arrayFirst(x -> x != '', arrayMap(x -> x['" + key + "'], Events.Attributes))"
}

// kind is what an expression must yield.
type kind int

const (
	kindText kind = iota
	kindInstant
	kindOptionalInstant
	kindInsertedAt
	kindNanoseconds
	kindAttributes
	kindCondition
)

// expression is an expression of a mapping, with its name in a file.
type expression struct {
	name     string
	text     *string
	kind     kind
	required bool
}

// expressions returns every expression of m, in the order in which people read them.
func (m *Mapping) expressions() []expression {
	return []expression{
		{"tenant_id", &m.TenantID, kindText, false},
		{"start_time", &m.StartTime, kindInstant, true},
		{"execution_id", &m.ExecutionID, kindText, true},
		{"environment", &m.Environment, kindText, true},
		{"application", &m.Application, kindText, true},
		{"route", &m.Route, kindText, true},
		{"end_time", &m.EndTime, kindOptionalInstant, false},
		{"duration", &m.Duration, kindNanoseconds, false},
		{"error_type", &m.ErrorType, kindText, false},
		{"error_message", &m.ErrorMessage, kindText, false},
		{"error_stack", &m.ErrorStack, kindText, false},
		{"correlation_id", &m.CorrelationID, kindText, false},
		{"attributes", &m.Attributes, kindAttributes, false},
		{"failed", &m.Failed, kindCondition, true},
		{"terminal", &m.Terminal, kindCondition, false},
		{"prune", &m.Prune, kindCondition, false},
		{"inserted_at", &m.InsertedAt, kindInsertedAt, false},
	}
}

// Validate returns what is wrong with m, as far as that can be seen without the table.
func (m *Mapping) Validate() error {
	var errs []error
	if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`).MatchString(m.Table) {
		errs = append(errs, fmt.Errorf("table: %q is not the name of a table; write table or database.table", m.Table))
	}
	switch {
	case m.Tenant == "" && m.TenantID == "":
		errs = append(errs, errors.New("tenant: name the tenant of all rows, or set tenant_id to an expression for it"))
	case m.Tenant != "" && m.TenantID != "":
		errs = append(errs, errors.New("tenant: give either tenant or tenant_id, not both"))
	}
	for _, e := range m.expressions() {
		if e.required && *e.text == "" {
			errs = append(errs, fmt.Errorf("%s: an expression is needed", e.name))
		}
		if err := checkText(*e.text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.name, err))
		}
		if e.name != "prune" && slices.ContainsFunc([]string{"{from}", "{to}"}, func(s string) bool { return strings.Contains(*e.text, s) }) {
			errs = append(errs, fmt.Errorf("%s: {from} and {to} are allowed only in prune", e.name))
		}
	}
	return errors.Join(errs...)
}

// checkText refuses text that could end the parentheses around an expression.
func checkText(text string) error {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\'', '"', '`':
			end := closing(text, i)
			if end < 0 {
				return fmt.Errorf("the quotation that begins at character %d is not closed", i+1)
			}
			i = end
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth < 0 {
				return fmt.Errorf("the parenthesis at character %d was not opened", i+1)
			}
		case ',':
			if depth == 0 {
				return fmt.Errorf("the comma at character %d begins a second expression", i+1)
			}
		case ';', '#':
			return fmt.Errorf("%q is not allowed in an expression", string(c))
		case '-', '/':
			if i+1 < len(text) && (text[i:i+2] == "--" || text[i:i+2] == "/*") {
				return errors.New("comments are not allowed in an expression")
			}
		}
	}
	if depth > 0 {
		return errors.New("a parenthesis is not closed")
	}
	return nil
}

// closing returns the index at which the quotation that begins at start ends, or -1.
func closing(text string, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[start]:
			return i
		}
	}
	return -1
}
