package clickhouse

import (
	"context"
	"fmt"
	"time"

	"tocsin/rules"
)

// CheckOptions says what [Source.Check] examines.
type CheckOptions struct {
	// Window is the time before the present whose rows are examined, 1 h by default.
	Window time.Duration
	// Watch is how long the table is watched for new rows, if no column says when a row was
	// inserted. With 0 it is not watched.
	Watch time.Duration
	// Every is the pause between two reads, 200 ms by default.
	Every time.Duration
	// Settle is how far behind ClickHouse's clock exchanges are evaluated.
	Settle time.Duration
	// Progress is called with how long the watch has lasted and how many rows it saw. It may be
	// nil.
	Progress func(elapsed time.Duration, rows int)
}

func (o *CheckOptions) applyDefaults() {
	if o.Window == 0 {
		o.Window = time.Hour
	}
	if o.Every == 0 {
		o.Every = 200 * time.Millisecond
	}
	if o.Progress == nil {
		o.Progress = func(time.Duration, int) {}
	}
}

// Check compares the mapping with the table, like [Source.CheckMapping]. Then it examines how the
// table is stored, its recent rows, and how late rows become visible. An error means that
// ClickHouse did not answer, or, if it is a [RefusedError], that it refused a query; the report then holds
// the results so far.
func (s *Source) Check(ctx context.Context, o CheckOptions) (Report, error) {
	o.applyDefaults()
	r, err := s.CheckMapping(ctx)
	if err != nil || r.Broken() {
		return r, err
	}
	s.describe(&r)
	now, err := s.Now(ctx)
	if err != nil {
		return r, err
	}
	if r.Layout, err = s.layout(ctx); err != nil {
		return r, err
	}
	if r.Layout == nil || r.Layout.SortKey == "" {
		r.add(Warn, "sort key", s.mapping.Table+" has no visible sort key; what a scan reads depends on the tables behind it", "sort the tables behind it by the start time first, as docs/sources.md describes")
	} else {
		r.add(OK, "sort key", "("+r.Layout.SortKey+")", "")
		r.add(OK, "partition key", or(r.Layout.PartitionKey, "none"), "")
	}
	if r.Sample, err = s.sample(ctx, now, o.Window); err != nil {
		return r, err
	}
	if r.Sample.Rows == 0 {
		if err := s.lastDay(ctx, r.Sample, now); err != nil {
			return r, err
		}
	}
	s.judgeSample(&r, now)
	end := now
	if r.Sample.Rows > 0 {
		end = min(now, r.Sample.newestNS+1)
	}
	if r.Tick, err = s.tick(ctx, r.Sample.tenantID, end); err != nil {
		return r, err
	}
	if r.Tick != nil || r.Sample.Rows > 0 {
		s.judgeTick(&r)
	}
	if r.Sample.ahead(now) {
		return r, nil
	}
	if err := s.delay(ctx, &r, o, now); err != nil {
		return r, err
	}
	return r, nil
}

// describe adds findings about parts that the mapping leaves out.
func (s *Source) describe(r *Report) {
	m := &s.mapping
	if m.EndTime == "" {
		r.add(Warn, "end_time", "is not mapped: an exchange that started before its rule was created or enabled does not count, although it failed later",
			"map end_time if the table has such a column")
	}
	if m.Duration == "" && m.EndTime == "" {
		r.add(Warn, "duration", "is not mapped: every duration is 0, so filters on the duration do not distinguish exchanges", "map duration or end_time")
	}
	if m.InsertedAt == "" {
		r.add(OK, "inserted_at", "is not mapped; if the table has such a column, the delay is measured with it", "")
	}
}

// inUTC is the remedy for times of another zone.
func (s *Source) inUTC() string {
	return fmt.Sprintf("write the times in UTC, or name their zone, as in start_time: toDateTime64(toString(%s), 9, 'America/New_York'), and end_time likewise",
		s.mapping.StartTime)
}

