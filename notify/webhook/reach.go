package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
)

// Reach connects to the host of a URL like an attempt: with the same guard, the same proxy and the
// same certificate authorities. It sends no request.
func (s *Sender) Reach(ctx context.Context, to *url.URL) error {
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "smtp": "25", "smtps": "465"}[to.Scheme]
	}
	conn, err := s.dialer.dial(ctx, "tcp", net.JoinHostPort(to.Hostname(), port))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	if to.Scheme != "https" && to.Scheme != "smtps" {
		return nil
	}
	config := s.tls.Clone()
	config.ServerName = to.Hostname()
	if err := tls.Client(conn, config).HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	return nil
}
