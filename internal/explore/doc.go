// Package explore goes through every state of the specification within small bounds.
//
// The specification is spec/evaluation.qnt (P1 and P2) and spec/delivery.qnt (P3). Quint's
// simulator tries some of its runs at random. [Evaluation] and [Delivery] are the same two models
// in Go, action by action and field by field under the same names, and [Explore] takes every
// step from every state, breadth first: within the bounds nothing is left to luck.
//
// Three things are held in every state that can be reached:
//
//   - the invariants of the specification, by [Model].Broken;
//   - that what is promised for some time, an alert for each exchange that must have one, the end
//     of each notification, can still come about ([Model].Kept);
//   - and that these checks can fail: without any one of the guards (guards.go) a promise
//     breaks, and the shortest way there is printed.
//
// # Correspondence
//
// To Quint: TestTheSpecificationIsTheSameModel writes steps of the Go models into
// spec/traces.qnt, random walks with the whole state in which each ends, and the shortest way to
// what breaks without each guard. `make spec` has Quint take them: each step must be possible
// there and end in the same state. A step that Go leaves out would not be noticed by this.
//
// To the engine: internal/simulate runs the real evaluators and dispatchers, with all that this
// package leaves out, over long histories that it draws at random. Here the engine is modelled,
// with one partition, one rule, one notification, two servers of ClickHouse, at most two
// processes and two failovers, and every interleaving of their calls is tried. Neither proves what the other
// one does: nothing ties these models to the code but the names of actions, which the
// specification compares to it, and the reader.
//
// # Size
//
// States that differ only in names (of tokens, revisions, servers, processes) or in what nothing
// reads any more are one, see [Evaluation.Canonical]. What a process does that is at no stored
// checkpoint, and never will be, is left out for the same reason, unless a guard is taken away
// on which that rests.
package explore
