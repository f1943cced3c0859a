//go:build unix

package torture

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// exchange is one execution in its terminal state. Instants are nanoseconds: since the beginning of
// the run in a plan, since the Unix epoch once the run has begun.
type exchange struct {
	number         int
	startNS, endNS int64
	id             string
	environment    string
	application    string
	route          string
	failed         bool
	errorType      string
	message        string
	stack          string
	attributes     map[string]string
}

// correlation is the value by which the checker finds an exchange.
func (e *exchange) correlation() string { return fmt.Sprintf("x-%d", e.number) }

func (e *exchange) durationNS() int64 { return e.endNS - e.startNS }

func (e *exchange) status() string {
	if e.failed {
		return "FAILED"
	}
	return "COMPLETED"
}

// write is a row to be written.
type write struct {
	atNS     int64
	exchange int
	// running is the row of an exchange's start, which the row of its end replaces.
	running bool
}

// traffic returns the exchanges of a run and their rows, in the order in which these are written.
func traffic(random *rand.Rand, count int, length time.Duration) ([]exchange, []write) {
	exchanges := make([]exchange, count)
	ends := make([]int64, count)
	for i := range ends {
		ends[i] = random.Int64N(int64(length))
		if random.Float64() < 0.2 {
			// Bursts: a fifth of all exchanges end in the first quarter of their second.
			ends[i] = ends[i]/1e9*1e9 + random.Int64N(250e6)
		}
	}
	slices.Sort(ends)
	var writes []write
	for i := range exchanges {
		e := &exchanges[i]
		e.number = i
		e.endNS = ends[i]
		e.startNS = e.endNS - duration(random)
		tie(random, exchanges[:i], e)
		describe(random, e)
		if float64(e.endNS) > silentFrom*float64(length) && float64(e.endNS) < silentTo*float64(length) && e.route == silentRoute {
			e.route = "pay-in"
		}
		writes = append(writes, rows(random, e, min(int64(length)/4, 8e9))...)
	}
	slices.SortStableFunc(writes, func(a, b write) int { return cmp.Compare(a.atNS, b.atNS) })
	return exchanges, writes
}

// duration has a heavy tail: half of all durations are below 20 ms, one in a hundred is above ten
// seconds, and none exceeds half an hour. Two in a hundred are about as long as the short
// look-back.
func duration(random *rand.Rand) int64 {
	if random.Float64() < 0.02 {
		return shortLookBack*1e9 - random.Int64N(5e9)
	}
	const shape, scale = 0.65, 6e6
	return int64(min(scale*math.Pow(1-random.Float64(), -1/shape), 30*60e9))
}

// tie gives one exchange in eight the start of an earlier one, equal to the nanosecond or to the
// millisecond.
func tie(random *rand.Rand, earlier []exchange, e *exchange) {
	if len(earlier) == 0 || random.Float64() >= 0.125 {
		return
	}
	other := earlier[len(earlier)-1-random.IntN(min(len(earlier), 20))].startNS
	if random.Float64() < 0.5 {
		other = other/1e6*1e6 + random.Int64N(1e6)
	}
	if other <= e.endNS {
		e.startNS = other
	}
}

// A route on which nothing ends for a part of a run.
const (
	silentRoute          = "pay-out"
	silentFrom, silentTo = 0.3, 0.75
)

func describe(random *rand.Rand, e *exchange) {
	e.id = executionID(random, e.number)
	e.environment = pick(random, "production", "production", "production", "staging", "test")
	e.application = pick(random, "orders", "orders-eu", "billing", "payments", "crm", "Lager/Süd")
	e.route = pick(random, "order-to-erp", "order.sync", "invoice", "pay-in", "pay-out", "*", "a*b")
	e.attributes = map[string]string{"region": pick(random, "eu", "us", "", "eu\x00"), "tenant id": "7", "amount": pick(random, "5", "499.99", "500", "-3", "1200.5", "many", "")}
	if name := job(e.number); name != "" {
		e.attributes[jobAttribute] = name
	}
	if random.Float64() < 0.1 {
		e.attributes["odd\xff"] = "\x00\xfe"
	}
	if e.failed = random.Float64() < 0.12; !e.failed {
		return
	}
	e.errorType = pick(random, "ConnectException", "TimeoutException", "ValidationError", "")
	e.message = pick(random,
		fmt.Sprintf("ERP refused order %d, code=503", e.number), "upstream timed out after 30 s", "",
		"bad value \xff\x00 in field <b>&amp;", "Zeichen „ungültig“ \u2028 code=4", `{"json": "\\u0000 code=400"}`)
	if random.Float64() < 0.05 {
		e.stack = strings.Repeat("at some.place(Some.java:7)\n\x00\xff", 1000)
	}
}

func executionID(random *rand.Rand, number int) string {
	if random.Float64() < 0.9 {
		return fmt.Sprintf("%016x-%d", random.Uint64(), number)
	}
	return fmt.Sprintf(pick(random, "%d|a|b", "\xff\xfe%d", "\x00%d", "ü %d", " %d ", "hex:%d", "sha256:%d", "%d\n",
		strings.Repeat("x", 3000)+"%d", "%d'\"\\"), number)
}

// rows returns the rows of one exchange: possibly one of its start, one of its end, and possibly
// repetitions, each at most the given time after the exchange ended.
func rows(random *rand.Rand, e *exchange, lateNS int64) []write {
	at := e.endNS
	switch chance := random.Float64(); {
	case chance < 0.15:
		at += random.Int64N(lateNS/8 + 1)
	case chance < 0.18:
		at += random.Int64N(lateNS + 1)
	case chance < 0.19:
		// The clock of its system is ahead: the exchange ends after it was written.
		at -= random.Int64N(1500e6)
	}
	out := []write{{atNS: max(at, 0), exchange: e.number}}
	if e.durationNS() > 300e6 && e.startNS >= 0 && e.startNS < at && random.Float64() < 0.4 {
		out = append(out, write{atNS: e.startNS, exchange: e.number, running: true})
	}
	for random.Float64() < 0.04 {
		out = append(out, write{atNS: max(at, 0) + random.Int64N(lateNS+1), exchange: e.number})
	}
	return out
}

// columns are the columns of a row, in the order of [exchange.appendRow].
const columns = "tenant_id, start_time, environment, application_id, route_id, execution_id, end_time, duration, status, " +
	"error_type, error_message, error_stack, correlation_id, attributes"

// appendRow appends a row in ClickHouse's format RowBinary, which accepts arbitrary bytes.
func (e *exchange) appendRow(to []byte, running bool) []byte {
	to = appendString(to, "default")
	to = binary.LittleEndian.AppendUint64(to, uint64(e.startNS))
	for _, text := range []string{e.environment, e.application, e.route, e.id} {
		to = appendString(to, text)
	}
	if running {
		to = append(to, 1)
		to = binary.LittleEndian.AppendUint64(to, 0)
		to = appendString(to, "RUNNING")
		to = append(to, 0, 0, 0)
	} else {
		to = append(to, 0)
		to = binary.LittleEndian.AppendUint64(to, uint64(e.endNS))
		to = binary.LittleEndian.AppendUint64(to, uint64(e.durationNS()))
		for _, text := range []string{e.status(), e.errorType, e.message, e.stack} {
			to = appendString(to, text)
		}
	}
	to = appendString(to, e.correlation())
	to = binary.AppendUvarint(to, uint64(len(e.attributes)))
	for key, value := range e.attributes {
		to = appendString(appendString(to, key), value)
	}
	return to
}

func appendString(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }
