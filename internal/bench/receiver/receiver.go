// Package receiver is the receiver of every webhook that is measured: a server, run in a process of
// its own, that counts messages and notices repetitions.
//
// A path begins with how messages are distinguished: /id/ by their header webhook-id, /execution/
// by the exchange that their body contains, as in Tocsin's messages and the alerts given to
// Alertmanager. The name of a book follows; books are counted separately. /slow/ is /id/ with a
// response that takes [SlowFor]; /hang/ reads messages and never responds. /far/ is /execution/ at
// the far end of a network: see [Latency]; one response of a hundred is an error.
//
// Instants are those of the machine's clock when the header of a request had been read; for /far/
// when the response was sent. All other requests use paths below /control/.
package receiver

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Count is what a book contains.
type Count struct {
	// Distinct is the number of different messages, Repeats how many were repeated.
	Distinct int `json:"distinct"`
	Repeats  int `json:"repeats"`
	// Unknown is how many could not be distinguished from others.
	Unknown int `json:"unknown"`
	// FirstNS and LastNS are when the first and the last different message arrived, in nanoseconds
	// since the Unix epoch.
	FirstNS int64 `json:"firstNs"`
	LastNS  int64 `json:"lastNs"`
}

// Sample is a message as it arrived.
type Sample struct {
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

// SlowFor is how long a slow response takes.
const SlowFor = 10 * time.Millisecond

// Latency draws how long a response of a far receiver takes: log-normal, with a median of 100 ms,
// and 98 of 100 from 20 to 500 ms, to which the others are limited.
func Latency() time.Duration {
	const median, sigma = 100 * time.Millisecond, 0.692                          // ln 5 / 2.326
	drawn := time.Duration(float64(median) * math.Exp(sigma*rand.NormFloat64())) //nolint:gosec // not a secret
	return min(max(drawn, 20*time.Millisecond), 500*time.Millisecond)
}

// errorsOf means that one in so many responses of a far receiver is an error.
const errorsOf = 100

const shards = 64

// book records when each message first arrived.
type book struct {
	seed   maphash.Seed
	shards [shards]struct {
		sync.Mutex
		came map[string]int64
	}
	distinct, repeats, unknown, first, last atomic.Int64
	sample                                  atomic.Pointer[Sample]
	awaited                                 atomic.Pointer[awaited]
	// failed are the messages that got an error as the response.
	failed sync.Map
}

// awaited is the number of messages for which a request waits. It is not polled, because the
// receiver's CPU time is part of what is measured.
type awaited struct {
	count   int64
	reached chan struct{}
}

func newBook() *book {
	b := &book{seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].came = make(map[string]int64)
	}
	return b
}

func (b *book) note(id string, at int64) {
	shard := &b.shards[maphash.String(b.seed, id)%shards]
	shard.Lock()
	_, known := shard.came[id]
	if !known {
		shard.came[id] = at
	}
	shard.Unlock()
	if known {
		b.repeats.Add(1)
		return
	}
	b.first.CompareAndSwap(0, at)
	for {
		last := b.last.Load()
		if last >= at || b.last.CompareAndSwap(last, at) {
			break
		}
	}
	// Last, so that a reader of the number also sees the instants.
	if n, a := b.distinct.Add(1), b.awaited.Load(); a != nil && n == a.count {
		close(a.reached)
	}
}

// await returns a channel that is closed when the book contains n messages. At most one request may
// wait at a time.
func (b *book) await(count int64) <-chan struct{} {
	a := &awaited{count, make(chan struct{})}
	b.awaited.Store(a)
	// Messages that arrived before this store found nobody waiting. The number below is read after
	// the store, so it includes all of them.
	if b.distinct.Load() >= count {
		b.awaited.Store(nil)
		reached := make(chan struct{})
		close(reached)
		return reached
	}
	return a.reached
}

func (b *book) count() Count {
	return Count{
		Distinct: int(b.distinct.Load()), Repeats: int(b.repeats.Load()), Unknown: int(b.unknown.Load()),
		FirstNS: b.first.Load(), LastNS: b.last.Load(),
	}
}

func (b *book) arrivals() map[string]int64 {
	all := make(map[string]int64, b.distinct.Load())
	for i := range b.shards {
		shard := &b.shards[i]
		shard.Lock()
		maps.Copy(all, shard.came)
		shard.Unlock()
	}
	return all
}

// Server is an [http.Handler]. Make one with [New].
type Server struct {
	now   func() time.Time
	books sync.Map
	// buffers are for bodies.
	buffers sync.Pool
	control *http.ServeMux
}