func (s *Source) judgeSample(r *Report, nowNS int64) {
	p := r.Sample
	share := func(n uint64) string {
		return fmt.Sprintf("%d of %d rows (%.3g%%)", n, p.Rows, 100*float64(n)/float64(p.Rows))
	}
	window := time.Duration(p.WindowSeconds * float64(time.Second)).String()
	if p.Pruned > 0 {
		r.add(Broken, "prune", fmt.Sprintf("hides %d rows whose start_time is in the range", p.Pruned),
			"correct prune, so that it holds for every row whose start_time lies from {from} to {to}")
	}
	switch {
	case p.Rows == 0 && p.dayRows == 0 && p.LeftOut > 0:
		r.add(Warn, "rows", fmt.Sprintf("terminal leaves out all %d rows that started in the last %s: none is an exchange that has ended", p.LeftOut, window),
			"compare terminal with the values in the table, which it has to match exactly, as in 'Consumer'; if it is right, check again when an exchange has ended")
		return
	case p.Rows == 0 && p.dayRows == 0:
		r.add(Warn, "rows", "no exchange has ended that started in the last "+window, "check again while there is traffic, or with a longer --window")
		return
	case p.Rows == 0:
		r.add(Warn, "rows", fmt.Sprintf("no exchange has ended that started in the last %s; the newest started %s ago", window, seconds(time.Duration(nowNS-p.newestNS).Seconds())),
			"if there is no traffic, check again while there is; otherwise, the times are in another time zone: "+s.inUTC())
		return
	}
	r.add(OK, "rows", fmt.Sprintf("%s of ended exchanges that started in the last %s", rowsOf(p.Rows), window), "")
	if p.EmptyID > 0 {
		r.add(Broken, "execution_id", "is empty in "+share(p.EmptyID)+": a rule raises only one alert for all of them", "map an expression that names each exchange")
	}
	if p.SharedIDs > 0 {
		r.add(Warn, "execution_id", share(p.SharedIDs)+" have the ID of another exchange: a rule raises an alert only for the first of them", "map an expression that names each exchange, as in concat(a, ':', b)")
	}
	if p.Repeated > 0 {
		r.add(OK, "repeated rows", share(p.Repeated)+" are repeated; each exchange raises only one alert for each rule", "")
	}
	switch {
	case p.ahead(nowNS):
		s.judgeAhead(r, share(p.Future)+" start in the future")
	case p.Future > 0:
		r.add(Warn, "clock", share(p.Future)+" start in the future: they are evaluated when that time comes", "correct the clock of the program that writes them")
	}
	if s.mapping.EndTime != "" && p.WithoutEnd > 0 {
		r.add(Warn, "end_time", "is NULL in "+share(p.WithoutEnd)+" of ended exchanges: their start counts instead", "write the end of each exchange that has ended, or map end_time to an expression that has it")
	}
}

// judgeAhead adds the finding that present exchanges raise alerts only in hours.
func (s *Source) judgeAhead(r *Report, which string) {
	r.add(Broken, "time zone", which+", and are evaluated when that time comes; check whether the times are in another time zone", s.inUTC())
}

// many is how many granules a tick may read without a warning: 64 of them are half a million rows,
// which take about ten milliseconds. granuleRows is the default number of rows in a granule.
const (
	many        = 64
	granuleRows = 8192
)

func (s *Source) judgeTick(r *Report) {
	if r.Tick == nil {
		r.add(Warn, "tick", "the plan does not say how many granules a scan reads", "ClickHouse's table system.query_log shows in read_rows how much each query reads: if it is most of the table, sort the table by the start time first")
		return
	}
	const prune = "map start_time to the column of the sort key, or set prune to a condition on that key, " +
		"as in toDateTime(Timestamp) >= toDateTime({from}) AND toDateTime(Timestamp) <= toDateTime({to})"
	cost := func(about, of string, granules uint64, remedy string) {
		text := fmt.Sprintf("a scan of one second%s reads %d of %d granules, about %d rows", of, granules, r.Tick.Of, granules*granuleRows)
		if granules <= many {
			r.add(OK, about, text, "")
			return
		}
		r.add(Warn, about, text, remedy)
	}
	if s.mapping.TenantID == "" {
		cost("tick", "", r.Tick.Granules, prune)
		return
	}
	cost("tick", " of one tenant", r.Tick.Granules, prune)
	if r.Sample.Tenants < 2 {
		return
	}
	all := fmt.Sprintf(" of all %d tenants", r.Sample.Tenants)
	if r.Layout != nil && r.Layout.beginsWith(s.mapping.TenantID) {
		cost("many tenants", all, r.Tick.AllTenants, fmt.Sprintf("sort the table by %s first and %s second, as `tocsin source ddl` does: "+
			"a scan then reads one or two granules of each part, however many tenants there are; docs/sources.md says how to change the sort key", s.mapping.StartTime, s.mapping.TenantID))
		return
	}
	cost("many tenants", all, r.Tick.AllTenants, prune)
}

