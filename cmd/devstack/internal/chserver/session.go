package chserver

import (
	"slices"
	"sync"
	"time"

	"tocsin/cmd/devstack/internal/chdb"
)

// sessions keeps the connections of clients that name a session, each until it has been idle for its timeout. A request
// without a session gets a connection to itself: a fresh one, or one that was kept from a request of the same database,
// settings and names of parameters, which left nothing else behind. Making one takes the engine longer than most
// statements do.
type sessions struct {
	engine *chdb.Engine

	mu     sync.Mutex
	byName map[string]*session
	// kept are idle connections without a session, the longest kept first.
	kept []keptConn
}

// keptConn is an idle connection, and for which requests it is ready.
type keptConn struct {
	state string
	conn  *chdb.Conn
}

// mostKept is how many connections without a session are kept.
const mostKept = 32

// session is one kept connection.
type session struct {
	conn   *chdb.Conn
	busy   bool
	expiry *time.Timer
}

// newSessions keeps none yet.
func newSessions(engine *chdb.Engine) *sessions {
	return &sessions{engine: engine, byName: make(map[string]*session)}
}

// lease is a request's connection. One that is ready needs no setup; give gives it back, and tells whether the request
// left nothing behind that the next one could see.
type lease struct {
	*chdb.Conn
	ready bool
	give  func(clean bool)
}

// acquire returns the request's connection. State names what the setup and the parameters make of it.
func (s *sessions) acquire(req *request, state string) (lease, error) {
	if req.session != "" {
		conn, release, err := s.named(req)
		return lease{Conn: conn, give: func(bool) { release() }}, err
	}
	if conn := s.take(state); conn != nil {
		return lease{Conn: conn, ready: true, give: func(clean bool) { s.keep(state, conn, clean) }}, nil
	}
	conn, err := s.engine.Connect()
	return lease{Conn: conn, give: func(clean bool) { s.keep(state, conn, clean) }}, err
}

// take returns a connection that was kept for a state; nil where there is none.
func (s *sessions) take(state string) *chdb.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, k := range slices.Backward(s.kept) {
		if k.state == state {
			s.kept = slices.Delete(s.kept, i, i+1)
			return k.conn
		}
	}
	return nil
}

// keep keeps a clean connection, in place of the one that was kept longest, and closes any other.
func (s *sessions) keep(state string, conn *chdb.Conn, clean bool) {
	if !clean {
		conn.Close()
		return
	}
	s.mu.Lock()
	s.kept = append(s.kept, keptConn{state, conn})
	var over *chdb.Conn
	if len(s.kept) > mostKept {
		over = s.kept[0].conn
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.mu.Unlock()
	if over != nil {
		over.Close()
	}
}

// named returns the connection of the session that a request names, and the function that gives it back.
func (s *sessions) named(req *request) (*chdb.Conn, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.byName[req.session]
	switch {
	case !ok && req.sessionMust:
		return nil, nil, exception(codeSessionNotFound, "SESSION_NOT_FOUND", "Session "+req.session+" not found")
	case !ok:
		conn, err := s.engine.Connect()
		if err != nil {
			return nil, nil, err
		}
		held = &session{conn: conn}
		s.byName[req.session] = held
	case held.busy:
		return nil, nil, exception(codeSessionIsLocked, "SESSION_IS_LOCKED", "Session "+req.session+" is locked by a concurrent client")
	default:
		held.expiry.Stop()
	}
	held.busy = true
	return held.conn, func() { s.release(req.session, held, req.sessionTimeout) }, nil
}

// release makes the session free and starts its timeout.
func (s *sessions) release(name string, held *session, timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held.busy = false
	held.expiry = time.AfterFunc(timeout, func() { s.expire(name, held) })
}

// expire ends an idle session.
func (s *sessions) expire(name string, held *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !held.busy && s.byName[name] == held {
		delete(s.byName, name)
		held.conn.Close()
	}
}

// close ends all sessions and connections; no request may be under way.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		k.conn.Close()
	}
	s.kept = nil
	for name, held := range s.byName {
		if held.expiry != nil {
			held.expiry.Stop()
		}
		delete(s.byName, name)
		held.conn.Close()
	}
}
