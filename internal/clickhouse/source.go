// Package clickhouse reads exchanges. It is the only package that talks to ClickHouse, and it only
// reads.
//
// What a caller may rely on:
//
//   - ClickHouse decides what happened; the process only evaluates what is read here.
//   - Every query is read-only and has a bound on its time and its result. An answer that was cut
//     short is an error (see settings).
//   - A row may exist twice, or once as RUNNING and once as terminal, until parts are merged.
//     Callers see each terminal row that exists.
//   - Each answer to a pass names the server that gave it, even an empty answer. The name and the
//     rows come from one query, so that nothing between this process and ClickHouse can make them
//     differ.
package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tocsin/evaluator/source"
)

// Options configures a [Source].
type Options struct {
	// URL is a DSN: clickhouse://user:password@host:9000/database for the native protocol, with
	// ?secure=true for TLS; http://… or https://… for HTTP. It is required.
	URL string
	// Mapping says what to read, [Exchanges] by default.
	Mapping Mapping
	// QueryTimeout bounds one query, 10 s by default. ClickHouse counts in whole seconds, so
	// fractions are rounded up.
	QueryTimeout time.Duration
	// ScanBytes bounds what a scan holds, 64 MiB by default, unless the scan is for a single
	// exchange: messages and attributes are evaluated whole, whatever their length.
	ScanBytes int
	// Connections is how many queries may be under way at once, 10 by default; others wait. The URL may
	// set another number as max_open_conns.
	Connections int
	// Kept is how many connections stay open without a query, 5 by default. The URL may set another
	// number as max_idle_conns.
	Kept int
	// Version is the version of Tocsin, which ClickHouse's query log shows.
	Version string
}

// Source reads one table of exchanges. It is safe for concurrent use.
type Source struct {
	conn      driver.Conn
	mapping   Mapping
	timeout   time.Duration
	scanBytes int
	// byStart is whether the table is sorted by start time; nil until it is known.
	byStart atomic.Pointer[bool]
}

// Open prepares a source. The first query connects. The caller closes the source.
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
	options.MaxIdleConns = cmp.Or(options.MaxIdleConns, o.Kept, 5)
	options.MaxOpenConns = cmp.Or(options.MaxOpenConns, max(o.Connections, options.MaxIdleConns, 10))
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", redact(err, o.URL))
	}
	return &Source{conn: conn, mapping: o.Mapping, timeout: o.QueryTimeout, scanBytes: o.ScanBytes}, nil
}

// CheckURL returns what is wrong with the URL of a server. It does not connect.
func CheckURL(address string) error {
	_, err := parse(address)
	return err
}

// form is what the URL of a server looks like.
const form = "TOCSIN_CLICKHOUSE_URL is not of the form clickhouse://user:password@host:9000/database, nor http:// or https://"

func parse(address string) (*clickhouse.Options, error) {
	scheme, _, _ := strings.Cut(address, "://")
	if !slices.Contains([]string{"clickhouse", "tcp", "native", "http", "https"}, scheme) {
		return nil, errors.New(form)
	}
	// The driver refuses the scheme https without secure=true.
	if scheme == "https" && !regexp.MustCompile(`[?&]secure(=|&|$)`).MatchString(address) {
		separator := "?"
		if strings.Contains(address, "?") {
			separator = "&"
		}
		address += separator + "secure=true"
	}
	options, err := clickhouse.ParseDSN(address)
	if err != nil {
		return nil, fmt.Errorf(form+": %w", redact(err, address))
	}
	for _, server := range options.Addr {
		// HTTP has other default ports.
		if _, _, err := net.SplitHostPort(server); err != nil && options.Protocol == clickhouse.Native {
			return nil, fmt.Errorf(form + ": it has no port; add one, such as 9000, or 9440 with ?secure=true")
		}
	}
	return options, nil
}

// redact hides an error that quotes the URL, which may contain a password.
func redact(err error, address string) error {
	if address != "" && regexp.MustCompile(regexp.QuoteMeta(address)).MatchString(err.Error()) {
		return errors.New("it cannot be read")
	}
	return err
}

// Close closes every connection.
func (s *Source) Close() error { return s.conn.Close() }

// Ping reports whether ClickHouse answers.
func (s *Source) Ping(ctx context.Context) error {
	if err := s.conn.Ping(ctx); err != nil {
		return unreached(err)
	}
	return nil
}

