package chdb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"unsafe"
)

// ErrClosed is returned by a connection that was closed.
var ErrClosed = errors.New("connection is closed")

// Param is the value of a {name:Type} placeholder, in the text form that ClickHouse's HTTP interface takes.
type Param struct {
	Name, Value string
}

// Statement is one statement to run.
type Statement struct {
	SQL string
	// Format of the rows if the text has no FORMAT clause; of the data, for an insert. Empty means
	// TabSeparated.
	Format string
	Params []Param
	// Whole asks for the result in one block even if it could be streamed.
	Whole bool
}

// Streams reports whether a result in the format is the same streamed and whole, except for totals
// and extremes. Names are compared as in ClickHouse, including case.
func Streams(format string) bool {
	switch format {
	case "Native", "RowBinary",
		"", "TabSeparated", "TSV", "TabSeparatedRaw", "TSVRaw", "CSV",
		"JSONEachRow", "JSONLines", "NDJSON", "JSONStringsEachRow", "JSONCompactEachRow", "JSONCompactStringsEachRow":
		return true
	default:
		return false
	}
}

// Stats says what a statement did. They add up over the blocks of a stream.
type Stats struct {
	ResultRows, ResultBytes   uint64
	ReadRows, ReadBytes       uint64
	WrittenRows, WrittenBytes uint64
}

// add adds the counts of a further block.
func (s *Stats) add(other Stats) {
	s.ResultRows += other.ResultRows
	s.ResultBytes += other.ResultBytes
	s.ReadRows += other.ReadRows
	s.ReadBytes += other.ReadBytes
	s.WrittenRows += other.WrittenRows
	s.WrittenBytes += other.WrittenBytes
}

// Conn is one session on the engine. It runs one statement at a time: a Rows or an Insert must be
// closed before the next one. It is not safe for concurrent use. If the context of a method ends,
// its statement is stopped, and the method returns the engine's error 394 (or the result, if the
// statement ended at that moment).
type Conn struct {
	engine *Engine
	lib    *Library
	handle *uintptr
	tag    string
}

// Close ends the session and drops its temporary tables. Closing twice is harmless.
func (c *Conn) Close() {
	if c.handle != nil {
		c.lib.close(c.handle)
		c.handle = nil
	}
}

// CountStatements returns how many statements the text contains; 0 means that it cannot be parsed.
func (c *Conn) CountStatements(sql string) int {
	if c.handle == nil {
		return 0
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	text, size := pinned(&pins, sql)
	out := &analysis{structSize: uint32(unsafe.Sizeof(analysis{}))}
	if c.lib.classify(*c.handle, text, size, nil, 0, out) != 0 {
		return 0
	}
	return int(out.statementCount)
}

// Exec runs a statement to its end and returns what it did; rows are discarded.
func (c *Conn) Exec(ctx context.Context, stmt Statement) (Stats, error) {
	stmt.Whole = true
	rows, err := c.Run(ctx, stmt)
	if err != nil {
		return Stats{}, err
	}
	return rows.Stats(), rows.Close()
}

// Run starts a statement. Rows are streamed if the engine can do so; other statements have ended
// when Run returns.
func (c *Conn) Run(ctx context.Context, stmt Statement) (*Rows, error) {
	if c.handle == nil {
		return nil, ErrClosed
	}
	if !stmt.Whole {
		var stream uintptr
		c.interruptible(ctx, func() { stream = c.call(c.lib.stream, stmt) })
		err := c.errorOf(stream)
		if err == nil {
			return &Rows{conn: c, stream: stream}, nil
		}
		c.lib.resultFree(stream)
		if !err.refusesStream() {
			return nil, err
		}
	}
	var result uintptr
	c.interruptible(ctx, func() { result = c.call(c.lib.query, stmt) })
	data, stats, err := c.take(result)
	if err != nil {
		return nil, err
	}
	return &Rows{conn: c, whole: data, stats: stats}, nil
}

// Rows is the result of a statement, in its format, block by block.
type Rows struct {
	conn   *Conn
	stream uintptr // 0 when the result came whole, or has been closed
	whole  []byte
	stats  Stats
}

// Next returns the next block of bytes, or io.EOF after the last. The bytes belong to the caller.
func (r *Rows) Next(ctx context.Context) ([]byte, error) {
	if r.stream == 0 {
		if len(r.whole) == 0 {
			return nil, io.EOF
		}
		data := r.whole
		r.whole = nil
		return data, nil
	}
	var result uintptr
	r.conn.interruptible(ctx, func() { result = r.conn.lib.fetch(*r.conn.handle, r.stream) })
	data, stats, err := r.conn.take(result)
	if err != nil {
		return nil, err
	}
	r.stats.add(stats)
	if len(data) == 0 {
		return nil, io.EOF
	}
	return data, nil
}

// Stats returns the counts so far; they are complete after io.EOF.
func (r *Rows) Stats() Stats { return r.stats }

// Close stops the statement if it is still running. Closing twice is harmless.
func (r *Rows) Close() error {
	r.whole = nil
	if r.stream != 0 {
		r.conn.lib.cancel(*r.conn.handle, r.stream)
		r.conn.lib.resultFree(r.stream)
		r.stream = 0
	}
	return nil
}

// interruptible makes a call that blocks in the engine. If the context ends meanwhile, the
// statement is killed. When interruptible returns, no kill is under way any more, so that none can
// hit the next statement.
func (c *Conn) interruptible(ctx context.Context, call func()) {
	if ctx.Done() == nil {
		call()
		return
	}
	finished, killed := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		c.engine.kill(ctx, c.tag, finished)
	})
	call()
	close(finished)
	if !stop() {
		<-killed
	}
}

