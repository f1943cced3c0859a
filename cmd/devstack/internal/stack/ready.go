//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"tocsin/cmd/devstack/internal/proc"
)

const (
	pingInterval = 50 * time.Millisecond
	pingTimeout  = 2 * time.Second
)

// awaitHTTP requests url until it answers 200, and gives up when the child ends.
func awaitHTTP(ctx context.Context, child *proc.Child, url string) error {
	client := &http.Client{Timeout: pingTimeout}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-child.Done():
			return fmt.Errorf("the process ended before it was ready (%s)", reason(child.Err()))
		case <-ticker.C:
		}
		if answersOK(ctx, client, url) {
			return nil
		}
	}
}

func answersOK(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close()) == nil && response.StatusCode == http.StatusOK
}
