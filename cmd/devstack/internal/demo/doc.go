// Package demo produces the traffic of a company that runs integrations: a
// dozen applications with some forty routes, whose exchanges it writes into
// ClickHouse as their own runtimes would.
//
// A [Generator] is the model. It is pure and seeded: the same seed and start
// give the same rows, whatever the clock and the machine. It yields rows in the
// order in which they are inserted, which is the order in which exchanges end,
// and not that in which they start. Durations are heavy-tailed (median a few
// milliseconds, 99th percentile about half a second, some of 30 s), so a long
// exchange appears far behind exchanges that started after it. About half of
// all exchanges share their millisecond with another, a few their nanosecond.
// Some are written twice, RUNNING at the start and terminal at the end, some
// rows are repeated as by a writer that tries again.
//
// A few per cent of the exchanges fail, each route in its own way. Every couple
// of minutes, and on demand, one route has an outage: 20 to 40 failures within
// seconds. In each ten minutes by the clock tax-lookup fails unusually often from the
// second to the fourth, pdf-render is slow from the sixth to the eighth, and tracking-import
// runs nothing from the sixth to the ninth. Half of the orders that fail are sent again
// within two minutes, under the same correlation id, and complete.
//
// A [Traffic] carries the model into a table. Backfill writes history once, into
// an empty table; Run then follows the clock with small batches, and begins with a
// failure of each of three routes, so that there is something to see. While
// ClickHouse is away, Run keeps what is due, up to a bound beyond which the
// oldest rows are dropped and counted, and tries again. An insert whose answer is
// lost is repeated, which the ReplacingMergeTree folds. When the clock leaps (a
// laptop wakes up), the traffic begins anew at the present instead of writing
// hours at once.
package demo