// call passes a statement to one of the engine's functions. Text, format and parameters are pinned
// only for the call: the engine copies what it keeps.
func (c *Conn) call(fn statementFunc, stmt Statement) uintptr {
	var pins runtime.Pinner
	defer pins.Unpin()
	sql, sqlLen := pinned(&pins, stmt.SQL)
	format, formatLen := pinned(&pins, stmt.format())
	count := len(stmt.Params)
	if count == 0 {
		return fn(*c.handle, sql, sqlLen, format, formatLen, nil, nil, nil, nil, 0)
	}
	names, nameLens := make([]unsafe.Pointer, count), make([]uintptr, count)
	values, valueLens := make([]unsafe.Pointer, count), make([]uintptr, count)
	for i, param := range stmt.Params {
		names[i], nameLens[i] = pinned(&pins, param.Name)
		values[i], valueLens[i] = pinned(&pins, param.Value)
	}
	for _, array := range [][]unsafe.Pointer{names, values} {
		pins.Pin(&array[0])
	}
	for _, array := range [][]uintptr{nameLens, valueLens} {
		pins.Pin(&array[0])
	}
	return fn(*c.handle, sql, sqlLen, format, formatLen,
		unsafe.Pointer(&names[0]), unsafe.Pointer(&nameLens[0]),
		unsafe.Pointer(&values[0]), unsafe.Pointer(&valueLens[0]), uintptr(count))
}

// format returns the format, or its default.
func (s Statement) format() string {
	if s.Format == "" {
		return "TabSeparated"
	}
	return s.Format
}

// errorOf returns the error of a result; nil if there is none. The result still belongs to the
// caller.
func (c *Conn) errorOf(result uintptr) *Error {
	if result == 0 {
		return newError("the engine returned no result")
	}
	if text := c.lib.resultError(result); text != "" {
		return newError(text)
	}
	return nil
}

// take copies a result into Go's memory and frees it.
func (c *Conn) take(result uintptr) ([]byte, Stats, error) {
	if err := c.errorOf(result); err != nil {
		if result != 0 {
			c.lib.resultFree(result)
		}
		return nil, Stats{}, err
	}
	defer c.lib.resultFree(result)
	stats := Stats{
		ResultRows: c.lib.resultRows(result), ResultBytes: c.lib.resultBytes(result),
		ReadRows: c.lib.resultReadRows(result), ReadBytes: c.lib.resultReadBytes(result),
		WrittenRows: c.lib.resultWrittenRows(result), WrittenBytes: c.lib.resultWrittenBytes(result),
	}
	buffer, size := c.lib.resultBuffer(result), c.lib.resultLength(result)
	if buffer == nil || size == 0 {
		return nil, stats, nil
	}
	return bytes.Clone(unsafe.Slice(buffer, size)), stats, nil
}

// pinned returns address and length of a string that stays in place until the pins are released.
func pinned(pins *runtime.Pinner, s string) (unsafe.Pointer, uintptr) {
	data := unsafe.StringData(s + "\x00") // never nil, not even for an empty string
	pins.Pin(data)
	return unsafe.Pointer(data), uintptr(len(s))
}
