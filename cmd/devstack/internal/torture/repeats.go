//go:build unix

package torture

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// attempt is a row of what was tried. StoredAt is when its outcome was committed; it has a meaning when Verdict is set.
// AfterStored says that the outcome of the attempt before was stored when this one was claimed, as the trigger of
// [recordClaims] saw it.
type attempt struct {
	NotificationID string
	Number         int
	Replica        string
	StartedAt      time.Time
	Verdict        string
	Answered       bool
	StoredAt       time.Time
	AfterStored    bool
}

// recordClaims has Postgres record, in the transaction that claims a message again, whether the outcome of the attempt
// before was stored by then, maybe as unknown, which has no verdict. The instants of attempts do not say that: an attempt
// begins with its transaction, which may have begun before the outcome was committed that it saw. An outcome that is older
// than the message is that of a message which a failover took away, and which was written again with the same id.
func recordClaims(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		CREATE SCHEMA torture;
		CREATE TABLE torture.claim (notification_id uuid, attempt integer, after_stored boolean NOT NULL, PRIMARY KEY (notification_id, attempt));
		CREATE FUNCTION torture.record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		    INSERT INTO torture.claim
		    SELECT NEW.notification_id, NEW.attempts, EXISTS (
		        SELECT FROM public.attempt a WHERE a.notification_id = OLD.notification_id AND a.attempt = OLD.attempts
		          AND a.finished_at >= coalesce((SELECT n.created_at FROM public.notification n WHERE n.notification_id = OLD.notification_id), '-infinity'))
		    ON CONFLICT (notification_id, attempt) DO UPDATE SET after_stored = excluded.after_stored;
		    RETURN NULL;
		END $$;
		CREATE TRIGGER record AFTER UPDATE OF attempts ON public.outbox FOR EACH ROW
		    WHEN (NEW.attempts > OLD.attempts AND OLD.attempts > 0) EXECUTE FUNCTION torture.record()`)
	return err
}

// readAttempts returns the attempts of each notification, in order.
func readAttempts(ctx context.Context, db querier) (map[string][]attempt, error) {
	list, err := read[attempt](ctx, db, `
		SELECT a.notification_id::text, a.attempt, a.replica, a.started_at, coalesce(a.verdict, ''), a.status_code IS NOT NULL, a.stored_at, coalesce(c.after_stored, false)
		FROM (
		    SELECT notification_id, attempt, replica, started_at, verdict, status_code, coalesce(pg_xact_commit_timestamp(xmin), finished_at, started_at) AS stored_at
		    FROM attempt a
		    WHERE NOT EXISTS (SELECT FROM settlement s WHERE s.notification_id = a.notification_id AND s.attempt = a.attempt)
		    UNION ALL
		    SELECT notification_id, attempt, replica, started_at, verdict, status_code, coalesce(pg_xact_commit_timestamp(xmin), settled_at)
		    FROM settlement WHERE attempt IS NOT NULL
		) a LEFT JOIN torture.claim c USING (notification_id, attempt)
		ORDER BY 1, 2`)
	if err != nil {
		return nil, err
	}
	byNotification := map[string][]attempt{}
	for _, a := range list {
		byNotification[a.NotificationID] = append(byNotification[a.NotificationID], a)
	}
	return byNotification, nil
}

// checkRepeats decides of a notification's repeats which are explained.
func (w *world) checkRepeats(report *Report, n notification, attempts []attempt, requests []request, accepted int) {
	forgotten, forgottenAccepted := w.forgotten(requests)
	if len(requests) > len(attempts)+forgotten {
		report.find(repeatedOutside, "notification %s: %d requests of %d attempts", n.ID, len(requests), len(attempts))
	}
	// Attempts whose message may have been accepted without the sender's knowledge when the next one began.
	unknown := 0
	for i := range len(attempts) - 1 {
		this, next := &attempts[i], &attempts[i+1]
		switch {
		case next.AfterStored && this.Verdict == "DELIVERED":
			report.find(repeatedOutside, "notification %s: attempt %d began at %v, after attempt %d was stored as delivered at %v",
				n.ID, next.Number, next.StartedAt, this.Number, this.StoredAt)
		case next.AfterStored:
			if !this.Answered {
				unknown++
			}
		case w.disturbed.during(w.replicaOf(this.Replica), this.StartedAt, next.StartedAt):
			unknown++
		default:
			report.find(repeatedOutside, "notification %s: attempt %d of %s began at %v beside attempt %d of the undisturbed %s, begun at %v",
				n.ID, next.Number, next.Replica, next.StartedAt, this.Number, this.Replica, this.StartedAt)
		}
	}
	read := 0
	for _, r := range requests {
		if r.read {
			read++
		}
	}
	again := max(accepted-1, 0)
	report.RepeatedInWindow += min(again, unknown)
	report.RepeatedByFailover += min(max(again-unknown, 0), forgottenAccepted)
	report.RepeatedOnRequest += max(read-1, 0) - again
	if again > unknown+forgottenAccepted {
		report.find(repeatedOutside, "notification %s: accepted %d times, and %d attempts did not learn of it", n.ID, accepted, unknown)
	}
}

// replicaOf returns the number of the replica that calls itself so: host, process id and a random part.
func (w *world) replicaOf(name string) int {
	at := slices.IndexFunc(w.replicas, func(r *replica) bool { return r.ran(pidOf(name)) })
	if at < 0 {
		return everyone
	}
	return at
}
