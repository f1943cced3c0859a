package chserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"
)

// TestKill kills the process while clients insert, and expects every acknowledged row after the restart.
func TestKill(t *testing.T) {
	dir := dataDir(t)
	s := startServer(t, dir)
	run(t, s.open(t), "CREATE TABLE t (client UInt32, i UInt32, at DateTime64(9)) ENGINE = MergeTree ORDER BY (client, i)")
	for round := range 3 {
		const clients, enough = 3, 100
		acknowledged := make([]int, clients) // batches of ten
		progress := make(chan int, 10_000)
		var group errgroup.Group
		for client := range clients {
			group.Go(func() error {
				conn, err := clickhouse.Open(s.options())
				if err != nil {
					return err
				}
				defer func() { _ = conn.Close() }()
				for batch := 0; ; batch++ {
					inserted, err := conn.PrepareBatch(context.Background(), "INSERT INTO t")
					if err != nil {
						return nil // killed
					}
					for i := range 10 {
						if err := inserted.Append(uint32(round*clients+client), uint32(batch*10+i), time.Now()); err != nil {
							return err
						}
					}
					if errors.Join(inserted.Send(), inserted.Close()) != nil {
						return nil // killed
					}
					acknowledged[client] = batch + 1
					progress <- batch
				}
			})
		}
		for range enough {
			<-progress
		}
		s.kill(t)
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
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

// TestStop stops the process in order while a statement runs.
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
	wantCode(t, <-done, 394) // the client is told
	if got := scan[uint64](t, startServer(t, dir).open(t), "SELECT count() FROM t"); got != 1 {
		t.Errorf("got %d rows after the restart, want 1", got)
	}
}

// TestSecondProcess wants a clear refusal of a data directory in use.
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
