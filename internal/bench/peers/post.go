// Package peers contains what Tocsin is compared with: the floor, a loop that does nothing but
// POST, and the comparable programs River and Alertmanager, each configured as its documentation
// recommends for speed.
package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"tocsin/internal/bench/child"
	"tocsin/internal/bench/receiver"
)

// Connections is how many connections to the receiver each side may use.
const Connections = 64

// Post is the work of the floor: Count times the same message.
type Post struct {
	URL    string
	Count  int
	Sample receiver.Sample
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: Connections, MaxIdleConns: Connections, MaxIdleConnsPerHost: Connections, DisableCompression: true,
	}}
}

// one sends a message with an id.
func (p *Post) one(ctx context.Context, client *http.Client, id string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(p.Sample.Body))
	if err != nil {
		return err
	}
	maps.Copy(request.Header, p.Sample.Header)
	request.Header["Webhook-Id"] = []string{id}
	got, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, got.Body)
	err = errors.Join(err, got.Body.Close())
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("the receiver answers %s", got.Status)
	}
	return err
}

// Span is when a child began and ended, in nanoseconds since the Unix epoch.
type Span struct {
	BeganNS int64 `json:"beganNs"`
	EndedNS int64 `json:"endedNs"`
}

// Elapsed is the time between.
func (s Span) Elapsed() time.Duration { return time.Duration(s.EndedNS - s.BeganNS) }

// RunPost is the floor in its own process: it signals that it is ready, waits for its parent,
// posts, reports when it began and ended, and waits to end.
func RunPost(ctx context.Context, parent *child.Parent, p Post) error {
	client := newClient()
	if err := parent.Say(struct{}{}); err != nil {
		return err
	}
	if err := parent.Wait(); err != nil {
		return err
	}
	span := Span{BeganNS: time.Now().UnixNano()}
	var next atomic.Int64
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	for range Connections {
		all.Go(func() {
			for n := next.Add(1); n <= int64(p.Count); n = next.Add(1) {
				if err := p.one(ctx, client, strconv.FormatInt(n, 10)); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	all.Wait()
	span.EndedNS = time.Now().UnixNano()
	if err := failed.Load(); err != nil {
		return *err
	}
	if err := parent.Say(span); err != nil {
		return err
	}
	return untilEnd(parent)
}

// untilEnd waits until the parent ends it.
func untilEnd(parent *child.Parent) error {
	if err := parent.Wait(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// StartPost starts the floor in a process of its own.
func StartPost(ctx context.Context, p Post) (*child.Process, error) {
	return startWith(ctx, "post", p)
}

// startWith starts a part of this program that reads its task from a file, and waits until it is
// ready.
func startWith(ctx context.Context, name string, what any) (*child.Process, error) {
	path, err := writeTask(what)
	if err != nil {
		return nil, err
	}
	defer os.Remove(path) //nolint:errcheck // read by then
	p, err := child.Self(name, path)
	if err != nil {
		return nil, err
	}
	if err := p.Read(ctx, &struct{}{}); err != nil {
		p.Kill()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}
