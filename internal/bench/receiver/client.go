package receiver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Client asks a receiver in another process.
type Client struct {
	// Base is its address, as http://127.0.0.1:1234.
	Base string
	// Hosts are its addresses over TLS, each a host of its own.
	Hosts []string
	HTTP  *http.Client
}

// FarURL returns the address of a book at one of the hosts, the nth modulo their number.
// Its messages name an exchange, and answers come as from far away.
func (c *Client) FarURL(nth int, book string) string {
	return c.Hosts[nth%len(c.Hosts)] + "/far/" + book
}

// HostURL is the same with answers at once.
func (c *Client) HostURL(nth int, book string) string {
	return c.Hosts[nth%len(c.Hosts)] + "/execution/" + book
}

// FarHangURL returns an address over TLS that never answers.
func (c *Client) FarHangURL(nth int) string { return c.Hosts[nth%len(c.Hosts)] + "/hang/" }

// Failed returns the messages of a book of which an attempt was answered with an error.
func (c *Client) Failed(ctx context.Context, book string) (ids map[string]bool, err error) {
	err = c.ask(ctx, http.MethodGet, "/control/failed/"+book, &ids)
	return ids, err
}

// URL returns the address of a book whose messages are distinguished by webhook-id.
func (c *Client) URL(book string) string { return c.Base + "/id/" + book }

// ExecutionURL returns the address of a book whose messages name an exchange.
func (c *Client) ExecutionURL(book string) string { return c.Base + "/execution/" + book }

// SlowURL returns the address of a book like that of URL, where each answer takes [SlowFor].
func (c *Client) SlowURL(book string) string { return c.Base + "/slow/" + book }

// HangURL returns an address that never answers.
func (c *Client) HangURL() string { return c.Base + "/hang/" }

// Await returns what a book holds once it holds so many, or after so long.
func (c *Client) Await(ctx context.Context, book string, atLeast int, within time.Duration) (count Count, err error) {
	err = c.ask(ctx, http.MethodGet, fmt.Sprintf("/control/count/%s?atLeast=%d&within=%s", book, atLeast, within), &count)
	return count, err
}

// Arrivals returns when each message of a book came, in nanoseconds since the Unix epoch.
func (c *Client) Arrivals(ctx context.Context, book string) (at map[string]int64, err error) {
	err = c.ask(ctx, http.MethodGet, "/control/arrivals/"+book, &at)
	return at, err
}

// Sample returns the first message of a book, nil when it holds none.
func (c *Client) Sample(ctx context.Context, book string) (sample *Sample, err error) {
	err = c.ask(ctx, http.MethodGet, "/control/sample/"+book, &sample)
	return sample, err
}

// Forget empties a book.
func (c *Client) Forget(ctx context.Context, book string) error {
	return c.ask(ctx, http.MethodDelete, "/control/count/"+book, nil)
}

func (c *Client) ask(ctx context.Context, method, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.Base+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask receiver: %w", err)
	}
	got, err := c.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("ask receiver: %w", err)
	}
	defer got.Body.Close() //nolint:errcheck // read as far as it matters
	if got.StatusCode != http.StatusOK {
		return fmt.Errorf("ask receiver: %s", got.Status)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(got.Body).Decode(into); err != nil {
		return fmt.Errorf("ask receiver: %w", err)
	}
	return nil
}
