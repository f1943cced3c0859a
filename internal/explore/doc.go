// Package explore visits every state of the specification within small bounds.
//
// The specification is spec/evaluation.qnt (P1 and P2) and spec/delivery.qnt (P3). Quint's
// simulator tries random runs of it. [Evaluation] and [Delivery] are the same two models in Go,
// with the same names of actions and fields. [Explore] takes every step from every state, breadth
// first: within the bounds nothing depends on chance.
//
// Three things are checked in every reachable state:
//
//   - the invariants of the specification, with [Model].Broken;
//   - that what is promised eventually (an alert for each exchange that must have one, the end of
//     each notification) can still happen ([Model].Kept);
//   - that these checks can fail: without any one of the guards (guards.go) a promise breaks, and the
//     shortest way there is printed.
//
// # Correspondence
//
// To Quint: TestTheSpecificationIsTheSameModel writes steps of the Go models to spec/traces.qnt:
// random walks with the complete state at their ends, and the shortest way to a broken promise
// without each guard. `make spec` makes Quint take them: each step must be possible there and end
// in the same state. This does not detect a step that is missing in Go.
//
// To the engine: internal/simulate runs the real evaluators and dispatchers, with everything that
// this package leaves out, over long random histories. Here the engine is modelled, with one
// partition, one rule, one notification, two servers of ClickHouse, at most two processes and two
// failovers, and every interleaving of their calls is tried. Neither replaces the other. Nothing
// ties these models to the code except the names of actions, which the specification compares with
// it, and the reader.
//
// # Size
//
// States that differ only in names (of tokens, revisions, servers, processes) or in what nothing
// reads any more are one state, see [Evaluation.Canonical]. Steps of a process that is at no stored
// checkpoint, and never will be, are left out for the same reason, unless a guard is removed on
// which that depends.
package explore
