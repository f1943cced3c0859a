package wire

import (
	"slices"
	"sync"
	"time"
)

// origin is where a connection leads: the scheme and the host, with its port, of a URL.
type origin struct{ scheme, host string }

// pool holds the connections that wait for their next use. The last one to come is
// the first one to be used, so that those which are not needed grow old.
type pool struct {
	most, mostPerHost int
	lasts             time.Duration

	mu    sync.Mutex
	idle  map[origin][]*conn
	count int
	// round counts the sweeps. There is one each time that lasts is over, while there
	// is anything to sweep.
	round  int
	sweeps *time.Timer
	closed bool
}

// take returns a connection that stands, nil where there is none.
func (p *pool) take(to origin) *conn {
	for {
		c := p.pop(to)
		if c == nil || c.isQuiet() {
			return c
		}
		c.close()
	}
}

func (p *pool) pop(to origin) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.idle[to]
	if len(of) == 0 {
		return nil
	}
	last := len(of) - 1
	c := of[last]
	of[last] = nil
	p.keep(to, of[:last])
	return c
}

// keep leaves only some of the connections to an origin.
func (p *pool) keep(to origin, of []*conn) {
	p.count -= len(p.idle[to]) - len(of)
	if len(of) == 0 {
		delete(p.idle, to)
	} else {
		p.idle[to] = of
	}
}

// put takes a connection back, or closes it where enough wait.
func (p *pool) put(c *conn) {
	if !p.push(c) {
		c.close()
	}
}

func (p *pool) push(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.idle[c.origin]
	if p.closed || p.count >= p.most || len(of) >= p.mostPerHost {
		return false
	}
	if p.idle == nil {
		p.idle = make(map[origin][]*conn)
	}
	if p.sweeps == nil {
		p.sweeps = time.AfterFunc(p.lasts, p.sweep)
	}
	c.round = p.round
	p.idle[c.origin] = append(of, c)
	p.count++
	return true
}

// sweep closes what was there at the sweep before, and has not been used since.
func (p *pool) sweep() {
	for _, c := range p.old() {
		c.close()
	}
}

func (p *pool) old() (old []*conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for to, of := range p.idle {
		n := 0
		for n < len(of) && of[n].round < p.round {
			n++
		}
		old = append(old, of[:n]...)
		p.keep(to, slices.Clone(of[n:]))
	}
	p.round++
	p.sweeps = nil
	if p.count > 0 && !p.closed {
		p.sweeps = time.AfterFunc(p.lasts, p.sweep)
	}
	return old
}

// close closes what waits, and whatever comes to wait.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	if p.sweeps != nil {
		p.sweeps.Stop()
	}
	all := p.idle
	p.idle, p.count = nil, 0
	p.mu.Unlock()
	for _, of := range all {
		for _, c := range of {
			c.close()
		}
	}
}
