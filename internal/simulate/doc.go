// Package simulate runs the whole engine in virtual time, breaks everything around it, and
// holds it to its promises after every step.
//
// Evaluators, dispatchers, retention and memberships are the real ones, several processes of
// them. Around them are models of Postgres and of two ClickHouse servers (package model),
// receivers, and people. A process is single-stepped: each of its calls to the world waits
// until the simulation lets it happen, so that any two processes can overtake one another
// between any two calls.
//
//	seed ──▶ steps ──▶ let a call happen, with a fault or without ──▶ check ──▶ the next step
//	                   let time pass, write rows, have people act
//
// A run is determined by its seed: all randomness is drawn from it, time is virtual, and
// what waits at the same time is put in order before one is chosen. Two runs of a seed have
// the same history, byte for byte. Each step has random numbers of its own, so a failing run
// is shrunk by leaving steps out.
//
// # What breaks
//
// A process dies before or after any call, is paused between two calls, or is
// disconnected: a call is not made, or is made and its answer lost. Calls take so long that
// leases expire. Postgres fails over and loses its last transactions. One of the ClickHouse
// servers lags; reads fail. The clocks of Postgres, ClickHouse and each process jump. Rows
// come late, twice, or after a row of the same exchange that still ran. Receivers hang,
// throttle, refuse, break off, are gone, and say that they failed although they took the
// message. People edit, disable and enable rules and webhooks, acknowledge and resolve
// alerts, retry and discard messages, begin and end silences. In every third seed rules use
// routing policies that escalate, which people edit, and people snooze alerts and take back what
// they did. In every fifth seed webhooks have quiet hours, which people edit. In two of seven seeds webhooks choose what
// happens to alerts. In every fourth seed windows last 10 to 45 s. In these and in two of five of the others, tallies count the windows: they fail, have
// too many kinds or take longer than a pass may, and so do counts by conditions. In every third of these seeds rows of one exchange
// differ, so that the tallies of its tenant are inexact.
//
// # What is checked
//
// The checker knows what was written and when, what people did, and what was sent. It has
// its own matcher, and shares nothing with the product that decides.
//
//   - P1: an alert is about an exchange that its rule wants, the only one, and keeps its id
//     whatever a failover takes away. An exchange that became visible within the look-back
//     is alerted, or the stored state makes some process evaluate it later: it is not passed by the
//     cursor, or it is within the look-back or the backfill. This is checked after each
//     step, so nothing that is lost can be hidden by luck. In the end, all are alerted.
//   - P2: each alert has one notification for each webhook of the rule's version, or for each
//     to which the routing policy led that was in force when the alert fired, in the
//     transaction that wrote the alert, with an id that it keeps.
//     Each step of an escalation notifies its webhooks once, when it is due and nobody looks
//     after the alert, or is skipped; what is undone resumes. A snooze ends in one reminder, or
//     in none where the alert is resolved or the snooze was cancelled. A step has one id for each
//     webhook, and no other step has it.
//     What is written within quiet hours is held, unless it is critical, about Tocsin or of a replay.
//     It leaves them once: sent or given up by a person, or, when they are over, sent or ended with
//     all others about its alert, of which one says that the alert fires, if nobody handles it.
//     No step is taken before, and its minutes count from then.
//   - P3: a message is to be delivered, settled, or in a digest, and one of these. Each
//     attempt is on record before its request leaves. All attempts send the same body under
//     the same id. A message is sent again beside or after an attempt that arrived only where
//     a fault disturbed the former sender. What is stored as delivered is never due again,
//     and was accepted. In the end, nothing is left.
//     A message is suppressed when it is written where a silence is in force that is about its
//     alert, and nowhere else. Tocsin gives up only what is too old, an escalation of what was looked after
//     for long, and what happened to an alert of which no message notified the webhook.
//   - P4: the state of an alert is what people made it, or it is resolved by what its rule says: it
//     is as old, or a server showed evidence. Each webhook that was notified of it is notified of that once if the
//     rule says so, and once of each thing that happened to it and that the webhook chose. In the end, none is open that age or evidence resolves.
//   - Window rules: an alert fires only where a server showed as many exchanges as it says,
//     and resolves only where not every server did; at most one is open or held for each rule
//     and group; each firing, reminder and resolution notifies once. In the end they are
//     quiet, fire when their threshold is reached, also while tallies fail or hang, and once if one server answers, and
//     resolve when a short window is over.
//   - Absences: an alert fires only where the members that it names were really absent. The
//     rule expects them, a server showed too few, no more had ended than come later than any
//     did within the last hour, as far as a process could see, and the source was watched all
//     the time. It resolves only where a server showed enough. In the end, each member that
//     stays away has its alert once its window and the longest lateness are over, and the
//     alert resolves when the member is back.
//   - P5: no process asks ClickHouse or a receiver anything within a transaction.
//
// What docs/guarantee.md excludes is excluded here: what becomes visible on the last server
// later than the look-back, counted from the cursor at that moment; what a disabled rule had
// not evaluated; repeats after a failover that lost outcomes.
package simulate
