package chserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"tocsin/cmd/devstack/internal/chdb"
)

// drainLimit is how much of a refused insert's body is still read, so that the client sees the
// answer.
const drainLimit = 256 << 20

// chunkSize is how much of an insert's body is passed to the engine at a time.
const chunkSize = 1 << 20

// lastWords is how long a client may take to read the answer to a request whose context has ended.
const lastWords = 2 * time.Second

// front answers HTTP requests from the engine.
type front struct {
	sessions *sessions
	identity identity
	log      *slog.Logger
	now      func() time.Time
	// running counts the requests: the engine must not be closed while they run.
	running requestGroup
}

// routes are the paths of a ClickHouse server that clients use.
func (f *front) routes() http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "Ok.\n") }
	mux.HandleFunc("GET /ping", ok)
	mux.HandleFunc("GET /replicas_status", ok)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("query") {
			f.serveQuery(w, r)
			return
		}
		ok(w, r)
	})
	mux.HandleFunc("POST /{$}", f.serveQuery)
	return http.NewCrossOriginProtection().Handler(mux)
}

// serveQuery runs one statement.
func (f *front) serveQuery(w http.ResponseWriter, r *http.Request) {
	if !f.running.enter() {
		http.Error(w, "the server is stopping", http.StatusServiceUnavailable)
		return
	}
	defer f.running.leave()
	defer f.boundTransfer(w, r)()
	req, refused := parseRequest(r)
	resp := newResponse(w, f.identity, req, f.now)
	if refused != nil {
		resp.fail(refused)
		return
	}
	stats, err := f.run(r.Context(), req, resp)
	if err == nil {
		err = resp.finish(stats)
	}
	if err != nil {
		f.log.LogAttrs(r.Context(), slog.LevelDebug, "statement fails", slog.String("query_id", req.queryID), slog.Any("error", err))
		resp.fail(err)
	}
}

// boundTransfer ensures that a client that neither sends nor reads does not hold up a request whose
// context has ended. The returned function ends the watch.
func (f *front) boundTransfer(w http.ResponseWriter, r *http.Request) func() bool {
	return context.AfterFunc(r.Context(), func() {
		control := http.NewResponseController(w)
		// An error means that the connection is already closed.
		_ = errors.Join(control.SetReadDeadline(f.now()), control.SetWriteDeadline(f.now().Add(lastWords)))
	})
}

// run prepares a connection as the request asks and runs its statement there.
func (f *front) run(ctx context.Context, req *request, resp *response) (chdb.Stats, error) {
	conn, release, err := f.sessions.acquire(req)
	if err != nil {
		return chdb.Stats{}, err
	}
	defer release()
	setup, refused := req.setup()
	if refused != nil {
		return chdb.Stats{}, refused
	}
	if setup != "" {
		if _, err := conn.Exec(ctx, chdb.Statement{SQL: setup}); err != nil {
			return chdb.Stats{}, err
		}
	}
	content, err := req.read()
	if err != nil {
		return chdb.Stats{}, err
	}
	switch {
	case content.data != nil:
		resp.setFormat(req.format)
		return f.insert(ctx, conn, req, content)
	case req.isHandshake(content.text):
		resp.setFormat(req.format)
		return chdb.Stats{}, f.identity.writeHandshake(resp, req.revision)
	default:
		return f.query(ctx, conn, req, resp, content.text)
	}
}

// query runs a statement and copies its result.
func (f *front) query(ctx context.Context, conn *chdb.Conn, req *request, resp *response, text string) (chdb.Stats, error) {
	if strings.TrimSpace(text) == "" {
		return chdb.Stats{}, exception(codeSyntaxError, "SYNTAX_ERROR", "Syntax error: Empty query")
	}
	if strings.Contains(text, ";") && conn.CountStatements(text) > 1 {
		return chdb.Stats{}, exception(codeSyntaxError, "SYNTAX_ERROR", "Syntax error (Multi-statements are not allowed)")
	}
	if clause := clientClause(text); clause != "" {
		return chdb.Stats{}, exception(codeNotImplemented, "NOT_IMPLEMENTED", clause+" is not supported")
	}
	format := first(outputFormat(text), req.format)
	resp.setFormat(format)
	rows, err := conn.Run(ctx, chdb.Statement{
		SQL: text, Format: req.format, Params: req.params,
		Whole: !chdb.Streams(format) || isOn(req.settings["extremes"]) || hasWord(text, "TOTALS", "EXTREMES"),
	})
	if err != nil {
		return chdb.Stats{}, err
	}
	err = copyRows(ctx, resp, rows)
	return rows.Stats(), errors.Join(err, rows.Close())
}

// copyRows copies a result block by block.
func copyRows(ctx context.Context, w io.Writer, rows *chdb.Rows) error {
	for {
		data, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
}

// insert passes the request's data to the engine as they arrive.
func (f *front) insert(ctx context.Context, conn *chdb.Conn, req *request, content content) (chdb.Stats, error) {
	insert, err := conn.Insert(ctx, chdb.Statement{
		SQL: content.insert.head, Format: content.insert.format, Params: req.params,
	})
	if err != nil {
		drain(content.data)
		return chdb.Stats{}, err
	}
	defer insert.Close()
	buffer := make([]byte, chunkSize)
	for {
		n, err := content.data.Read(buffer)
		if !insert.Append(ctx, buffer[:n]) {
			drain(content.data)
			break
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return chdb.Stats{}, bodyError(err)
		}
	}
	return insert.Commit(ctx)
}

// drain reads and discards the rest of a body: a client that is still sending would otherwise see a
// reset connection instead of the answer.
func drain(body io.Reader) {
	_, _ = io.CopyN(io.Discard, body, drainLimit) // Its end and its errors are the same: there is nothing more to come.
}
