//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// loss is what a failover lost: what was committed and confirmed in a period.
type loss struct {
	// when lasts until no call that the lost commits had begun can be under way any more. With a
	// synchronous standby nothing confirmed is lost.
	when        span
	synchronous bool
	// alerts are those that the new primary did not have.
	alerts []lost
}

// lost identifies a lost alert.
type lost struct{ AlertID, RuleID, Correlation string }

// failover ends the primary for good and promotes the standby, which then gets a new standby. An
// asynchronous standby receives nothing from the primary during the last while before; a
// synchronous one receives everything that is confirmed.
func (p *postgres) failover(ctx context.Context, deaf time.Duration) (*loss, error) {
	p.busy.Lock()
	defer p.busy.Unlock()
	old := p.leading()
	if err := p.caughtUp(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	var senders []int
	var before []lost
	if !p.synchronous {
		err := p.query(ctx, func(conn *pgx.Conn) (err error) {
			if senders, err = p.deafen(ctx, conn); err != nil {
				return err
			}
			pause(ctx.Done(), deaf)
			before, err = somethingToLose(ctx, conn, began)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if err := old.server.Kill(senders...); err != nil {
		return nil, fmt.Errorf("kill the primary: %w", err)
	}
	p.mu.Lock()
	p.primary = 1 - p.primary
	promoted := p.nodes[p.primary]
	p.mu.Unlock()
	if err := promoted.server.Promote(ctx); err != nil {
		return nil, err
	}
	l := &loss{synchronous: p.synchronous, when: span{began.UnixNano(), time.Now().Add(lease + webhookTimeout).UnixNano()}}
	if err := l.compare(ctx, promoted, before); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(old.options.DataDir); err != nil {
		return nil, err
	}
	return l, p.follow(ctx)
}

// caughtUp waits until the standby has everything that the primary has now.
func (p *postgres) caughtUp(ctx context.Context) error {
	var upTo string
	if err := p.query(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT pg_current_wal_insert_lsn()::text`).Scan(&upTo)
	}); err != nil {
		return err
	}
	for {
		var yes bool
		err := p.query(ctx, func(conn *pgx.Conn) error {
			return conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn >= $1::text::pg_lsn)`, upTo).Scan(&yes)
		})
		if err != nil || yes {
			return err
		}
		if !pause(ctx.Done(), 20*time.Millisecond) {
			return errors.Join(ctx.Err(), errors.New("the standby does not catch up"))
		}
	}
}

// deafen stops the processes that send to the standby.
func (p *postgres) deafen(ctx context.Context, conn *pgx.Conn) ([]int, error) {
	rows, err := conn.Query(ctx, `SELECT pid FROM pg_stat_replication`)
	if err != nil {
		return nil, err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return nil, fmt.Errorf("stop a sender: %w", err)
		}
	}
	return pids, nil
}

// somethingToLose waits, up to a limit, until alerts of exchanges were committed after an instant,
// and reads them together with those of just before. Most replicas may be stopped for some seconds.
func somethingToLose(ctx context.Context, conn *pgx.Conn, instant time.Time) ([]lost, error) {
	for range 100 {
		var there bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM alert WHERE execution_id IS NOT NULL AND fired_at >= $1)`, instant).Scan(&there)
		if err != nil {
			return nil, err
		}
		if there || !pause(ctx.Done(), 100*time.Millisecond) {
			break
		}
	}
	rows, err := conn.Query(ctx, `SELECT alert_id::text, rule_id::text, exchange->>'correlationId' FROM alert WHERE execution_id IS NOT NULL
		AND fired_at >= $1`, instant.Add(-2*time.Second))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[lost])
}

// compare records which alerts the new primary does not have.
func (l *loss) compare(ctx context.Context, promoted *node, before []lost) error {
	var ids []string
	for _, a := range before {
		ids = append(ids, a.AlertID)
	}
	known := map[string]bool{}
	err := queryServer(ctx, promoted.options.Port, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT alert_id::text FROM alert WHERE alert_id = ANY($1::text[]::uuid[])`, ids)
		if err != nil {
			return err
		}
		there, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, id := range there {
			known[id] = true
		}
		return err
	})
	for _, a := range before {
		if !known[a.AlertID] {
			l.alerts = append(l.alerts, a)
		}
	}
	return err
}

// follow creates a new standby of the primary in place of the other node.
func (p *postgres) follow(ctx context.Context) error {
	leader := p.leading()
	p.mu.Lock()
	other := p.nodes[1-p.primary]
	p.copies++
	port := other.options.Port
	other.options = p.options(fmt.Sprintf("postgres-%d", p.copies))
	other.options.Port, other.options.Follow = port, leader.server
	p.mu.Unlock()
	if err := leader.server.Copy(ctx, other.options.DataDir); err != nil {
		return err
	}
	if err := p.start(ctx, other); err != nil {
		return err
	}
	p.mu.Lock()
	other.options.Port = other.server.Port()
	p.mu.Unlock()
	if !p.synchronous {
		return nil
	}
	// Before the standby exists, nothing that is confirmed would be on it.
	if err := p.caughtUp(ctx); err != nil {
		return err
	}
	return p.query(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
		if err == nil {
			_, err = conn.Exec(ctx, `SELECT pg_reload_conf()`)
		}
		return err
	})
}
