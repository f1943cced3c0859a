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

// holder is a session of Postgres, or a prepared transaction, that has locked rows or tables of Tocsin.
type holder struct {
	pid                                          int
	transaction, user, application, state, locks string
	// prepared is the quoted name of a prepared transaction, which has no session; otherwise empty.
	prepared string
	blocked  int
	// since is when the transaction began; nil if it is prepared, or if the role of Tocsin may not see that of another role.
	since *time.Time
	long  bool
}

// holders reads them from the locks that neither a reader takes nor maintenance beside it (vacuum, create index
// concurrently), which keeps no rows locked. Every role sees these, and who waits for whom. Who waits is asked once for each
// session that does, because Postgres then stops all changes of locks. A prepared transaction has the locks of its
// transaction id, and blocks as session 0.
const holders = `
with blocked as materialized (
	select b.pid, count(distinct w.pid) as sessions
	from (select distinct pid from pg_locks where not granted) w cross join lateral unnest(pg_blocking_pids(w.pid)) b(pid)
	group by b.pid
)
select coalesce(l.pid, 0), min(l.virtualtransaction), coalesce(min(a.usename), min(p.owner), ''), coalesce(min(a.application_name), ''),
	coalesce(min(a.state), ''), string_agg(distinct c.relname, ', '), coalesce(quote_literal(p.gid), ''), coalesce(min(b.sessions), 0),
	min(a.xact_start), coalesce(min(a.xact_start) < clock_timestamp() - $1::interval, false)
from pg_locks l
join pg_class c on c.oid = l.relation and c.relkind in ('r', 'p') and c.relnamespace = current_schema()::regnamespace
left join pg_stat_activity a on a.pid = l.pid and a.usename is not null
left join pg_locks t on l.pid is null and t.pid is null and t.virtualtransaction = l.virtualtransaction and t.locktype = 'transactionid'
left join pg_prepared_xacts p on p.transaction = t.transactionid
left join blocked b on b.pid = coalesce(l.pid, 0)
where l.granted and l.mode not in ('AccessShareLock', 'ShareUpdateExclusiveLock') and l.pid is distinct from pg_backend_pid()
	and l.database = (select oid from pg_database where datname = current_database()) and (a.pid is not null or p.gid is not null)
group by l.pid, p.gid
order by min(a.xact_start), l.pid, p.gid`

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
		d.add(clickhouse.Warn, "locks", h.String(), h.remedy())
	}
	if len(found) == 0 {
		d.add(clickhouse.OK, "locks", "no other session keeps rows locked", "")
	}
}

// String says who has locked what.
func (h *holder) String() string {
	text := fmt.Sprintf("session %d (user %s, application %q", h.pid, h.user, h.application)
	if h.prepared != "" {
		text = fmt.Sprintf("prepared transaction %s (user %s", h.prepared, h.user)
	}
	if h.state != "" {
		text += ", " + h.state
	}
	text += ") has locked rows or tables of Tocsin"
	if h.since != nil {
		text += " in a transaction since " + h.since.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s: %s; sessions that wait for it: %d", text, h.locks, h.blocked)
}

// remedy says how to end it.
func (h *holder) remedy() string {
	if h.prepared != "" {
		return fmt.Sprintf("let the program that prepared it end it, or do so in Tocsin's database with rollback prepared %s", h.prepared)
	}
	return fmt.Sprintf("end its transaction, or the session with select pg_terminate_backend(%d)", h.pid)
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
		return h, row.Scan(&h.pid, &h.transaction, &h.user, &h.application, &h.state, &h.locks, &h.prepared, &h.blocked, &h.since, &h.long)
	})
	if err != nil {
		return nil, fmt.Errorf("read locks: %w", err)
	}
	return list, nil
}
