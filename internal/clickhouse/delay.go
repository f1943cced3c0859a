package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// The delay that matters is the time from the start of an exchange until its row is visible. The
// cursor orders exchanges by start and follows the clock at a short distance, the settle time. A
// row that becomes visible later than that after its start is behind the cursor, and only the
// look-back finds it. So the delay consists of the exchange's own duration, and of the time that
// the pipeline needs from the end to the row.

// Delay is how late rows become visible.
type Delay struct {
	// Method is "inserted_at" if a column of the table says when rows were inserted, "watch" if the
	// table was watched.
	Method string `json:"method"`
	Rows   int    `json:"rows"`
	// FromStart is the time from an exchange's start to its row being visible. FromEnd is the time
	// from its end, if ends are known.
	FromStart Quantiles  `json:"fromStart"`
	FromEnd   *Quantiles `json:"fromEnd,omitempty"`
	// BehindCursor is the share of rows that became visible behind the cursor. Without a look-back
	// they are missed.
	BehindCursor float64 `json:"behindCursor"`
	// NeededSeconds is the longest delay that was seen or must be expected: that of the longest
	// exchange with the slowest pipeline.
	NeededSeconds float64 `json:"neededSeconds"`
	// AdvisedLookBackSeconds is twice NeededSeconds, rounded up.
	AdvisedLookBackSeconds int `json:"advisedLookBackSeconds"`

	// zone is how far the rows' times are probably behind, because they are those of another time
	// zone; 0 if they look right.
	zone time.Duration
	// ahead reports that nearly all rows began in the future when they became visible, by as much
	// as another time zone would explain.
	ahead bool
}

// Quantiles of delays, in seconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// arrival is the delay of one row, in nanoseconds. It is negative if the row became visible before
// it began.
type arrival struct{ fromStart, fromEnd int64 }

const (
	// zoneStep is the step of the offsets of time zones.
	zoneStep = 15 * time.Minute
	// leastZone is the smallest offset that is suspected.
	leastZone = 30 * time.Minute
	// zoneSlack is how much clocks may differ in addition.
	zoneSlack = time.Minute
	// zonePipeline is how long a pipeline may take in addition.
	zonePipeline = 5 * time.Minute
)

// zoneOf returns how far the times of rows are probably off because they are those of another zone.
// delays are the times from end to visible, in ascending order. The times are off by a multiple of
// zoneStep if the median delay is just above it and no delay is below it. The rows of a bulk load
// or a slow queue are different: their delays differ widely.
func zoneOf(delays []int64) time.Duration {
	middle := time.Duration(delays[len(delays)/2])
	zone := (middle + zoneSlack).Truncate(zoneStep)
	if zone < leastZone || middle > zone+zonePipeline || time.Duration(delays[0]) < zone-zoneSlack {
		return 0
	}
	return zone
}

// newDelay summarises arrivals; nil if there are none.
func newDelay(method string, arrivals []arrival, ends bool, settle time.Duration, longest *float64) *Delay {
	if len(arrivals) == 0 {
		return nil
	}
	d := &Delay{Method: method, Rows: len(arrivals)}
	starts, fromEnds, behind, ahead := make([]int64, len(arrivals)), make([]int64, len(arrivals)), 0, 0
	for i, a := range arrivals {
		starts[i], fromEnds[i] = max(a.fromStart, 0), max(a.fromEnd, 0)
		if a.fromStart <= (zoneSlack - zoneStep).Nanoseconds() {
			ahead++
		}
		if a.fromStart > settle.Nanoseconds() {
			behind++
		}
	}
	d.FromStart = quantiles(starts)
	d.NeededSeconds = d.FromStart.Max
	d.BehindCursor = float64(behind) / float64(len(arrivals))
	q := quantiles(fromEnds)
	d.zone, d.ahead = zoneOf(fromEnds), ahead*10 >= len(arrivals)*9
	if ends {
		d.FromEnd = &q
		if longest != nil {
			d.NeededSeconds = max(d.NeededSeconds, *longest+q.Max)
		}
	}
	d.AdvisedLookBackSeconds = advisedLookBack(d.NeededSeconds)
	return d
}