// New returns a receiver.
func New(now func() time.Time) *Server {
	s := &Server{now: now, control: http.NewServeMux()}
	s.buffers.New = func() any { return new(bytes.Buffer) }
	s.control.HandleFunc("GET /control/count/{book}", s.answerCount)
	s.control.HandleFunc("GET /control/arrivals/{book}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, s.book(r.PathValue("book")).arrivals())
	})
	s.control.HandleFunc("GET /control/sample/{book}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, s.book(r.PathValue("book")).sample.Load())
	})
	s.control.HandleFunc("GET /control/failed/{book}", func(w http.ResponseWriter, r *http.Request) {
		failed := map[string]bool{}
		s.book(r.PathValue("book")).failed.Range(func(id, _ any) bool {
			failed[id.(string)] = true //nolint:forcetypeassert // nothing else is stored
			return true
		})
		answer(w, failed)
	})
	s.control.HandleFunc("DELETE /control/count/{book}", func(_ http.ResponseWriter, r *http.Request) {
		s.books.Delete(r.PathValue("book"))
	})
	return s
}

func (s *Server) book(name string) *book {
	if b, ok := s.books.Load(name); ok {
		return b.(*book) //nolint:forcetypeassert // nothing else is stored
	}
	b, _ := s.books.LoadOrStore(name, newBook())
	return b.(*book) //nolint:forcetypeassert // nothing else is stored
}

// ServeHTTP receives a message, or answers a control request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := s.now().UnixNano()
	kind, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch kind {
	case "id":
		s.receive(w, r, s.book(name), byID(at))
	case "execution":
		s.receive(w, r, s.book(name), byExecution(at))
	case "slow":
		time.Sleep(SlowFor) //nolint:forbidigo // it is slow
		s.receive(w, r, s.book(name), byID(at))
	case "far":
		s.receive(w, r, s.book(name), s.far)
	case "hang":
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	default:
		s.control.ServeHTTP(w, r)
	}
}

// taken is how a message is handled: what identifies it, when it counts as received, and whether it
// gets an error instead.
type taken func(r *http.Request, body []byte) (id string, at int64, failed bool)

func byID(at int64) taken {
	return func(r *http.Request, _ []byte) (string, int64, bool) { return r.Header.Get("webhook-id"), at, false }
}

func byExecution(at int64) taken {
	return func(_ *http.Request, body []byte) (string, int64, bool) { return executionOf(body), at, false }
}

func (s *Server) far(_ *http.Request, body []byte) (id string, at int64, failed bool) {
	id, failed = executionOf(body), rand.IntN(errorsOf) == 0 //nolint:gosec // not a secret
	time.Sleep(Latency())                                    //nolint:forbidigo // it is far
	return id, s.now().UnixNano(), failed
}

func (s *Server) receive(w http.ResponseWriter, r *http.Request, b *book, take taken) {
	buffer := s.buffers.Get().(*bytes.Buffer) //nolint:forcetypeassert // nothing else is put there
	defer s.buffers.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(r.Body); err != nil {
		// A truncated message was not received.
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if b.sample.Load() == nil {
		b.sample.CompareAndSwap(nil, &Sample{Header: r.Header.Clone(), Body: bytes.Clone(buffer.Bytes())})
	}
	id, at, failed := take(r, buffer.Bytes())
	switch {
	case failed:
		b.failed.Store(id, true)
		w.WriteHeader(http.StatusBadGateway)
		return
	case id == "":
		b.unknown.Add(1)
	default:
		b.note(id, at)
	}
	w.WriteHeader(http.StatusOK)
}

// executionOf returns the exchange that a body contains, or "".
func executionOf(body []byte) string {
	const mark = `"executionId":"`
	_, rest, found := bytes.Cut(body, []byte(mark))
	if !found {
		return ""
	}
	id, _, found := bytes.Cut(rest, []byte(`"`))
	if !found {
		return ""
	}
	return string(id)
}

// answerCount answers at once, or when the book contains ?atLeast= messages or ?within= has passed.
func (s *Server) answerCount(w http.ResponseWriter, r *http.Request) {
	b := s.book(r.PathValue("book"))
	least, _ := strconv.Atoi(r.URL.Query().Get("atLeast"))
	within, _ := time.ParseDuration(r.URL.Query().Get("within"))
	over := time.NewTimer(within)
	defer over.Stop()
	select {
	case <-b.await(int64(least)):
	case <-over.C:
	case <-r.Context().Done():
	}
	answer(w, b.count())
}

func answer(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what)
}
