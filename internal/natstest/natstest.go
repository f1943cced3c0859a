// Package natstest runs real NATS servers with JetStream, in the test's process.
package natstest

import (
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Server is a NATS server that loses all data when it is stopped.
type Server struct {
	options server.Options
	server  *server.Server
}

// New starts a server that is stopped when tb ends.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{options: server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, NoLog: true, NoSigs: true}}
	s.Start(tb)
	s.options.Port = s.server.Addr().(*net.TCPAddr).Port
	tb.Cleanup(func() { s.Stop(tb) })
	return s
}

// URL returns the URL of the server.
func (s *Server) URL() string { return s.server.ClientURL() }

// Start starts a stopped server, empty, at the same address.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	options := s.options
	options.StoreDir = tb.TempDir()
	started, err := server.NewServer(&options)
	if err != nil {
		tb.Fatalf("nats-server: %v", err)
	}
	started.Start()
	if !started.ReadyForConnections(2 * time.Minute) {
		tb.Fatal("nats-server does not answer")
	}
	s.server = started
}

// Stop stops the server; it does nothing if the server is stopped.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
