package demo

import (
	"container/heap"
	"fmt"
	"maps"
	"sort"
	"time"
)

// The shape of the traffic. The tests of the generator hold what follows from it.
const (
	DefaultRate         = 15.0  // exchanges a second
	DefaultFailureShare = 0.027 // of them fail while all is calm: some 24 a minute

	clumpShare   = 0.22   // arrivals that are a clump within one millisecond
	tieShare     = 0.012  // exchanges of a clump in the very nanosecond of the one before
	stuckShare   = 0.0016 // exchanges that hang for 5 to 30 s and then complete
	announced    = 0.06   // exchanges also written at their start, RUNNING
	repeated     = 0.01   // rows written twice
	sentAgain    = 0.5    // failed exchanges of orders that run once more, and complete
	longest      = 30 * time.Second
	outageFrom   = 90 * time.Second // least time between two outages
	outageUntil  = 180 * time.Second
	outageFewest = 20
	outageMost   = 40
)

// Shape sets how much traffic there is. Zero values mean the defaults.
type Shape struct {
	// Rate is the mean number of exchanges started per second.
	Rate float64
	// FailureShare is the share of them that fails while no route has an outage.
	FailureShare float64
	// NoOutages leaves outages to [Generator.Outage], and has no route in trouble for minutes.
	NoOutages bool
}

// Generator yields the rows of the demo company in order of insertion, without
// end. It is deterministic and not safe for concurrent use.
type Generator struct {
	dice     dice
	shape    Shape
	routes   []route
	weights  []float64 // cumulated
	failures []float64 // by route: probability of failure

	arrivals   float64 // clumps and single exchanges a second
	nextStart  time.Time
	nextOutage time.Time
	pending    rows
	seq        uint64
}

// NewGenerator returns the traffic that starts at the given instant.
func NewGenerator(seed uint64, start time.Time, shape Shape) *Generator {
	if shape.Rate <= 0 {
		shape.Rate = DefaultRate
	}
	if shape.FailureShare <= 0 {
		shape.FailureShare = DefaultFailureShare
	}
	start = start.UTC().Round(0)
	g := &Generator{dice: newDice(seed, start), shape: shape, routes: catalog()}

	var total, fragile float64
	for _, r := range g.routes {
		total += r.weight
		fragile += r.weight * r.fragility
		g.weights = append(g.weights, total)
	}
	for _, r := range g.routes {
		g.failures = append(g.failures, shape.FailureShare*r.fragility*total/fragile)
	}
	const meanClump = 4 // of 2 to 6
	g.arrivals = shape.Rate / (1 - clumpShare + clumpShare*meanClump)
	g.nextStart = start.Add(g.dice.wait(g.arrivals))
	g.nextOutage = start.Add(g.dice.span(outageFrom/3, outageFrom))
	return g
}

// Routes returns the ids of all routes that [Generator.Outage] accepts.
func Routes() []string {
	var ids []string
	for _, r := range catalog() {
		ids = append(ids, r.id)
	}
	return ids
}

// Peek returns when the row that Next returns is inserted.
func (g *Generator) Peek() time.Time {
	g.fill()
	return g.pending[0].InsertAt
}

// Next returns the next row. Its InsertAt is never before that of the row
// returned last.
func (g *Generator) Next() Row {
	g.fill()
	return heap.Pop(&g.pending).(Row)
}

// Until returns the rows inserted up to and including the given instant.
func (g *Generator) Until(at time.Time) []Row {
	var out []Row
	for !g.Peek().After(at) {
		out = append(out, g.Next())
	}
	return out
}

// fill generates arrivals until no row that is still to come can be inserted
// before the first one pending.
func (g *Generator) fill() {
	for {
		outageFirst := !g.shape.NoOutages && g.nextOutage.Before(g.nextStart)
		next := g.nextStart
		if outageFirst {
			next = g.nextOutage
		}
		if len(g.pending) > 0 && g.pending[0].InsertAt.Before(next) {
			return
		}
		if outageFirst {
			g.nextOutage = next.Add(g.dice.span(outageFrom, outageUntil))
			g.outage(&g.routes[g.draw()], next)
			continue
		}
		g.nextStart = next.Add(g.dice.wait(g.arrivals))
		g.arrive(next)
	}
}

// Outage makes one route fail 20 to 40 times within some seconds from the given
// instant, which must not lie before the row returned last. An empty id means a
// route by chance.
func (g *Generator) Outage(routeID string, at time.Time) error {
	if routeID == "" {
		g.outage(&g.routes[g.draw()], at.UTC())
		return nil
	}
	for i := range g.routes {
		if g.routes[i].id == routeID {
			g.outage(&g.routes[i], at.UTC())
			return nil
		}
	}
	return fmt.Errorf("no route %q in the demo catalog", routeID)
}

// openingRoutes are those of which an exchange fails as soon as the traffic begins: one
// of each of three teams, so that nobody who tries it out waits for the first failure.
func openingRoutes() []string { return []string{"order-to-erp", "payment-capture", "label-print"} }

// open makes an exchange of each of the opening routes fail in production, begun within
// half a second from the given instant, which must not lie before the row returned last.
func (g *Generator) open(at time.Time) {
	for _, id := range openingRoutes() {
		for i := range g.routes {
			if r := &g.routes[i]; r.id == id {
				g.emit(r, g.dice.subject(r), at.UTC().Round(0).Add(g.dice.span(0, time.Second/2)), Production, r.failures[0])
			}
		}
	}
}

