//go:build unix

package torture

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// proxy forwards TCP connections, and cuts, stalls and slows them on demand. Its own address does
// not change.
type proxy struct {
	listener net.Listener
	closed   sync.WaitGroup

	mu       sync.Mutex
	upstream string
	links    map[*link]struct{}
	refusing bool
	// stalled is closed when data flows again; nil if it flows.
	stalled chan struct{}
	delay   time.Duration
	ended   chan struct{}
}

// link is a client's connection and the one to which it is forwarded.
type link struct{ near, far net.Conn }

func (l *link) close() {
	_ = l.near.Close()
	_ = l.far.Close()
}

func newProxy(upstream string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // listening on loopback does not wait
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, upstream: upstream, links: map[*link]struct{}{}, ended: make(chan struct{})}
	p.closed.Go(p.accept)
	return p, nil
}

func (p *proxy) port() string {
	return strconv.Itoa(p.listener.Addr().(*net.TCPAddr).Port)
}

// cut ends all connections and rejects new ones until heal.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = true
	for l := range p.links {
		l.close()
	}
}

// stall holds data back until heal. Connections stay open.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
}

// slow delays each piece of data until heal.
func (p *proxy) slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// heal ends every disturbance.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing, p.delay = false, 0
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

func (p *proxy) close() {
	close(p.ended)
	_ = p.listener.Close()
	p.cut()
	p.closed.Wait()
}

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.closed.Go(func() { p.serve(near) })
	}
}

func (p *proxy) serve(near net.Conn) {
	defer near.Close() //nolint:errcheck // nobody is left to tell
	p.mu.Lock()
	upstream, refusing := p.upstream, p.refusing
	p.mu.Unlock()
	if refusing {
		return
	}
	far, err := net.DialTimeout("tcp", upstream, 2*time.Second) //nolint:noctx // bounded
	if err != nil {
		return
	}
	l := &link{near: near, far: far}
	defer l.close()
	p.mu.Lock()
	if p.refusing {
		p.mu.Unlock()
		return
	}
	p.links[l] = struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pass(l, l.far, l.near) })
	both.Go(func() { p.pass(l, l.near, l.far) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// pass copies in one direction, and closes both connections when either ends.
func (p *proxy) pass(l *link, to, from net.Conn) {
	defer l.close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !p.hold() {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold waits for as long as data is held back, and reports whether the proxy still runs.
func (p *proxy) hold() bool {
	p.mu.Lock()
	stalled, delay := p.stalled, p.delay
	p.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-p.ended:
			return false
		}
	}
	if delay == 0 {
		return true
	}
	return pause(p.ended, delay)
}

// pause waits, and reports whether it waited for the whole time.
func pause(ended <-chan struct{}, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ended:
		return false
	}
}

// proxies are those in front of one server, which are disturbed together.
type proxies []*proxy

func newProxies(upstreams ...string) (proxies, error) {
	var all proxies
	for _, upstream := range upstreams {
		p, err := newProxy(upstream)
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (all proxies) each(f func(*proxy)) {
	for _, p := range all {
		f(p)
	}
}

func (all proxies) cut()                     { all.each((*proxy).cut) }
func (all proxies) stall()                   { all.each((*proxy).stall) }
func (all proxies) heal()                    { all.each((*proxy).heal) }
func (all proxies) close()                   { all.each((*proxy).close) }
func (all proxies) slow(delay time.Duration) { all.each(func(p *proxy) { p.slow(delay) }) }

// hosts returns their addresses, separated by commas.
func (all proxies) hosts() string {
	var hosts []string
	for _, p := range all {
		hosts = append(hosts, "127.0.0.1:"+p.port())
	}
	return strings.Join(hosts, ",")
}