func quantiles(ns []int64) Quantiles {
	slices.Sort(ns)
	at := func(q float64) float64 { return time.Duration(ns[int(q*float64(len(ns)-1))]).Seconds() }
	return Quantiles{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// advisedLookBack returns twice the need, rounded up to a usual number.
func advisedLookBack(needed float64) int {
	steps := []int{60, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 345600, 604800}
	for _, s := range steps {
		if float64(s) >= 2*needed {
			return s
		}
	}
	return steps[len(steps)-1]
}

// maxArrivals bounds how many rows are read to measure their delays.
const maxArrivals = 50_000

// arrivalsQuery selects a share of a window's rows: one row of every oneOf, by the hash of their
// tenants and ids, so that each query selects the same share.
func arrivalsQuery(m *Mapping, nowNS int64, window time.Duration, oneOf uint64) query {
	visible := "toInt64(0)"
	if m.InsertedAt != "" {
		visible = fmt.Sprintf("toUnixTimestamp64Nano(toDateTime64(%s, 9))", operand(m.InsertedAt))
	}
	start := "toUnixTimestamp64Nano(" + operand(m.StartTime) + ")"
	q := query{parameters: map[string]string{"one_of": strconv.FormatUint(oneOf, 10), "limit": strconv.Itoa(maxArrivals * 4)}}
	q.sql = fmt.Sprintf(`
SELECT cityHash64(%[7]s, %[1]s) AS tocsin_hash, %[2]s, assumeNotNull(ifNull(%[3]s, %[2]s)), %[4]s
FROM %[5]s
WHERE %[6]s
  AND tocsin_hash %% {one_of:UInt64} = 0
LIMIT {limit:UInt64}`, operand(m.ExecutionID), start, m.end(), visible, m.Table, m.window(q.parameters, nowNS, window, m.Prune != ""), m.tenant())
	return q
}

// row is a row from which an [arrival] is made.
type row struct {
	hash                       uint64
	startNS, endNS, insertedNS int64
}

func (s *Source) rows(ctx context.Context, q query) ([]row, error) {
	rows, err := s.conn.Query(s.bounded(ctx, q, maxArrivals*4), q.sql)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err reports every error
	var list []row
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.hash, &r.startNS, &r.endNS, &r.insertedNS); err != nil {
			return nil, fmt.Errorf("clickhouse: read delays: %w", err)
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain(err)
	}
	return list, nil
}

// inserted returns the delays by the insert-time column. Columns in whole seconds may be up to one
// second early; such delays are 0.
func (s *Source) inserted(ctx context.Context, nowNS int64, window time.Duration, oneOf uint64) ([]arrival, error) {
	list, err := s.rows(ctx, arrivalsQuery(&s.mapping, nowNS, window, oneOf))
	if err != nil {
		return nil, err
	}
	arrivals := make([]arrival, len(list))
	for i, r := range list {
		arrivals[i] = arrival{r.insertedNS - r.startNS, r.insertedNS - r.endNS}
	}
	return arrivals, nil
}

// watch reads the table repeatedly and returns the delays of rows that were not there before, by
// ClickHouse's clock. They are too long by at most the time between two reads.
func (s *Source) watch(ctx context.Context, o CheckOptions, oneOf uint64) ([]arrival, error) {
	began, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	// The window does not move: a moving window would leave rows behind.
	q := arrivalsQuery(&s.mapping, began, o.Window, oneOf)
	known := map[uint64]bool{}
	first := true
	var arrivals []arrival
	ticker := time.NewTicker(o.Every)
	defer ticker.Stop()
	for {
		list, err := s.rows(ctx, q)
		if err != nil {
			return nil, err
		}
		now, err := s.Now(ctx)
		if err != nil {
			return nil, err
		}
		fresh := map[uint64]row{}
		for _, r := range list {
			if !known[r.hash] {
				fresh[r.hash] = r
			}
		}
		for _, hash := range slices.Sorted(maps.Keys(fresh)) {
			known[hash] = true
			if r := fresh[hash]; !first {
				arrivals = append(arrivals, arrival{now - r.startNS, now - r.endNS})
			}
		}
		first = false
		elapsed := time.Duration(now - began)
		o.Progress(elapsed, len(arrivals))
		if elapsed >= o.Watch {
			return arrivals, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("watch: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}
