package product

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
)

// Gate stands before ClickHouse, and cuts it off on demand.
type Gate struct {
	listener net.Listener
	upstream string
	all      sync.WaitGroup

	mu    sync.Mutex
	shut  bool
	links map[net.Conn]struct{}
}

// NewGate opens a gate before ClickHouse.
func (w *World) NewGate(ctx context.Context) (*Gate, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &Gate{listener: listener, upstream: w.clickHouse.Host, links: map[net.Conn]struct{}{}}
	g.all.Go(g.accept)
	return g, nil
}

// Through is the setting that has a replica reach ClickHouse through the gate.
func (w *World) Through(g *Gate) string {
	u, err := url.Parse(w.clickHouseURL(w.clickHouseDatabase))
	if err != nil {
		panic(err) // it was made from one that was parsed
	}
	u.Host = g.listener.Addr().String()
	return "TOCSIN_CLICKHOUSE_URL=" + u.String()
}

// Shut ends all connections, and each new one.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for c := range g.links {
		_ = c.Close()
	}
}

// Open lets connections pass again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}

// Close ends the gate.
func (g *Gate) Close() error {
	err := g.listener.Close()
	g.Shut()
	g.all.Wait()
	return err
}

func (g *Gate) accept() {
	for {
		near, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.all.Go(func() { g.pass(near) })
	}
}

func (g *Gate) pass(near net.Conn) {
	defer near.Close()                      //nolint:errcheck // its end is what matters
	far, err := net.Dial("tcp", g.upstream) //nolint:noctx // loopback does not wait
	if err != nil {
		return
	}
	defer far.Close() //nolint:errcheck // its end is what matters
	if !g.link(near, far) {
		return
	}
	defer g.unlink(near, far)
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		ways.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = errors.Join(way[0].Close(), way[1].Close())
		})
	}
	ways.Wait()
}

func (g *Gate) link(ends ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range ends {
		g.links[c] = struct{}{}
	}
	return !g.shut
}

func (g *Gate) unlink(ends ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range ends {
		delete(g.links, c)
	}
}
