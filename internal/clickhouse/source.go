// Package clickhouse reads exchanges. It is the only door to ClickHouse, and
// it only reads: every query runs under readonly, a bounded time and a bounded
// result.
//
// ClickHouse is authoritative for what happened; what is read here is judged in
// the process. A row may be there twice, or once as RUNNING and once as
// terminal, until parts are merged: callers see each terminal row that is there.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tocsin/evaluator"
	"tocsin/rules"
)

// Options configures a [Source].
type Options struct {
	// URL is a DSN: clickhouse://user:password@host:9000/database for the native
	// protocol, with ?secure=true for TLS; http://… or https://… for HTTP. Required.
	URL string
	// Mapping says what to read, [Exchanges] by default.
	Mapping Mapping
	// QueryTimeout bounds one query, 10 s by default. ClickHouse counts in whole
	// seconds; less than one is rounded up.
	QueryTimeout time.Duration
	// ScanBytes bounds what a scan holds, 64 MiB by default, unless it is for a single
	// exchange: messages and attributes are judged whole, however long they are.
	ScanBytes int
	// Version is Tocsin's, as ClickHouse's query log shows it.
	Version string
}

// Source reads one table of exchanges. It is safe for concurrent use.
type Source struct {
	conn      driver.Conn
	mapping   Mapping
	timeout   time.Duration
	scanBytes int
}

// Open prepares a source; the first query connects. The caller closes it.
func Open(o Options) (*Source, error) {
	if o.Mapping == (Mapping{}) {
		o.Mapping = Exchanges()
	}
	if err := o.Mapping.Validate(); err != nil {
		return nil, fmt.Errorf("mapping of the source: %w", err)
	}
	if o.QueryTimeout == 0 {
		o.QueryTimeout = 10 * time.Second
	}
	if o.ScanBytes == 0 {
		o.ScanBytes = 64 << 20
	}
	options, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	options.ClientInfo.Products = append(options.ClientInfo.Products, struct{ Name, Version string }{"tocsin", o.Version})
	options.ReadTimeout = o.QueryTimeout + 5*time.Second
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", redact(err, o.URL))
	}
	return &Source{conn: conn, mapping: o.Mapping, timeout: o.QueryTimeout, scanBytes: o.ScanBytes}, nil
}

// CheckURL returns what is wrong with the URL of a server, without connecting.
func CheckURL(url string) error {
	_, err := parse(url)
	return err
}

// form is what the URL of a server looks like.
const form = "TOCSIN_CLICKHOUSE_URL is not of the form clickhouse://user:password@host:9000/database, nor http:// or https://"

func parse(url string) (*clickhouse.Options, error) {
	scheme, _, _ := strings.Cut(url, "://")
	if !slices.Contains([]string{"clickhouse", "tcp", "native", "http", "https"}, scheme) {
		return nil, errors.New(form)
	}
	// The driver takes the scheme alone for a contradiction.
	if scheme == "https" && !regexp.MustCompile(`[?&]secure(=|&|$)`).MatchString(url) {
		separator := "?"
		if strings.Contains(url, "?") {
			separator = "&"
		}
		url += separator + "secure=true"
	}
	options, err := clickhouse.ParseDSN(url)
	if err != nil {
		return nil, fmt.Errorf(form+": %w", redact(err, url))
	}
	for _, address := range options.Addr {
		// HTTP has ports of its own.
		if _, _, err := net.SplitHostPort(address); err != nil && options.Protocol == clickhouse.Native {
			return nil, fmt.Errorf(form + ": it names no port, as 9000 or, with ?secure=true, 9440")
		}
	}
	return options, nil
}

// redact keeps an error that quotes the URL, and with it a password, from
// being shown.
func redact(err error, url string) error {
	if url != "" && regexp.MustCompile(regexp.QuoteMeta(url)).MatchString(err.Error()) {
		return errors.New("it cannot be read")
	}
	return err
}

// Close ends every connection.
func (s *Source) Close() error { return s.conn.Close() }

// Ping reports whether ClickHouse answers.
func (s *Source) Ping(ctx context.Context) error {
	if err := s.conn.Ping(ctx); err != nil {
		return unreached(err)
	}
	return nil
}

// unreached wraps an error that is none of a query. A server of HTTP to which the
// native protocol is spoken waits for the rest of a request, so that nothing but the
// time-out of the first exchange of words tells it.
func unreached(err error) error {
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() && strings.Contains(err.Error(), "handshake: ") {
		return fmt.Errorf("clickhouse: %w; is that a port for HTTP, as 8123? Then the URL begins with http://", err)
	}
	return fmt.Errorf("clickhouse: %w", err)
}

// Now returns ClickHouse's clock, in nanoseconds since the Unix epoch.
func (s *Source) Now(ctx context.Context) (int64, error) {
	var ns int64
	err := s.conn.QueryRow(s.bounded(ctx, query{}, 1), `SELECT toUnixTimestamp64Nano(now64(9))`).Scan(&ns)
	if err != nil {
		return 0, fmt.Errorf("clickhouse clock: %w", err)
	}
	return ns, nil
}

// Scan returns the exchanges of a range in the order of their positions, or
// [evaluator.ErrTooMuch] where they are larger than the bound.
func (s *Source) Scan(ctx context.Context, scan evaluator.Scan) ([]rules.Exchange, error) {
	if scan.Narrow != nil {
		return s.matching(ctx, MatchQuery{
			TenantID: scan.TenantID, After: scan.After, BeforeNS: scan.BeforeNS, Limit: scan.Limit,
			Scope: scan.Narrow.Scope, Filter: scan.Narrow.Filter,
		}, s.scanBytes)
	}
	p := scanned(&s.mapping, scan)
	p.maxBytes = s.scanBytes
	return s.pageAfter(ctx, p)
}

