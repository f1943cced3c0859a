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

// wiretap is a proxy between a replica and Postgres that counts queries: by the query's name or, if
// it has none, by its first words. Preparing a statement counts as well.
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

// spoken reads the messages of a client. The first one has no type.
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

// TestIdleReplicaAsksSeldom lists all queries of a replica that has nothing to do, with eight
// partitions to hold and rules in one of them: each tick looks at its leases, and commits the
// position of the partition. There are no other queries.
func TestIdleReplicaAsksSeldom(t *testing.T) {
	t.Parallel()
	const watched = 12 * time.Second
	// every is the interval of a query, more is how often it is made besides: at the start, and
	// after the replica listens.
	type share struct {
		every time.Duration
		more  int
	}
	most := map[string]share{
		// The schema is read on a connection of its own.
		"SELECT EXISTS": {0, 1}, "SELECT max(version_id)": {0, 1}, "LookBackLongest": {0, 1},
		"ReplicaBeat": {10 * time.Second, 1}, "ReplicaSilent": {30 * time.Second, 0}, "SlackUpdateWebhooks": {15 * time.Second, 1}, "SlackUpdateTrim": {time.Minute, 1}, "ResendWebhooks": {time.Minute, 1},
		// Once in any case and once because it listens from here on; once more after five quiet
		// seconds.
		`listen "tocsin-wake-ups"`: {0, 1}, "WakeUpNotify": {0, 1}, "OutboxLook": {30 * time.Second, 3},
		"BreakersOpenFor": {15 * time.Second, 0}, "OutboxExpire": {15 * time.Second, 0}, "SnoozeDue": {15 * time.Second, 0}, "SilenceDigestDue": {15 * time.Second, 0}, "EscalationDue": {15 * time.Second, 0},
		// A query whether the minute has a sample, and the sample that one of all replicas takes:
		// at the start, and in each minute that begins.
		"SampleMissing": {20 * time.Second, 1}, "PartitionList": {time.Minute, 2}, "SampleInsert": {time.Minute, 2},
		"SampleOutbox": {time.Minute, 2}, "SampleDelete": {time.Minute, 2}, "SampleDeleteOutbox": {time.Minute, 2},
		"begin; set": {time.Minute, 2}, "commit -": {time.Minute, 2},
		// With each look, and in its transaction.
		"select set_config('enable_seqscan',": {10 * time.Second, 3},
		// Of each listening connection.
		"-- ping": {15 * time.Second, 0},
		// Each connection prepares its statements once; how many connections there are is up to the
		// pool.
		"prepare": {0, 60},
	}
	withAPI := map[string]share{"AdministratorExists": {0, 1}}
	tick := time.Second
	evaluating := map[string]share{
		"CheckpointsFor": {tick, 2}, "CheckpointTake": {0, 1}, "CheckpointRenew": {5 * time.Second, 1}, "ReplicaEvaluates": {5 * time.Second, 2},
		// The first passes of all partitions, and then those of the one with rules.
		"RulesRevision": {0, 9}, "RulesChanged": {0, 9}, "RulesRemoved": {0, 1}, "RuleBackfills": {0, 9}, "RuleReplays": {0, 9},
		"ResolutionTake":   {30 * time.Second, 0},
		"CheckpointCommit": {tick, 12},
		// With each commit of a position alone, and in its transaction.
		"select set_config('lock_timeout',": {tick, 12},
		"BackfillWrite":                     {0, 2}, "BackfillDelete": {0, 2}, "begin; set": {time.Minute, 6}, "commit -": {time.Minute, 6},
	}
	for name, c := range map[string]struct {
		roles []app.Role
		more  []map[string]share
		// perSecond is the number of queries per second.
		perSecond int
	}{
		"dispatch":                {[]app.Role{app.RoleDispatch}, nil, 1},
		"api, dispatch":           {[]app.Role{app.RoleAPI, app.RoleDispatch}, []map[string]share{withAPI}, 1},
		"api, evaluate, dispatch": {app.Roles(), []map[string]share{withAPI, evaluating}, 3},
	} {
		most := maps.Clone(most)
		for _, more := range c.more {
			maps.Copy(most, more)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, usualPartitions)
			w.rule(w.webhook("ops"))
			tap := newWiretap(t, w.pgURL)
			began := time.Now()
			w.replica(func(o *app.Options) {
				o.PostgresURL, o.Roles, o.TickInterval = tap.url, c.roles, tick
				// However slow the machine is, no pass is made in the period that is watched.
				o.RetentionInterval = time.Hour
			})
			w.until("it listens", func() bool {
				asked := tap.counts()
				return asked[`listen "tocsin-wake-ups"`] > 0 && (len(c.roles) < 3 || asked["CheckpointCommit"] > 8)
			})
			listens, before := time.Now(), sum(tap.counts())
			<-time.After(watched)
			asked := tap.counts()
			took := time.Since(began)
			// A minute may begin meanwhile, with its sample.
			const sample = 8
			if all, quiet := sum(asked)-before, time.Since(listens); all > c.perSecond*int(quiet/time.Second)+sample {
				t.Errorf("it asked %d times in %v", all, quiet)
			}
			for _, query := range slices.Sorted(maps.Keys(asked)) {
				share := most[query]
				bound := share.more
				if share.every > 0 {
					bound += int(took / share.every)
				}
				if asked[query] > bound {
					t.Errorf("%q was asked %d times in %v, want at most %d", query, asked[query], took, bound)
				}
			}
			if asked["ReplicaBeat"] == 0 {
				t.Errorf("asked %v, want a heartbeat", asked)
			}
		})
	}
}

// sum returns the number of queries, without those that each connection makes once and without the
// settings sent along with a query.
func sum(asked map[string]int) (all int) {
	for query, count := range asked {
		if query != "prepare" && query != "select set_config('enable_seqscan'," {
			all += count
		}
	}
	return all
}
