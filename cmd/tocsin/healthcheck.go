package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// healthcheck asks a running replica on the same machine, container or pod. It needs no shell and
// no other program in the image.
type healthcheck struct {
	Listen  string        `help:"Address at which the replica listens." default:"127.0.0.1:8080" env:"TOCSIN_LISTEN"`
	Live    bool          `help:"Ask only whether the process responds (/healthz), not whether it is ready."`
	Timeout time.Duration `help:"Time limit for the response." default:"5s"`
}

// Run asks, and prints the answer in one line.
func (h *healthcheck) Run(ctx context.Context, out io.Writer) error {
	address, err := reachable(h.Listen)
	if err != nil {
		return err
	}
	path := "/readyz"
	if h.Live {
		path = "/healthz"
	}
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	// Connections on the same machine do not use a proxy of the environment.
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("no replica can be reached at %s: %w; check that it runs, and that TOCSIN_LISTEN or --listen is its address", address, err)
	}
	defer answer.Body.Close() //nolint:errcheck // read as far as it matters
	const most = 4 << 10
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return fmt.Errorf("read the response of %s: %w", path, err)
	}
	var state struct {
		Status  string            `json:"status"`
		Missing []string          `json:"missing"`
		Reasons map[string]string `json:"reasons"`
	}
	if err := json.Unmarshal(text, &state); err != nil || state.Status == "" {
		return fmt.Errorf("the program that answers %s at %s is not Tocsin; correct TOCSIN_LISTEN or --listen", answer.Status, address)
	}
	said := state.Status
	if len(state.Missing) > 0 {
		said += ": " + missing(state.Missing, state.Reasons)
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(said)
	}
	_, err = fmt.Fprintln(out, said)
	return err
}

// missing says what a replica lacks, and why. An earlier version gives no reasons.
func missing(names []string, reasons map[string]string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = name + ": " + cmp.Or(reasons[name], "Cannot be reached")
	}
	return strings.Join(list, "; ")
}

// reachable returns the address at which a server that listens on an address is reached from its
// own machine.
func reachable(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("TOCSIN_LISTEN or --listen cannot be read: %w; write host:port, such as 127.0.0.1:8080", err)
	}
	if port == "0" {
		return "", errors.New("TOCSIN_LISTEN has port 0, which is a different port at each start; set a port for health checks")
	}
	switch ip := net.ParseIP(host); {
	case host == "" || ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}
