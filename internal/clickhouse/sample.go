package clickhouse

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Sample describes the terminal rows of a time window.
type Sample struct {
	WindowSeconds float64 `json:"windowSeconds"`
	Rows          uint64  `json:"rows"`
	// WithoutEnd is the number of rows whose end is not known.
	WithoutEnd uint64 `json:"withoutEnd"`
	EmptyID    uint64 `json:"emptyId"`
	// Repeated is the number of rows beyond the first with the same tenant, id and start. They are the
	// same exchange again, which does no harm.
	Repeated uint64 `json:"repeated"`
	// SharedIDs is the number of exchanges beyond the first of a tenant with the same id. They began at
	// another time, and raise no alert of their own.
	SharedIDs uint64 `json:"sharedIds"`
	// Future is the number of rows that began after the present.
	Future uint64 `json:"future"`
	// Tenants is the number of tenants that the rows belong to.
	Tenants uint64 `json:"tenants"`
	// Pruned is the number of rows that Prune hides although they are in its range.
	Pruned uint64 `json:"pruned"`
	// LeftOut is the number of rows that Terminal leaves out. It is counted only if it leaves no row.
	LeftOut uint64 `json:"leftOut"`
	// LongestSeconds is the longest time from start to end; nil if ends are not known.
	LongestSeconds *float64 `json:"longestSeconds,omitempty"`

	newestNS int64
	tenantID string
	// dayRows is the number of rows of the last day. It is counted only if the window has no rows;
	// newestNS is then the newest of the day.
	dayRows uint64
}

// ahead reports whether nearly all rows are as far in the future as another time zone would
// explain, and a wrong clock would not.
func (p *Sample) ahead(nowNS int64) bool {
	return p.Rows > 0 && p.Future*10 >= p.Rows*9 && p.newestNS-nowNS >= (zoneStep-zoneSlack).Nanoseconds()
}

// lastDay finds the newest row of the last day, if the window has no rows. Such a row is old
// because nothing happens, or because its time is that of another zone.
func (s *Source) lastDay(ctx context.Context, p *Sample, nowNS int64) error {
	m := &s.mapping
	q := query{parameters: map[string]string{}}
	q.sql = fmt.Sprintf("SELECT count(), max(toUnixTimestamp64Nano(%s)) FROM %s WHERE %s", operand(m.StartTime), m.Table,
		m.window(q.parameters, nowNS, 24*time.Hour, m.Prune != ""))
	if err := s.conn.QueryRow(s.bounded(ctx, q, 1), q.sql).Scan(&p.dayRows, &p.newestNS); err != nil {
		return s.explain(err)
	}
	return nil
}

// sample reads the rows that began within a window before the present, or later.
func (s *Source) sample(ctx context.Context, nowNS int64, window time.Duration) (*Sample, error) {
	m := &s.mapping
	start, id := operand(m.StartTime), operand(m.ExecutionID)
	q := query{parameters: map[string]string{"now": strconv.FormatInt(nowNS, 10)}}
	q.sql = fmt.Sprintf(`
SELECT
    count(),
    countIf(isNull(%[1]s)),
    countIf(%[2]s = ''),
    toUInt64(count() - uniqExact(cityHash64(%[4]s, %[2]s), %[3]s)),
    toUInt64(uniqExact(cityHash64(%[4]s, %[2]s), %[3]s) - uniqExact(cityHash64(%[4]s, %[2]s))),
    countIf(%[3]s > fromUnixTimestamp64Nano({now:Int64}, 'UTC')),
    max(%[1]s - toUnixTimestamp64Nano(%[3]s)),
    max(toUnixTimestamp64Nano(%[3]s)),
    argMax(toString(%[4]s), %[3]s),
    uniq(%[4]s)
FROM %[5]s
WHERE %[6]s`, m.end(), id, start, m.tenant(), m.Table, m.window(q.parameters, nowNS, window, m.Prune != ""))
	result := &Sample{WindowSeconds: window.Seconds()}
	var longest *int64
	row := s.conn.QueryRow(s.bounded(ctx, q, 1), q.sql)
	err := row.Scan(&result.Rows, &result.WithoutEnd, &result.EmptyID, &result.Repeated, &result.SharedIDs, &result.Future,
		&longest, &result.newestNS, &result.tenantID, &result.Tenants)
	if err != nil {
		return nil, s.explain(err)
	}
	if longest != nil {
		seconds := time.Duration(*longest).Seconds()
		result.LongestSeconds = &seconds
	}
	if m.Terminal != "" && result.Rows == 0 {
		all, left := *m, query{parameters: map[string]string{}}
		all.Terminal = ""
		left.sql = fmt.Sprintf("SELECT count() FROM %s WHERE %s", m.Table, all.window(left.parameters, nowNS, window, m.Prune != ""))
		if err := s.conn.QueryRow(s.bounded(ctx, left, 1), left.sql).Scan(&result.LeftOut); err != nil {
			return nil, s.explain(err)
		}
	}
	if m.Prune != "" {
		hidden := query{parameters: map[string]string{}}
		hidden.sql = fmt.Sprintf("SELECT count() FROM %s WHERE %s AND NOT ifNull(%s, false)", m.Table,
			m.window(hidden.parameters, nowNS, window, false), m.pruned(pruneInstant(nowNS-window.Nanoseconds()), pruneInstant(nowNS+aheadNS)))
		if err := s.conn.QueryRow(s.bounded(ctx, hidden, 1), hidden.sql).Scan(&result.Pruned); err != nil {
			return nil, s.explain(err)
		}
	}
	return result, nil
}

// aheadNS is how far a window extends into the future, for rows whose clocks are ahead.
const aheadNS = int64(24 * time.Hour)

// window returns the condition for the terminal rows of all tenants that began within a window
// before the present, or later.
func (m *Mapping) window(parameters map[string]string, nowNS int64, window time.Duration, prune bool) string {
	from, to := nowNS-window.Nanoseconds(), nowNS+aheadNS
	start := operand(m.StartTime)
	where := fmt.Sprintf("%[1]s >= fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND %[1]s < fromUnixTimestamp64Nano({to:Int64}, 'UTC')", start)
	parameters["from"] = strconv.FormatInt(from, 10)
	parameters["to"] = strconv.FormatInt(to, 10)
	if m.Terminal != "" {
		where += " AND " + operand(m.Terminal)
	}
	if prune {
		where += " AND " + m.pruned(pruneInstant(from), pruneInstant(to))
	}
	return where
}
