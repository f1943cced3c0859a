package app_test

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/pgtest"
	"tocsin/internal/retention"
	"tocsin/notify"
)

const (
	bodyDay = 24 * time.Hour
	// The tables that hold bodies: partitions, and the default partition.
	inPartitions  = `select count(*)::text from notification_body where tableoid <> 'notification_body_rest'::regclass`
	inTheRest     = `select count(*)::text from notification_body_rest`
	bodyPartition = `select name from body_partitions() order by ends_at`
)

// deleteBodies deletes bodies as if the given number of days had passed, with a retention of 0.
func (w *world) deleteBodies(inDays int) {
	w.t.Helper()
	for range len(w.column(bodyPartition)) + 1 { // others are created meanwhile
		if _, err := w.db.Retention().Bodies(w.t.Context(), -time.Duration(inDays)*bodyDay, bodyDay, 100); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestBodiesGoWithTheirPartition drops partitions while a message is still open: its body stays,
// and is what the next attempt sends.
func TestBodiesGoWithTheirPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	w.raiseFor(hook, "a", "b")
	w.deliver()
	w.receiver.respond(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "later", http.StatusBadGateway) })
	w.raiseFor(hook, "c")
	w.deliver()
	w.wantColumn("in partitions", inPartitions, "3")
	frozen := w.column(`select md5(content) || written_at from notification_body join outbox using (notification_id)`)
	w.deleteBodies(30)
	w.wantColumn("in partitions", inPartitions, "0")
	w.wantColumn("in the rest", inTheRest, "1")

	w.exec(`update alert set title = 'another one'`)
	w.exec(`update outbox set due_at = now(), ready_at = now()`)
	w.wantColumn("frozen", `select md5(content) || written_at from notification_body`, frozen...)
	deliveries := w.claim()
	if len(deliveries) != 1 || deliveries[0].Fresh || deliveries[0].Body == nil {
		t.Fatalf("claimed %+v", deliveries)
	}
	w.wantColumn("frozen", `select md5(content) || written_at from notification_body`, frozen...)
	w.deleteBodies(30)
	w.wantColumn("while it is open", inTheRest, "1")
	w.exec(`delete from outbox`)
	w.deleteBodies(30)
	w.wantColumn("when it is not", inTheRest, "0")
	for _, id := range w.column(`select notification_id::text from settlement`) {
		if got, err := w.db.Record(nil).Get(t.Context(), tenant, uuid.MustParse(id)); err != nil || got.Status != notify.Delivered {
			t.Errorf("a notification without its body: %+v, %v", got, err)
		}
	}
}

// TestBodiesWithoutPartition creates no partition for some time, and has one that cannot be
// created, because a clock has jumped.
func TestBodiesWithoutPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	for _, name := range w.column(bodyPartition) {
		w.exec(`drop table ` + name)
	}
	w.raiseFor(hook, "a")
	w.deliver()
	w.wantColumn("in the rest", inTheRest, "1")
	w.exec(`insert into notification_body select gen_random_uuid(), '', '', '', now() + interval '36 hours'`)
	expire := func(keep time.Duration) {
		t.Helper()
		if _, err := w.db.Retention().Bodies(t.Context(), keep, bodyDay, 100); err != nil {
			t.Fatal(err)
		}
	}
	expire(bodyDay)
	if got := w.column(bodyPartition); len(got) != 1 {
		t.Errorf("partitions %q, want one, until the next day", got)
	}
	w.raiseFor(hook, "b")
	w.deliver()
	w.wantColumn("in partitions", inPartitions, "1")
	w.wantColumn("in the rest", inTheRest, "2")
	w.exec(`delete from notification_body_rest where written_at > now()`)
	expire(bodyDay)
	if got := w.column(bodyPartition); len(got) != 3 {
		t.Errorf("partitions %q, want those that were missing", got)
	}
	expire(0)
	w.wantColumn("in the rest, deleted", inTheRest, "0")
	if got := w.receiver.received(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("received %q", got)
	}
}

// TestBodiesAreKeptAsLongAsSaid drops a partition when its end is older than the retention,
// whatever the retention was before.
func TestBodiesAreKeptAsLongAsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.column(bodyPartition)
	for _, step := range []struct {
		keep time.Duration
		left int
	}{{bodyDay, len(first)}, {10 * bodyDay, len(first)}, {0, len(first) - 1}, {bodyDay, len(first) - 1}} {
		if _, err := w.db.Retention().Bodies(t.Context(), step.keep, bodyDay, 100); err != nil {
			t.Fatal(err)
		}
		if got := w.column(bodyPartition); len(got) != step.left || !slices.Equal(got, first[len(first)-step.left:]) {
			t.Errorf("kept for %v: %q, of %q", step.keep, got, first)
		}
	}
}

// TestAReportKeepsAPartitionAndNothingElse has a session that reads an old partition for long: it
// is not dropped, but new ones are created.
func TestAReportKeepsAPartitionAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range w.column(`select name from body_partitions() where ends_at > now()`) {
		w.exec(`drop table ` + name)
	}
	report := pgtest.Conn(t, w.pgURL)
	if _, err := report.Exec(t.Context(), `begin; select * from notification_body_first`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Retention().Bodies(t.Context(), 0, bodyDay, 100); err == nil {
		t.Error("the partition that is read was dropped")
	}
	w.wantColumn("two lie ahead", `select (count(*) >= 2)::text from body_partitions() where ends_at > now()`, "true")
	w.wantColumn("kept", `select name from body_partitions() where ends_at <= now()`, "notification_body_first")
}

// TestTwoReplicasPartition lets two replicas create and drop partitions while messages are
// delivered.
func TestTwoReplicasPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("ops")
	var wg sync.WaitGroup
	for range 2 {
		store := w.db.Retention()
		wg.Go(func() {
			for range 10 {
				if _, err := store.Bodies(t.Context(), -2*bodyDay, bodyDay, 100); err != nil && !errors.Is(err, retention.ErrBusy) {
					t.Error(err)
				}
			}
		})
	}
	var want []string
	for i := range 5 {
		id := "e" + strconv.Itoa(i)
		w.raiseFor(hook, id)
		w.deliver()
		want = append(want, id)
	}
	wg.Wait()
	w.until("all are delivered", func() bool { w.deliver(); return len(w.column(`select '' from settlement`)) == len(want) })
	if got := w.receiver.received(); !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	w.wantColumn("at most two lie ahead", `select (count(*) between 1 and 4)::text from body_partitions() where ends_at > now()`, "true")
}