func (s *Source) delay(ctx context.Context, r *Report, o CheckOptions, nowNS int64) error {
	oneOf := r.Sample.Rows/maxArrivals + 1
	if r.Sample.dayRows > 0 {
		// Rows that become visible now may be as old as the newest row.
		oneOf = r.Sample.dayRows/maxArrivals + 1
		o.Window += time.Duration(nowNS - r.Sample.newestNS)
	}
	var method string
	var arrivals []arrival
	var err error
	switch {
	case s.mapping.InsertedAt != "":
		method = "inserted_at"
		arrivals, err = s.inserted(ctx, nowNS, o.Window, oneOf)
	case o.Watch > 0:
		method = "watch"
		arrivals, err = s.watch(ctx, o, oneOf)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	r.Delay = newDelay(method, arrivals, s.mapping.EndTime != "", o.Settle, r.Sample.LongestSeconds)
	s.judgeDelay(r, o)
	return nil
}

func (s *Source) judgeDelay(r *Report, o CheckOptions) {
	d := r.Delay
	if d == nil {
		r.add(Warn, "delay", "no row became visible meanwhile, so the delay is not known", "check again while there is traffic, or with a longer --watch")
		return
	}
	if d.ahead {
		s.judgeAhead(r, "rows that become visible start in the future")
		return
	}
	r.add(OK, "delay", fmt.Sprintf("from start to visible: p50 %s, p99 %s, max %s (%s, by %s)",
		seconds(d.FromStart.P50), seconds(d.FromStart.P99), seconds(d.FromStart.Max), rowsOf(d.Rows), d.Method), "")
	if d.FromEnd != nil {
		r.add(OK, "pipeline", fmt.Sprintf("from end to visible: p50 %s, p99 %s, max %s",
			seconds(d.FromEnd.P50), seconds(d.FromEnd.P99), seconds(d.FromEnd.Max)), "")
	}
	if d.zone > 0 {
		r.add(Broken, "time zone", fmt.Sprintf("each row becomes visible about %s after its end; check whether the times are in another time zone", seconds(d.zone.Seconds())),
			s.inUTC()+fmt.Sprintf("; if rows really arrive that late, set lookBackSeconds to %d", d.AdvisedLookBackSeconds))
		return
	}
	behind := fmt.Sprintf("%.3g%% of rows become visible behind the cursor (later than %s after their start)", 100*d.BehindCursor, o.Settle)
	needed := fmt.Sprintf("the longest delay to expect is %s", seconds(d.NeededSeconds))
	advised := fmt.Sprintf("set lookBackSeconds to %d", d.AdvisedLookBackSeconds)
	switch {
	case d.NeededSeconds > float64(rules.DefaultLookBackSeconds):
		r.add(Warn, "look-back", fmt.Sprintf("%s; %s, beyond the default look-back of %d s: later exchanges raise no alert",
			behind, needed, rules.DefaultLookBackSeconds), advised)
	case d.AdvisedLookBackSeconds > rules.DefaultLookBackSeconds:
		r.add(Warn, "look-back", fmt.Sprintf("%s; %s, close to the default look-back of %d s", behind, needed, rules.DefaultLookBackSeconds), advised)
	default:
		r.add(OK, "look-back", fmt.Sprintf("%s; %s; the default lookBackSeconds of %d covers it, %d would be enough",
			behind, needed, rules.DefaultLookBackSeconds, d.AdvisedLookBackSeconds), "")
	}
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// rowsOf formats a number of rows.
func rowsOf[N int | uint64 | int64](n N) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}