// outage lets a route fail again and again for one reason.
func (g *Generator) outage(r *route, at time.Time) {
	d := g.dice
	cause := pick(d, connectionRefused, serverError, connectionRefused)
	count, lasts := d.between(outageFewest, outageMost), d.span(3*time.Second, 8*time.Second)
	for range count {
		start := at.Add(d.span(0, lasts))
		s := d.subject(r)
		if now, troubled := troubleOf(r.id, start); troubled && now.silent && !g.shape.NoOutages {
			continue
		}
		g.emit(r, s, start, Production, cause)
	}
}

// arrive starts one exchange, or a clump of them of one route, as a poller that
// picks up several messages does.
func (g *Generator) arrive(at time.Time) {
	d := g.dice
	i := g.draw()
	r := &g.routes[i]
	count, start := 1, at
	if d.chance(clumpShare) {
		count = d.between(2, 6)
		at = at.Truncate(time.Millisecond).Add(time.Millisecond)
		start = at.Add(d.span(0, time.Millisecond))
	}
	for n := range count {
		if n > 0 && !d.chance(tieShare) {
			start = at.Add(d.span(0, time.Millisecond))
		}
		environment := Production
		if d.chance(r.staging) {
			environment = Staging
		}
		g.run(i, start, environment)
	}
}

// run starts an exchange of a route, which fails as often, and lasts as long, as is usual
// at that time.
func (g *Generator) run(i int, start time.Time, environment string) {
	d, r, fails := g.dice, g.routes[i], g.failures[i]
	if now, troubled := troubleOf(r.id, start); troubled && !g.shape.NoOutages {
		if now.silent {
			return
		}
		fails, r.median = max(fails, now.fails), time.Duration(float64(r.median)*now.slower)
	}
	var cause failureKind
	if d.chance(fails) {
		cause = r.cause(d)
	}
	g.emit(&r, d.subject(&r), start, environment, cause)
}

// cause draws how the route fails; the kinds listed first are the usual ones.
func (r *route) cause(d dice) failureKind {
	i := min(d.IntN(len(r.failures)), d.IntN(len(r.failures)))
	return r.failures[i]
}

// draw picks the index of a route by weight.
func (g *Generator) draw() int {
	x := g.dice.Float64() * g.weights[len(g.weights)-1]
	return sort.SearchFloat64s(g.weights, x)
}

// emit schedules the rows of one exchange.
func (g *Generator) emit(r *route, s subject, start time.Time, environment string, cause failureKind) {
	d := g.dice
	x := Exchange{
		StartTime:     start,
		Environment:   environment,
		Application:   r.app,
		Route:         r.id,
		ExecutionID:   d.uuidAt(start),
		CorrelationID: d.hex(32),
		Attributes:    d.attributes(r, s, environment),
	}
	took := min(max(d.lognormal(r.median, r.spread), 40*time.Microsecond), longest)
	if d.chance(stuckShare) {
		took = d.span(5*time.Second, longest)
	}

	done := x
	done.Status = StatusCompleted
	if cause != nil {
		f := cause(d, r, s)
		if f.took > 0 {
			took = f.took
		}
		done.Status = StatusFailed
		done.ErrorType = f.errorType
		done.ErrorMessage = f.message
		done.ErrorStack = stack(r, f, x.ExecutionID)
	}
	done.Duration = took
	done.EndTime = start.Add(took)

	if d.chance(announced) {
		x.Status = StatusRunning
		g.push(Row{InsertAt: start, Exchange: x})
	}
	g.push(Row{InsertAt: done.EndTime, Exchange: done})
	if d.chance(repeated) {
		g.push(Row{InsertAt: done.EndTime.Add(d.span(0, 3*time.Second)), Exchange: done, Repeat: true})
	}
	if cause != nil && r.kind == orderTraffic && d.chance(sentAgain) {
		g.sendAgain(r, &done)
	}
}

// sendAgain has an exchange that failed run once more, under its correlation id, and complete.
func (g *Generator) sendAgain(r *route, failed *Exchange) {
	d := g.dice
	again := *failed
	again.StartTime = failed.EndTime.Add(d.span(20*time.Second, 90*time.Second))
	again.ExecutionID = d.uuidAt(again.StartTime)
	again.Status, again.ErrorType, again.ErrorMessage, again.ErrorStack = StatusCompleted, "", "", ""
	again.Duration = min(max(d.lognormal(r.median, r.spread), 40*time.Microsecond), longest)
	again.EndTime = again.StartTime.Add(again.Duration)
	again.Attributes = maps.Clone(failed.Attributes)
	g.push(Row{InsertAt: again.EndTime, Exchange: again})
}

func (g *Generator) push(r Row) {
	g.seq++
	r.seq = g.seq
	heap.Push(&g.pending, r)
}

// rows is a heap ordered by instant of insertion, then by making.
type rows []Row

// Len counts for container/heap.
func (h *rows) Len() int { return len(*h) }

// Less orders for container/heap.
func (h *rows) Less(i, j int) bool {
	a, b := &(*h)[i], &(*h)[j]
	if !a.InsertAt.Equal(b.InsertAt) {
		return a.InsertAt.Before(b.InsertAt)
	}
	return a.seq < b.seq
}

// Swap exchanges for container/heap.
func (h *rows) Swap(i, j int) { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push appends for container/heap.
func (h *rows) Push(x any) { *h = append(*h, x.(Row)) }

// Pop removes the last for container/heap.
func (h *rows) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = Row{}
	*h = (*h)[:last]
	return r
}
