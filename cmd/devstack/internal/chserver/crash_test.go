package chserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// TestKill kills the process while clients insert, and expects every acknowledged row after the restart.
func TestKill(t *testing.T) {
	dir := dataDir(t)
	s := startServer(t, dir)
	run(t, s.open(t), "CREATE TABLE t (client UInt32, i UInt32, at DateTime64(9)) ENGINE = MergeTree ORDER BY (client, i)")
	for round := range 3 {
		const clients, enough = 3, 100
		acknowledged := make([]int, clients) // batches of ten
		progress, failures := make(chan int, 100_000), make(chan error, clients)
		var group sync.WaitGroup
		for client := range clients {
			conn := s.open(t)
			group.Go(func() {
				for batch := 0; ; batch++ {
					if err := insertRows(context.Background(), conn, 10, func(i int) []any {
						return []any{uint32(round*clients + client), uint32(batch*10 + i), time.Now()}
					}); err != nil {
						failures <- err // killed, or failed too early
						return
					}
					acknowledged[client] = batch + 1
					progress <- batch
				}
			})
		}
		for range enough {
			select {
			case <-progress:
			case err := <-failures:
				t.Fatalf("an insert fails before the kill: %v", err)
			}
		}
		s.kill(t)
		group.Wait()
		s = startServer(t, dir)
		conn := s.open(t)
		for client, batches := range acknowledged {
			got := scan[uint64](t, conn, "SELECT count() FROM t WHERE client = {c:UInt32} AND i < {n:UInt32}",
				clickhouse.Named("c", round*clients+client), clickhouse.Named("n", batches*10))
			if want := uint64(batches * 10); got != want {
				t.Errorf("round %d: client %d has %d rows, %d were acknowledged", round, client, got, want)
			}
		}
	}
}

// TestStop stops the process in an orderly way while a statement runs.
func TestStop(t *testing.T) {
	dir := dataDir(t)
	s := startServer(t, dir)
	conn := s.open(t)
	run(t, conn, "CREATE TABLE t (a Int32) ENGINE = MergeTree ORDER BY a")
	run(t, conn, "INSERT INTO t VALUES (1)")
	done := make(chan error, 1)
	go func() {
		done <- conn.Exec(context.Background(), "SELECT sum(sipHash64(number)) AS endless FROM numbers(1000000000000)")
	}()
	watcher := s.open(t)
	eventually(t, "the statement runs", func() bool { return running(t, watcher, "endless") == 1 })
	if err := s.stop(t); err != nil {
		t.Errorf("the server exits with %v", err)
	}
	wantCode(t, <-done, 394) // the client gets an error
	if got := scan[uint64](t, startServer(t, dir).open(t), "SELECT count() FROM t"); got != 1 {
		t.Errorf("got %d rows after the restart, want 1", got)
	}
}

// TestAbandonedInsert interrupts an INSERT in the middle of its data, once by disconnecting, once
// by stopping the server.
func TestAbandonedInsert(t *testing.T) {
	dir := dataDir(t)
	s := startServer(t, dir)
	conn := s.open(t)
	run(t, conn, "CREATE TABLE abandoned (a Int32) ENGINE = MergeTree ORDER BY a")
	insert := func(ctx context.Context) (*io.PipeWriter, <-chan error) {
		body, send := io.Pipe()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/?query=INSERT+INTO+abandoned+FORMAT+CSV", body)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				err = errors.Join(fmt.Errorf("answered with %s", resp.Status), resp.Body.Close())
			}
			done <- err
		}()
		if _, err := io.WriteString(send, "1\n2\n"); err != nil {
			t.Fatal(err)
		}
		return send, done
	}

	waitFor := func(n uint64) {
		eventually(t, fmt.Sprintf("%d inserts run", n), func() bool { return running(t, conn, "INTO abandoned") == n })
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	send, done := insert(ctx)
	waitFor(1)
	cancel()
	_ = send.CloseWithError(ctx.Err()) // the client waits for its own body
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	waitFor(0)

	send, done = insert(t.Context())
	waitFor(1)
	if err := s.stop(t); err != nil {
		t.Errorf("the server exits with %v", err)
	}
	_ = send.Close()
	if err := <-done; err == nil || strings.Contains(err.Error(), "200") {
		t.Errorf("an insert that was cut off is answered with %v", err)
	}
	if got := scan[uint64](t, startServer(t, dir).open(t), "SELECT count() FROM abandoned"); got != 0 {
		t.Errorf("got %d rows of inserts that were cut off", got)
	}
}

// TestSecondProcess expects a clear error for a data directory that is in use.
func TestSecondProcess(t *testing.T) {
	dir := dataDir(t)
	startServer(t, dir)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	output, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(output), fmt.Sprintf("data directory %s is in use by another process", dir)) {
		t.Errorf("a second process ends with %v and says %q", err, output)
	}
}
