package chserver

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tocsin/cmd/devstack/internal/chdb"
)

// holdBack is how much of a result is kept before the status line is sent, as in ClickHouse: an
// earlier error still gets its own status and code.
const holdBack = 1 << 20

// maxException is how long an exception in the middle of a result can be: readers look for it in the last 16 KiB.
const maxException = 15 << 10

// response writes one answer. Until it is committed, it can still become an error.
type response struct {
	w        http.ResponseWriter
	identity identity
	req      *request // nil when the request could not be read
	started  time.Time
	now      func() time.Time

	held      []byte
	committed bool
	tag       string
	encoded   flushWriteCloser // content encoding, or nil
	blocks    *blockWriter     // ClickHouse's compression, or nil
	out       io.Writer
}

// newResponse sets the headers that are known before a statement runs.
func newResponse(w http.ResponseWriter, id identity, req *request, now func() time.Time) *response {
	header := w.Header()
	header.Set("X-ClickHouse-Server-Display-Name", id.displayName)
	header.Set("X-ClickHouse-Timezone", id.timezone)
	if req != nil {
		header.Set("X-ClickHouse-Query-Id", req.queryID)
	}
	return &response{w: w, identity: id, req: req, started: now(), now: now, tag: strings.ToLower(rand.Text()[:16])}
}

// setFormat sets the format of the result.
func (p *response) setFormat(format string) {
	p.w.Header().Set("X-ClickHouse-Format", format)
	p.w.Header().Set("Content-Type", contentType(format))
}

// Write writes a piece of the result.
func (p *response) Write(data []byte) (int, error) {
	if p.committed {
		return p.out.Write(data)
	}
	p.held = append(p.held, data...)
	if len(p.held) < holdBack || p.req.waitForEnd {
		return len(data), nil
	}
	p.w.Header().Set("X-ClickHouse-Exception-Tag", p.tag)
	return len(data), p.commit(http.StatusOK)
}

// commit sends status, headers and what was held back.
func (p *response) commit(status int) error {
	p.committed = true
	p.out = p.w
	if len(p.held) == 0 { // an answer without a body is not compressed either
		p.w.WriteHeader(status)
		return nil
	}
	if p.req != nil {
		if err := p.openOutput(); err != nil {
			return err
		}
	}
	p.w.WriteHeader(status)
	_, err := p.out.Write(p.held)
	p.held = nil
	return err
}

// openOutput adds the compressors that the client asked for.
func (p *response) openOutput() error {
	if p.req.encoding != "" {
		encoded, err := encoder(p.req.encoding, p.w)
		if err != nil {
			return err
		}
		p.w.Header().Set("Content-Encoding", p.req.encoding)
		p.encoded, p.out = encoded, encoded
	}
	if p.req.compress {
		blocks, err := newBlockWriter(p.out, p.req.method)
		if err != nil {
			return err
		}
		p.blocks, p.out = blocks, blocks
	}
	return nil
}

// finish ends a successful answer.
func (p *response) finish(stats chdb.Stats) error {
	if !p.committed {
		p.w.Header().Set("X-ClickHouse-Summary", summary(stats, p.now().Sub(p.started)))
		if err := p.commit(http.StatusOK); err != nil {
			return err
		}
	}
	return p.close()
}

// fail ends an answer with an exception: with its own status if nothing was sent yet, otherwise in
// the body and with a broken end, so that a partial result is not taken for a complete one.
func (p *response) fail(err error) {
	engine, ok := errors.AsType[*chdb.Error](err)
	if !ok {
		engine = exception(chdb.CodeUnknown, "UNKNOWN_EXCEPTION", err.Error())
	}
	text := engine.Text
	if !strings.Contains(text, "(version ") {
		text += " (version " + p.identity.version + ")"
	}
	header := p.w.Header()
	if !p.committed {
		header.Set("X-ClickHouse-Exception-Code", strconv.Itoa(engine.Code))
		header.Set("Content-Type", "text/plain; charset=UTF-8")
		header.Del("X-ClickHouse-Exception-Tag")
		p.held = []byte(text + "\n")
		if p.commit(httpStatus(engine.Code)) == nil {
			_ = p.close() // The client has gone: there is nobody left to tell.
		}
		return
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxException)], "") + "\n"
	frame := fmt.Sprintf("\r\n__exception__\r\n%s\r\n%s%d %s\r\n__exception__\r\n", p.tag, text, len(text), p.tag)
	if p.blocks != nil {
		_ = p.blocks.Flush() // as above
	}
	if p.encoded != nil {
		_, _ = io.WriteString(p.encoded, frame) // as above
		_ = p.encoded.Close()                   // as above
	} else {
		_, _ = io.WriteString(p.w, frame) // as above
	}
	_ = http.NewResponseController(p.w).Flush() // as above
	panic(http.ErrAbortHandler)
}

// close ends the compressors.
func (p *response) close() error {
	var errs []error
	if p.blocks != nil {
		errs = append(errs, p.blocks.Close())
	}
	if p.encoded != nil {
		errs = append(errs, p.encoded.Close())
	}
	return errors.Join(errs...)
}

// summary is the value of X-ClickHouse-Summary: numbers as strings, as in ClickHouse.
func summary(stats chdb.Stats, elapsed time.Duration) string {
	text := func(n uint64) string { return strconv.FormatUint(n, 10) }
	fields := struct {
		ReadRows        string `json:"read_rows"`
		ReadBytes       string `json:"read_bytes"`
		WrittenRows     string `json:"written_rows"`
		WrittenBytes    string `json:"written_bytes"`
		TotalRowsToRead string `json:"total_rows_to_read"`
		ResultRows      string `json:"result_rows"`
		ResultBytes     string `json:"result_bytes"`
		ElapsedNS       string `json:"elapsed_ns"`
	}{
		text(stats.ReadRows), text(stats.ReadBytes), text(stats.WrittenRows), text(stats.WrittenBytes), "0",
		text(stats.ResultRows), text(stats.ResultBytes), strconv.FormatInt(elapsed.Nanoseconds(), 10),
	}
	encoded, err := json.Marshal(fields)
	if err != nil { // strings always encode
		return "{}"
	}
	return string(encoded)
}
