// Package stack runs Tocsin and everything that it needs on one machine.
//
// Run starts temporary databases for one command. Up runs a whole installation: Postgres,
// ClickHouse, a look-alike of Slack, tocsin itself, and traffic. Both start each part after the
// parts that it needs, register its end right after it exists, and end the parts in reverse order,
// within one time limit.
//
// Every process is kept running: one that ends by itself is started again, at the same address,
// with growing pauses and a line that says so. At the first start, an end is an error instead,
// shown with the last lines of the process's log.
//
// The first signal begins an orderly end (Run passes it to the command), the second one kills. If
// devstack itself is killed, its children end with it if the kernel ensures that; otherwise they
// end by the end of a pipe, or at the next start. The locks of its directories end with it, so a
// crash never needs manual work.
//
// What must survive is in Up's data directory: databases, encryption key, ports, messages, logs.
// The directory is locked while it is used, and one that contains anything else is refused.
package stack
