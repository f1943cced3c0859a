// Package redistest runs real Redis servers for tests.
package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Server is a Redis server without persistence, on a port of its own.
type Server struct {
	port    int
	dir     string
	process *exec.Cmd
}

// New starts a server that is stopped when tb ends.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{port: freePort(tb), dir: tb.TempDir()}
	s.Start(tb)
	tb.Cleanup(func() { s.Stop(tb) })
	return s
}

// URL returns the URL of the server.
func (s *Server) URL() string { return fmt.Sprintf("redis://127.0.0.1:%d/0", s.port) }

// Start starts a stopped server, empty, at the same address, and returns when it answers.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		tb.Fatalf("redis-server is missing: install the package redis-server (apt-get install redis-server): %v", err)
	}
	s.process = exec.Command(program, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, //nolint:noctx // ended by Stop
		"--save", "", "--appendonly", "no", "--loglevel", "warning")
	if err := s.process.Start(); err != nil {
		tb.Fatalf("start redis-server: %v", err)
	}
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !s.answers() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatal("redis-server does not answer")
		}
	}
}

// Stop kills the server; it does nothing if the server is stopped.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	if s.process == nil {
		return
	}
	if err := s.process.Process.Kill(); err != nil {
		tb.Errorf("kill redis-server: %v", err)
	}
	_ = s.process.Wait()
	s.process = nil
}

func (s *Server) answers() bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), time.Second) //nolint:noctx // bounded
	if err != nil {
		return false
	}
	defer conn.Close() //nolint:errcheck // only asked
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && strings.HasPrefix(line, "+PONG")
}

func freePort(tb testing.TB) int {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // local
	if err != nil {
		tb.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // only asked for a port
	return listener.Addr().(*net.TCPAddr).Port
}