// unreached wraps an error that does not come from a query. If the native protocol is used with an
// HTTP server, the server waits for the rest of a request, so the only symptom is a time-out of the
// handshake.
func unreached(err error) error {
	err = withoutQuery(err)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() && strings.Contains(err.Error(), "handshake: ") {
		return fmt.Errorf("clickhouse: %w; if that is a port for HTTP, such as 8123, the URL must begin with http://", err)
	}
	return fmt.Errorf("clickhouse: %w", err)
}

// shortened is an error with a shorter text.
type shortened struct {
	error
	text string
}

func (s shortened) Error() string { return s.text }

func (s shortened) Unwrap() error { return s.error }

// withoutQuery shortens the address that an error of HTTP quotes to the server. Over HTTP, it also
// holds the user, and every setting and parameter of the query, between which nobody finds the
// reason.
func withoutQuery(err error) error {
	failed, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	server := "the server"
	if at, err := url.Parse(failed.URL); err == nil {
		server = at.Scheme + "://" + at.Host
	}
	return shortened{err, strings.ReplaceAll(err.Error(), strconv.Quote(failed.URL), server)}
}

// ClickHouse's numbers of errors.
const (
	unknownIdentifier, unknownTable, unknownDatabase      = 47, 60, 81
	unknownSetting, settingConstraint, tooManyRowsOrBytes = 115, 452, 396
	readOnly, accessDenied, authenticationFailed          = 164, 497, 516
	decimalOverflow, cannotCompileRegexp                  = 407, 427
	memoryLimitExceeded, syntaxError                      = 241, 62
)

// queryTooLong is the text of a [RefusedError] about a query that ClickHouse does not parse because of its length.
const queryTooLong = "the query is longer than max_query_size"

// RefusedError is an error that ClickHouse returned, unlike one of the connection to it.
type RefusedError struct {
	// Code is ClickHouse's number of the error, Text its first sentence: the rest quotes the query.
	Code int32
	Text string
	// Remedy says what to do; empty if it depends on the text.
	Remedy string
}

func (r *RefusedError) Error() string {
	text := fmt.Sprintf("ClickHouse refused the query: code %d: %s", r.Code, r.Text)
	if r.Remedy != "" {
		text += "; " + r.Remedy
	}
	return text
}

// explain turns an exception of ClickHouse into a [RefusedError], and adds [source.ErrTooMuch] if the
// result exceeds its bound.
func (s *Source) explain(err error) error {
	said, ok := errors.AsType[*clickhouse.Exception](err)
	if !ok {
		return unreached(err)
	}
	message, _, _ := strings.Cut(said.Message, " in scope ")
	refusal := &RefusedError{Code: said.Code, Text: message, Remedy: s.remedy(said.Code)}
	if said.Code == syntaxError && strings.Contains(message, "max_query_size") {
		refusal.Text = queryTooLong
		refusal.Remedy = "use fewer names and fewer wildcards in the rule, or raise max_query_size in the user's settings profile"
	}
	if said.Code == tooManyRowsOrBytes {
		return fmt.Errorf("%w: %w", source.ErrTooMuch, refusal)
	}
	return refusal
}

// remedy returns what to do about an error of ClickHouse; empty if it depends on the text.
func (s *Source) remedy(code int32) string {
	switch code {
	case unknownDatabase:
		return "create the database, or correct its name in TOCSIN_CLICKHOUSE_URL or --clickhouse-table"
	case unknownTable:
		if s.mapping.Table != Exchanges().Table {
			return "create the table " + s.mapping.Table + ", or name another one with --clickhouse-table"
		}
		return "create the table " + s.mapping.Table + " as `tocsin source ddl` prints it, or name another one with --clickhouse-table"
	case unknownIdentifier:
		return "run `tocsin source check`, which compares the mapping with the table " + s.mapping.Table
	case unknownSetting:
		return "run ClickHouse 24.3 or newer"
	case settingConstraint:
		return "without this setting, an incomplete answer may look complete: allow the user to change it, or set it to that value in the user's profile"
	case readOnly:
		return "Tocsin sends its limits as settings: give the user a settings profile with readonly 0 or 2"
	case accessDenied:
		return "grant the user SELECT on " + s.mapping.Table
	case authenticationFailed:
		return "correct the user or the password in TOCSIN_CLICKHOUSE_URL"
	case decimalOverflow:
		return "a row of the table " + s.mapping.Table + " contains a time before 1677-09-21 or after 2262-04-11: correct it, or limit it in the mapping"
	case cannotCompileRegexp:
		return "the expression is too large for ClickHouse: shorten it, or use fewer repetitions"
	case memoryLimitExceeded:
		return "raise max_memory_usage in the user's settings profile, or give ClickHouse more memory"
	default:
		return ""
	}
}
