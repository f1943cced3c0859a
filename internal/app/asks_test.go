package app_test

import (
	wire "encoding/binary"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tocsin/internal/app"
)

// wiretap stands between a replica and Postgres, and counts what is asked: by the
// name of the query or, where it has none, by its first words. Preparing counts too.
type wiretap struct {
	url   string
	mu    sync.Mutex
	asked map[string]int
}

func newWiretap(t *testing.T, database string) *wiretap {
	t.Helper()
	target, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	server := target.Host
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target.Host = listener.Addr().String()
	tap := &wiretap{url: target.String(), asked: map[string]int{}}
	var open sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); open.Wait() })
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { tap.serve(t, client, server) })
		}
	})
	return tap
}

func (w *wiretap) serve(t *testing.T, client net.Conn, server string) {
	t.Helper()
	defer client.Close() //nolint:errcheck // its end is noticed by the other side
	upstream, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server)
	if err != nil {
		return // the test has ended
	}
	defer upstream.Close() //nolint:errcheck // as above
	var answers sync.WaitGroup
	answers.Go(func() { _, _ = io.Copy(client, upstream); _ = client.Close() })
	defer answers.Wait()
	defer upstream.Close() //nolint:errcheck // as above
	statements := map[string]string{}
	for typed := false; ; {
		kind, body, raw, err := spoken(client, typed)
		if err != nil {
			return
		}
		const sslRequest = 80877103
		if !typed && wire.BigEndian.Uint32(body) != sslRequest {
			typed = true
		}
		w.note(kind, body, statements)
		if _, err := upstream.Write(raw); err != nil {
			return
		}
	}
}

// spoken reads what a client says. What it says first has no type.
func spoken(from io.Reader, typed bool) (kind byte, body, raw []byte, err error) {
	head := make([]byte, 4, 5)
	if typed {
		head = head[:5]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return 0, nil, nil, err
	}
	if typed {
		kind = head[0]
	}
	body = make([]byte, wire.BigEndian.Uint32(head[len(head)-4:])-4)
	_, err = io.ReadFull(from, body)
	return kind, body, append(head, body...), err
}

func (w *wiretap) note(kind byte, body []byte, statements map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := strings.SplitN(string(body), "\x00", 3)
	switch kind {
	case 'Q':
		w.asked[named(texts[0])]++
	case 'P':
		statements[texts[0]] = named(texts[1])
		w.asked["prepare"]++
	case 'B':
		w.asked[statements[texts[1]]]++
	}
}

func named(query string) string {
	words := strings.Fields(strings.TrimPrefix(query, "-- name: ") + " -")
	if strings.HasPrefix(query, "-- name: ") {
		return words[0]
	}
	return words[0] + " " + words[1]
}

func (w *wiretap) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.asked)
}

// TestIdleReplicaAsksSeldom holds everything that a replica asks Postgres that has
// nothing to do, in its first seconds. What is not named here is not asked.
func TestIdleReplicaAsksSeldom(t *testing.T) {
	t.Parallel()
	const watched = 5 * time.Second
	every := func(period time.Duration) int { return 1 + int(watched/period) }
	most := map[string]int{
		// The schema is read on a connection of its own.
		"SELECT EXISTS": 1, "SELECT max(version_id)": 1, "LookBackLongest": 1,
		"ReplicaBeat": every(10 * time.Second), "SlackUpdateBacklog": every(15 * time.Second),
		// Once by itself and once because it listens from here on.
		`listen "tocsin-wake-ups"`: 1, "WakeUpNotify": 1, "OutboxBacklog": 2,
		// With each look, and in its transaction.
		"select set_config('enable_seqscan',": 2,
		// A connection is told once what it will be asked.
		"prepare": 10,
	}
	withAPI := map[string]int{"AccountsExist": 1, "prepare": 12}
	// A tick that comes late may be followed by one that comes in time.
	evaluating := map[string]int{"RuleClaim": every(time.Second) + 1, "prepare": 14}
	for name, c := range map[string]struct {
		roles []app.Role
		more  []map[string]int
	}{
		"dispatch":                {[]app.Role{app.RoleDispatch}, nil},
		"api, dispatch":           {[]app.Role{app.RoleAPI, app.RoleDispatch}, []map[string]int{withAPI}},
		"api, evaluate, dispatch": {app.Roles(), []map[string]int{withAPI, evaluating}},
	} {
		most := maps.Clone(most)
		for _, more := range c.more {
			maps.Copy(most, more)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.webhook("ops")
			tap := newWiretap(t, w.pgURL)
			over := time.After(watched)
			w.replica(func(o *app.Options) { o.PostgresURL, o.Roles = tap.url, c.roles })
			<-over
			asked := tap.counts()
			for _, query := range slices.Sorted(maps.Keys(asked)) {
				if asked[query] > most[query] {
					t.Errorf("%q was asked %d times in %v, want at most %d", query, asked[query], watched, most[query])
				}
			}
			if asked["ReplicaBeat"] == 0 {
				t.Errorf("asked %v, want a sign of life", asked)
			}
		})
	}
}
