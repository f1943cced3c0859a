//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"tocsin/cmd/devstack/internal/netport"
)

// webServer serves a handler of devstack's own process on loopback.
type webServer struct {
	server *http.Server
	done   chan struct{}
	port   int
}

// serveHandler listens on the preferred port if it is free, otherwise on another one.
func serveHandler(handler http.Handler, preferred int) (*webServer, error) {
	port, err := netport.Free(preferred)
	if err != nil {
		return nil, err
	}
	listener, err := netport.Listen(port)
	if err != nil {
		return nil, err
	}
	w := &webServer{
		server: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second},
		done:   make(chan struct{}),
		port:   port,
	}
	go func() {
		defer close(w.done)
		// Serve returns when Stop has closed the listener; nothing else ends it.
		_ = w.server.Serve(listener)
	}()
	return w, nil
}

func (w *webServer) url() string {
	return "http://127.0.0.1:" + strconv.Itoa(w.port)
}

// Stop answers open requests and ends. Pages that follow events are cut off after a moment.
func (w *webServer) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := w.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = w.server.Close()
	}
	<-w.done
	if err != nil {
		return fmt.Errorf("end web server: %w", err)
	}
	return nil
}
