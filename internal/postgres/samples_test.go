package postgres_test

import (
	"sync"
	"testing"
	"time"

	"tocsin/api"
)

func TestAMinuteHasOneSampleHoweverManyReplicasTakeIt(t *testing.T) {
	db, conn := inboxOf(t)
	samples := db.Samples(time.Minute)
	if nothing, err := samples.History(t.Context(), tenant); err != nil || !nothing.From.IsZero() {
		t.Fatalf("before there are samples: %+v, %v", nothing, err)
	}
	for _, statement := range []string{
		`insert into replica (replica_id, host, pid, version, roles) values ('alive', 'h', 1, 'v', '{}'), ('dead', 'h', 2, 'v', '{}')`,
		`update replica set beat_at = now() - interval '2 minutes' where replica_id = 'dead'`,
		`update checkpoint set cursor = to_char((now() - interval '7 seconds') at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"000Z"') || '|e' where partition = 0`,
		`insert into system_sample (at, lag_ms, partitions, partitions_held, replicas)
		 values (date_trunc('minute', now() - interval '26 hours'), 1, 8, 8, 1), (date_trunc('minute', now() - interval '2 hours'), 90000, 8, 3, 2),
		        (date_trunc('minute', now() - interval '2 hours') + interval '1 second', 1000, 8, 8, 1)`,
		`insert into outbox_sample (tenant_id, at, messages, oldest_seconds)
		 values ('default', date_trunc('minute', now() - interval '26 hours'), 5, 5), ('default', date_trunc('minute', now() - interval '2 hours'), 12, 34),
		        ('another', date_trunc('minute', now() - interval '2 hours'), 99, 99)`,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := samples.Take(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var taken, kept int
	if err := conn.QueryRow(t.Context(), `select count(*) filter (where at > now() - interval '2 minutes'), count(*) from system_sample`).Scan(&taken, &kept); err != nil {
		t.Fatal(err)
	}
	// A new minute may have begun meanwhile.
	if taken < 1 || taken > 2 || kept != taken+2 {
		t.Errorf("%d samples of now, %d in all", taken, kept)
	}
	history, err := samples.History(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	last := history.Steps[api.HistorySteps-1]
	if last == nil || last.Replicas != 1 || last.Partitions != 8 || last.PartitionsHeld != 0 || last.Lag == nil || *last.Lag < 5*time.Second || *last.Lag > time.Minute {
		t.Errorf("now %+v", last)
	}
	var before []*api.SystemSample
	for _, sample := range history.Steps[:api.HistorySteps-2] {
		if sample != nil {
			before = append(before, sample)
		}
	}
	// Of one step the worst sample is returned, and only the tenant's part of the outbox.
	if len(before) != 1 || *before[0].Lag != 90*time.Second || before[0].Messages != 12 || before[0].Oldest != 34*time.Second ||
		before[0].PartitionsHeld != 3 || before[0].Replicas != 1 {
		t.Errorf("two hours ago %+v", before)
	}
}
