package product

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
)

// Proxy forwards connections to ClickHouse, and cuts it off on demand.
type Proxy struct {
	listener net.Listener
	upstream string
	all      sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	links map[net.Conn]struct{}
}

// NewProxy starts a proxy in front of ClickHouse.
func (w *World) NewProxy(ctx context.Context) (*Proxy, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, upstream: w.clickHouse.Host, links: map[net.Conn]struct{}{}}
	p.all.Go(p.accept)
	return p, nil
}

// Through is the setting that has a replica reach ClickHouse through the proxy.
func (w *World) Through(p *Proxy) string {
	u, err := url.Parse(w.clickHouseURL(w.clickHouseDatabase))
	if err != nil {
		panic(err) // it was made from one that was parsed
	}
	u.Host = p.listener.Addr().String()
	return "TOCSIN_CLICKHOUSE_URL=" + u.String()
}

// Cut ends all connections, and each new one.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.links {
		_ = c.Close()
	}
}

// Restore lets connections pass again.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// Close ends the proxy.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Cut()
	p.all.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.pass(near) })
	}
}

func (p *Proxy) pass(near net.Conn) {
	defer near.Close()                      //nolint:errcheck // its end is what matters
	far, err := net.Dial("tcp", p.upstream) //nolint:noctx // loopback does not wait
	if err != nil {
		return
	}
	defer far.Close() //nolint:errcheck // its end is what matters
	if !p.link(near, far) {
		return
	}
	defer p.unlink(near, far)
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		ways.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = errors.Join(way[0].Close(), way[1].Close())
		})
	}
	ways.Wait()
}

func (p *Proxy) link(ends ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range ends {
		p.links[c] = struct{}{}
	}
	return !p.cut
}

func (p *Proxy) unlink(ends ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range ends {
		delete(p.links, c)
	}
}
