package chserver

import (
	"slices"
	"sync"
	"time"

	"tocsin/cmd/devstack/internal/chdb"
)

// spareLimit is how many connections without a session are kept.
const spareLimit = 16

// sessions keeps the connections of clients that name a session, each until it has been idle for
// its timeout. A request without a session has a connection for itself. Afterwards it is kept for a request with the
// same database and settings if its statement left nothing behind: to open and to set up a connection takes the engine
// longer than most statements.
type sessions struct {
	engine *chdb.Engine

	mu     sync.Mutex
	byName map[string]*session
	// spares are idle, the one that was used last at the end.
	spares []spare
	// changes counts the statements that changed anything but rows, changing those of them that run. They find no
	// spares, which could refer to what they change, and connections of before are not kept after them.
	changes, changing int
}

// spare is an idle connection that was set up by a text.
type spare struct {
	conn  *chdb.Conn
	setup string
}

// session is one kept connection.
type session struct {
	conn   *chdb.Conn
	busy   bool
	expiry *time.Timer
}

// newSessions returns an empty set of sessions.
func newSessions(engine *chdb.Engine) *sessions {
	return &sessions{engine: engine, byName: make(map[string]*session)}
}

// lent is the connection of a request.
type lent struct {
	*chdb.Conn
	// ready says that the connection has the request's database and settings.
	ready bool
	// give gives the connection back. clean says that it is as it was after it was set up.
	give func(clean bool)
}

// acquire returns the connection of a request, with the text that sets it up.
func (s *sessions) acquire(req *request, setup string) (lent, error) {
	if req.session == "" {
		return s.acquireOwn(setup)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.byName[req.session]
	switch {
	case !ok && req.sessionMust:
		return lent{}, exception(codeSessionNotFound, "SESSION_NOT_FOUND", "Session "+req.session+" not found")
	case !ok:
		conn, err := s.engine.Connect()
		if err != nil {
			return lent{}, err
		}
		held = &session{conn: conn}
		s.byName[req.session] = held
	case held.busy:
		return lent{}, exception(codeSessionIsLocked, "SESSION_IS_LOCKED", "Session "+req.session+" is locked by a concurrent client")
	default:
		held.expiry.Stop()
	}
	held.busy = true
	return lent{Conn: held.conn, give: func(bool) { s.release(req.session, held, req.sessionTimeout) }}, nil
}

// acquireOwn returns a connection for a request without a session.
func (s *sessions) acquireOwn(setup string) (lent, error) {
	s.mu.Lock()
	changes := s.changes
	var conn *chdb.Conn
	for i, kept := range slices.Backward(s.spares) {
		if kept.setup == setup {
			conn = kept.conn
			s.spares = slices.Delete(s.spares, i, i+1)
			break
		}
	}
	s.mu.Unlock()
	ready := conn != nil
	if !ready {
		var err error
		if conn, err = s.engine.Connect(); err != nil {
			return lent{}, err
		}
	}
	return lent{Conn: conn, ready: ready, give: func(clean bool) {
		if !clean || !s.keep(spare{conn, setup}, changes) {
			conn.Close()
		}
	}}, nil
}

// keep keeps an idle connection, unless there was a change since it was acquired.
func (s *sessions) keep(idle spare, changes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changing > 0 || s.changes != changes {
		return false
	}
	s.spares = append(s.spares, idle)
	if len(s.spares) > spareLimit {
		s.spares[0].conn.Close()
		s.spares = slices.Delete(s.spares, 0, 1)
	}
	return true
}

// change announces a statement that changes anything but rows, and closes the spares. It returns the function that
// says that the statement has ended.
func (s *sessions) change() (ended func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	s.changing++
	s.closeSpares()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changing--
	}
}

// closeSpares closes the idle connections. The caller holds the lock.
func (s *sessions) closeSpares() {
	for _, idle := range s.spares {
		idle.conn.Close()
	}
	s.spares = nil
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

// close ends all sessions; no request may be under way.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeSpares()
	for name, held := range s.byName {
		if held.expiry != nil {
			held.expiry.Stop()
		}
		delete(s.byName, name)
		held.conn.Close()
	}
}
