package chserver

import (
	"sync"
	"time"

	"tocsin/cmd/devstack/internal/chdb"
)

// sessions keeps the connections of clients that name a session, each until it has been idle for
// its timeout. A request without a session gets its own connection.
type sessions struct {
	engine *chdb.Engine

	mu     sync.Mutex
	byName map[string]*session
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

// acquire returns the request's connection and a function that releases it.
func (s *sessions) acquire(req *request) (*chdb.Conn, func(), error) {
	if req.session == "" {
		conn, err := s.engine.Connect()
		if err != nil {
			return nil, nil, err
		}
		return conn, conn.Close, nil
	}
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

// close ends all sessions; no request may be under way.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, held := range s.byName {
		if held.expiry != nil {
			held.expiry.Stop()
		}
		delete(s.byName, name)
		held.conn.Close()
	}
}
