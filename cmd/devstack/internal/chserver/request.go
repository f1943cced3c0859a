package chserver

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/cmd/devstack/internal/chdb"
)

const (
	// queryProbe is how much of a body is searched for an INSERT with data; ClickHouse's
	// max_query_size.
	queryProbe = 256 << 10
	// queryLimit bounds any other statement; the engine's own max_query_size applies as well.
	queryLimit = 64 << 20

	defaultSessionTimeout = time.Minute
	maxSessionTimeout     = time.Hour
)

// request is what a client asked for.
type request struct {
	queryID  string
	query    string // of the URL; the body continues it
	body     io.Reader
	database string
	format   string
	settings map[string]string
	params   []chdb.Param

	session        string
	sessionMust    bool // exist already
	sessionTimeout time.Duration

	encoding   string // of the answer
	compress   bool   // the answer, in ClickHouse's blocks
	method     string // of that compression
	waitForEnd bool
	revision   int // that a client announces for format Native
}

// notSettings are the URL parameters that a server itself uses.
func notSettings() []string {
	return []string{
		"query", "database", "default_format", "query_id", "session_id", "session_timeout", "session_check", "user", "password",
		"quota_key", "compress", "decompress", "wait_end_of_query", "buffer_size", "client_protocol_version", "stacktrace", "role",
	}
}

// parseRequest reads URL and headers; the body is opened, not read.
func parseRequest(r *http.Request) (*request, *chdb.Error) {
	// Semicolons and broken escapes are refused, not dropped.
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, exception(codeBadArguments, "BAD_ARGUMENTS", "URL parameters: "+err.Error())
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		return nil, exception(codeNotImplemented, "NOT_IMPLEMENTED", "external tables (multipart/form-data) are not supported")
	}
	req := &request{
		queryID:    query.Get("query_id"),
		query:      query.Get("query"),
		database:   first(query.Get("database"), r.Header.Get("X-ClickHouse-Database")),
		format:     first(query.Get("default_format"), r.Header.Get("X-ClickHouse-Format"), "TabSeparated"),
		settings:   make(map[string]string),
		session:    query.Get("session_id"),
		compress:   isOn(query.Get("compress")),
		method:     query.Get("network_compression_method"),
		waitForEnd: isOn(query.Get("wait_end_of_query")),
	}
	if req.queryID == "" {
		req.queryID = uuid.NewString()
	}
	req.revision, _ = strconv.Atoi(query.Get("client_protocol_version")) // absent or odd: 0
	for name, values := range query {
		value := values[len(values)-1]
		if param, ok := strings.CutPrefix(name, "param_"); ok {
			req.params = append(req.params, chdb.Param{Name: param, Value: value})
		} else if !slices.Contains(notSettings(), name) {
			req.settings[name] = value
		}
	}
	// A GET must not change anything.
	if readonly := req.settings["readonly"]; r.Method == http.MethodGet && req.session == "" && (readonly == "" || readonly == "0") {
		req.settings["readonly"] = "2"
	}
	if !isOff(req.settings["enable_http_compression"]) {
		req.encoding = negotiate(r.Header.Get("Accept-Encoding"))
	}
	if err := req.parseSession(query); err != nil {
		return nil, err
	}
	return req, req.openBody(r, isOn(query.Get("decompress")))
}

// parseSession reads the session's parameters.
func (q *request) parseSession(query url.Values) *chdb.Error {
	q.sessionMust = isOn(query.Get("session_check"))
	q.sessionTimeout = defaultSessionTimeout
	if text := query.Get("session_timeout"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 0 || time.Duration(seconds)*time.Second > maxSessionTimeout {
			return exception(codeBadArguments, "BAD_ARGUMENTS", "Invalid session timeout: "+text)
		}
		q.sessionTimeout = time.Duration(seconds) * time.Second
	}
	return nil
}

// openBody decodes the body's content encoding and, if requested, ClickHouse's blocks within.
func (q *request) openBody(r *http.Request, decompress bool) *chdb.Error {
	q.body = http.NoBody
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	body, err := decoder(r.Header.Get("Content-Encoding"), r.Body)
	if err != nil {
		return exception(codeCannotDecompress, "CANNOT_DECOMPRESS", "Body: "+err.Error())
	}
	if decompress {
		body = newBlockReader(body)
	}
	q.body = body
	return nil
}

// content is the statement of a request: its whole text, or an INSERT's head and its data.
type content struct {
	text   string
	insert insertion
	data   io.Reader // nil without an INSERT's data
}

// read composes the statement from URL and body.
func (q *request) read() (content, error) {
	if q.query != "" {
		if insert, ok := splitInsert(q.query); ok {
			return content{insert: insert, data: io.MultiReader(strings.NewReader(q.query[insert.data:]), q.body)}, nil
		}
	}
	probe, err := io.ReadAll(io.LimitReader(q.body, queryProbe))
	if err != nil {
		return content{}, bodyError(err)
	}
	text := q.query
	if text != "" && len(probe) > 0 {
		text += "\n"
	}
	head := len(text)
	text += string(probe)
	if insert, ok := splitInsert(text); ok && insert.data >= head {
		rest := probe[insert.data-head:]
		return content{insert: insert, data: io.MultiReader(bytes.NewReader(rest), q.body)}, nil
	}
	if len(probe) == queryProbe {
		rest, err := io.ReadAll(io.LimitReader(q.body, queryLimit+1))
		if err != nil {
			return content{}, bodyError(err)
		}
		if len(rest) > queryLimit {
			return content{}, exception(codeQueryIsTooLarge, "QUERY_IS_TOO_LARGE", "The statement is longer than 64 MiB")
		}
		text += string(rest)
	}
	return content{text: text}, nil
}

// bodyError turns an error of reading a body into an exception.
func bodyError(err error) error {
	if _, ok := errors.AsType[*chdb.Error](err); ok {
		return err
	}
	return exception(codeCannotDecompress, "CANNOT_DECOMPRESS", "Cannot read the request's body: "+err.Error())
}

// setup is the text that sets the request's database and settings on a fresh connection; "" if
// there is nothing to do. Settings are applied in one statement, so that readonly binds only what
// follows.
func (q *request) setup() (string, *chdb.Error) {
	var text strings.Builder
	if q.database != "" {
		text.WriteString("USE `" + escape(q.database, '`') + "`;")
	}
	names := slices.Sorted(maps.Keys(q.settings))
	valid := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for i, name := range names {
		if !valid.MatchString(name) {
			return "", exception(codeUnknownSetting, "UNKNOWN_SETTING", "Unknown setting '"+escape(name, '\'')+"'")
		}
		text.WriteString(map[bool]string{true: " SET ", false: ", "}[i == 0])
		text.WriteString(name + " = '" + escape(q.settings[name], '\'') + "'")
	}
	return text.String(), nil
}

// escape makes text safe between quotes.
func escape(text string, quote rune) string {
	return strings.NewReplacer(`\`, `\\`, string(quote), `\`+string(quote)).Replace(text)
}

// first returns the first value that is not empty.
func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// isOn reads a boolean parameter.
func isOn(value string) bool { return value == "1" || strings.EqualFold(value, "true") }

// isOff reads a boolean parameter that is on unless switched off.
func isOff(value string) bool { return value == "0" || strings.EqualFold(value, "false") }
