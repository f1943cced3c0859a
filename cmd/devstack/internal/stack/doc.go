// Package stack runs Tocsin and everything that it needs on one machine.
//
// Run starts throw-away databases for one command. Up keeps a whole installation going: Postgres, ClickHouse, a
// look-alike of Slack, tocsin itself, and traffic. Both start each part on top of the ones before, register its end
// right after it exists, and end the parts in the opposite order, under one bound.
//
// Every process is kept: one that ends by itself is started again, at the same address, with growing pauses and a line
// that says so. At the first start an end is an error instead, shown with the last lines of the process's log.
//
// Signals drive the life of a stack. The first one begins an orderly end (Run hands it to the command), the second one
// kills. A devstack that is killed itself takes its children with it where the kernel sees to that, and by the end of a
// pipe or at the next start elsewhere; the locks of its directories fall with it, so a crash never needs a hand.
//
// What must survive is in Up's data directory: databases, encryption key, ports, messages, logs. It is locked while it
// is used, and a directory that holds anything else is refused.
package stack