// pageAfter reads a page strictly after its position.
func (s *Source) pageAfter(ctx context.Context, p page) ([]rules.Exchange, error) {
	list, err := s.page(ctx, pageQuery(&s.mapping, p), p.tenantID, p.limit)
	if err == nil && len(list) > 0 && !list[0].Position().After(p.after) {
		// It has no id. Left out here it would make a full page look like the last one.
		p.strict = true
		return s.page(ctx, pageQuery(&s.mapping, p), p.tenantID, p.limit)
	}
	return list, err
}

// page runs a query that selects exchanges of one tenant.
func (s *Source) page(ctx context.Context, q query, tenantID string, limit int) ([]rules.Exchange, error) {
	rows, err := s.conn.Query(s.bounded(ctx, q, limit), q.sql)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells all there is
	var page []rules.Exchange
	for rows.Next() {
		e, err := readExchange(rows)
		if err != nil {
			return nil, fmt.Errorf("clickhouse: read exchange: %w; `tocsin source check` tells which expression of the mapping is of another type", err)
		}
		e.TenantID = tenantID
		page = append(page, e)
	}
	// Without this, a connection lost in mid-answer would look like the end.
	if err := rows.Err(); err != nil {
		return nil, s.explain(err)
	}
	return page, nil
}

// readExchange takes the columns of [Mapping.columns].
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

// Fingerprints returns the fingerprints of a range.
func (s *Source) Fingerprints(ctx context.Context, fq evaluator.FingerprintQuery) ([]evaluator.Fingerprint, error) {
	q := fingerprintQuery(&s.mapping, fq)
	buckets := int((fq.ToNS-fq.FromNS)/fq.WidthNS + 3)
	rows, err := s.conn.Query(s.bounded(ctx, q, buckets*len(fq.Statuses)), q.sql)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells all there is
	var prints []evaluator.Fingerprint
	for rows.Next() {
		var p evaluator.Fingerprint
		var status string
		var fresh uint8
		if err := rows.Scan(&status, &p.Bucket, &fresh, &p.Count, &p.Checksum); err != nil {
			return nil, fmt.Errorf("clickhouse: read fingerprint: %w", err)
		}
		p.Status, p.Fresh = rules.Status(status), fresh != 0
		prints = append(prints, p)
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain(err)
	}
	return prints, nil
}

// Rows returns how many rows of a tenant begin in a range.
func (s *Source) Rows(ctx context.Context, tenantID string, fromNS, toNS int64) (rows uint64, err error) {
	q := rowsQuery(&s.mapping, tenantID, fromNS, toNS)
	if err := s.conn.QueryRow(s.bounded(ctx, q, 1), q.sql).Scan(&rows); err != nil {
		return 0, s.explain(err)
	}
	return rows, nil
}

// explain shortens what ClickHouse says to its code and its first sentence
// (the rest quotes the query), and names the remedy where there is one.
func (s *Source) explain(err error) error {
	const unknownTable, unknownDatabase, unknownIdentifier, tooManyRowsOrBytes, decimalOverflow, cannotCompileRegexp = 60, 81, 47, 396, 407, 427
	said, ok := errors.AsType[*clickhouse.Exception](err)
	if !ok {
		return unreached(err)
	}
	message, _, _ := strings.Cut(said.Message, " in scope ")
	short := fmt.Errorf("clickhouse: code %d: %s", said.Code, message)
	switch said.Code {
	case unknownTable, unknownDatabase:
		if s.mapping.Table != Exchanges().Table {
			return fmt.Errorf("%w; create the table %s, or name another one", short, s.mapping.Table)
		}
		return fmt.Errorf("%w; create the table %s as `tocsin source ddl` prints it, or name another one", short, s.mapping.Table)
	case unknownIdentifier:
		return fmt.Errorf("%w; `tocsin source check` compares the mapping with the table %s", short, s.mapping.Table)
	case tooManyRowsOrBytes:
		return fmt.Errorf("%w: %w", evaluator.ErrTooMuch, short)
	case decimalOverflow:
		return fmt.Errorf("%w; a row of the table %s holds an instant before 1677-09-21 or after 2262-04-11: correct it, or bound it in the mapping", short, s.mapping.Table)
	case cannotCompileRegexp:
		return fmt.Errorf("%w; ClickHouse compiles no expression that large: make it shorter, or its repetitions fewer", short)
	default:
		return short
	}
}

// bounded returns a context under which a query runs read-only, with its
// parameters, and fails rather than exceed its time, its number of rows or its bytes.
func (s *Source) bounded(ctx context.Context, q query, maxRows int) context.Context {
	settings := clickhouse.Settings{
		// 2 rather than 1, neither of which writes: a user whose profile says
		// readonly = 2 may send what it has already, and no other value.
		"readonly":             2,
		"max_execution_time":   int(math.Ceil(s.timeout.Seconds())),
		"max_result_rows":      maxRows,
		"result_overflow_mode": "throw",
	}
	if q.maxBytes > 0 {
		settings["max_result_bytes"] = q.maxBytes
	}
	return clickhouse.Context(ctx, clickhouse.WithParameters(q.parameters), clickhouse.WithSettings(settings))
}
