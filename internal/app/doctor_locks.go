package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/internal/clickhouse"
)

// heldFor is how long a transaction must have locks to be a finding. Those of Tocsin are shorter.
const heldFor = 30 * time.Second

// holder is a session of Postgres whose transaction has locked rows or tables of Tocsin.
type holder struct {
	pid                                          int
	transaction, user, application, state, locks string
	blocked                                      int
	// since is when the transaction began; nil if the role of Tocsin may not see that of another role.
	since *time.Time
	long  bool
}

// holders reads them from the locks that a reader does not take. Every role sees these, and who waits for whom.
const holders = `
select l.pid, min(l.virtualtransaction), coalesce(min(a.usename), ''), coalesce(min(a.application_name), ''), coalesce(min(a.state), ''),
	string_agg(distinct c.relname, ', '), (select count(*) from pg_stat_activity w where l.pid = any(pg_blocking_pids(w.pid))),
	min(a.xact_start), coalesce(min(a.xact_start) < clock_timestamp() - $1::interval, false)
from pg_locks l
join pg_class c on c.oid = l.relation and c.relkind in ('r', 'p') and c.relnamespace = current_schema()::regnamespace
join pg_stat_activity a on a.pid = l.pid and a.usename is not null
where l.granted and l.mode <> 'AccessShareLock' and l.pid <> pg_backend_pid()
	and l.database = (select oid from pg_database where datname = current_database())
group by l.pid
order by min(a.xact_start), l.pid`

// locks finds sessions that keep rows of Tocsin locked, for example an open transaction in psql.
func (d *examination) locks(ctx context.Context) {
	if d.db == nil {
		return
	}
	found, err := d.holders(ctx)
	if err != nil {
		d.failed("locks", err, remedyPostgres)
		return
	}
	for i := range found {
		h := &found[i]
		text := fmt.Sprintf("session %d (user %s, application %q", h.pid, h.user, h.application)
		if h.state != "" {
			text += ", " + h.state
		}
		text += ") has locked rows or tables of Tocsin"
		if h.since != nil {
			text += " in a transaction since " + h.since.UTC().Format(time.RFC3339)
		}
		d.add(clickhouse.Warn, "locks", fmt.Sprintf("%s: %s; sessions that wait for it: %d", text, h.locks, h.blocked),
			fmt.Sprintf("end its transaction, or the session with select pg_terminate_backend(%d)", h.pid))
	}
	if len(found) == 0 {
		d.add(clickhouse.OK, "locks", "no other session keeps rows locked", "")
	}
}

// holders returns the sessions that have had locks for long. If it is hidden how long, those count that have them in the
// same transaction some seconds later, longer than Tocsin waits for a lock.
func (d *examination) holders(ctx context.Context) ([]holder, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer closeConn(ctx, conn)
	first, err := readHolders(ctx, conn)
	if err != nil {
		return nil, err
	}
	var long []holder
	hidden := map[string]bool{}
	for i := range first {
		if first[i].long {
			long = append(long, first[i])
		}
		if first[i].since == nil {
			hidden[first[i].transaction] = true
		}
	}
	if len(hidden) == 0 {
		return long, nil
	}
	if _, err := conn.Exec(ctx, `select pg_sleep(6)`, pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, fmt.Errorf("wait for locks: %w", err)
	}
	second, err := readHolders(ctx, conn)
	if err != nil {
		return nil, err
	}
	for i := range second {
		if h := &second[i]; hidden[h.transaction] {
			long = append(long, *h)
		}
	}
	return long, nil
}

func readHolders(ctx context.Context, conn *pgx.Conn) ([]holder, error) {
	rows, err := conn.Query(ctx, strings.TrimSpace(holders), pgx.QueryExecModeSimpleProtocol, heldFor)
	if err != nil {
		return nil, fmt.Errorf("read locks: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h holder, err error) {
		return h, row.Scan(&h.pid, &h.transaction, &h.user, &h.application, &h.state, &h.locks, &h.blocked, &h.since, &h.long)
	})
	if err != nil {
		return nil, fmt.Errorf("read locks: %w", err)
	}
	return list, nil
}
