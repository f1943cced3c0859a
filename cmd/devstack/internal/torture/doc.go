//go:build unix

// Package torture breaks everything around Tocsin while exchanges arrive, and compares what came out with what had to.
//
// A run is made from one seed: the exchanges and when each becomes visible, the rules and their edits, the faults and
// when each strikes. Three replicas run as processes of the real binary on a real Postgres and a real ClickHouse of the
// run's own, each behind proxies; webhooks lead to a receiver that misbehaves. The seed fixes the data and the schedule;
// how threads and processes interleave, no seed can fix.
//
//	plan ──▶ writer ──▶ ClickHouse ◀──proxy── replicas ──proxy──▶ receiver
//	   │                                        ▲  │
//	   ├──▶ operator ───────── API ─────────────┘  └──proxy──▶ Postgres ◀── checker
//	   └──▶ faults: kill, stop, restart, cut, stall, slow
//
// The writer notes when each exchange became visible, the operator when each rule was armed, and the receiver every
// request. The checker knows these notes and the tables, by plain SQL. It shares no code with the product: not its
// matcher, not its cursor, not its types. It finds an alert's exchange by the correlation id, which the run numbers, so
// that an error in the product's keys cannot hide one.
//
// How many alerts an exchange has:
//
//   - It must have one alert of a rule when it matches the condition that was in force when it ended, and became visible within
//     the look-back.
//   - It may have one when it ended while a call that armed, edited or disabled the rule was under way, or became visible
//     later than the look-back.
//   - Disabling forgets. So before a rule is disabled the operator waits until it has alerted all that was visible when
//     he began to wait; this much must be there at the end, the rest may.
//   - In all other cases it must have none.
//
// There is a window rule of each mode: a count by environment, a share by an attribute, a percentile by application,
// an absence by route. Each group has one alert while exchanges come, an absence when nothing comes. What an alert says that
// it counted must be what a server could show of what was written, for some instant at which the window can have ended: not
// fewer than were visible by then, and not more than were visible when the alert fired.
//
// Some webhooks have digests. A notification is sent by one message: by itself, or by the digest that names its alert, of
// which the receiver must have read exactly the alerts of those that it gathered.
//
// In the form [Receivers] five services are notified beside the generic webhooks, and a person acknowledges and resolves
// alerts. Each service must know of each alert by the key that it goes by, and of no other; and it must have been notified of what
// happened to the alert in the order in which it happened. Jira must have one issue of an alert, which is done when the
// alert is resolved: an answer that is lost must not make another one. Two there may be when a sender was stopped between
// its search and the issue, and another one took over; they are counted.
//
// In the plain form and that with services, one webhook has quiet hours, which a person edits. What is not critical and
// written within them must not arrive before they end, and must arrive then.
//
// In the plain form, a routing policy decides whom the alerts of one rule notify: each webhook that a route leads to must have
// one message, however many routes lead to it, and no other webhook may have one. One route leads to the webhook with quiet hours.
// A person silences this rule and another one for a while: what is written meanwhile must be suppressed and never arrive,
// and nothing else may be. When the silence ends, each webhook must get one digest, of just what was suppressed for it.
//
// In the plain form, one rule resolves its alerts by evidence and another one by age. What is resolved must have a reason,
// and what has one must be resolved in the end; each webhook that was notified of an alert is notified of its end where the rule says
// so. A person makes three rules and replays each over what came before, with messages, with digests and without: each
// exchange in the range that was visible when the replay began must be alerted, whenever the rule was armed. In a run of 45 s
// or more, one route escalates: an alert that nobody acknowledges within a minute has one more message, and no other has.
//
// What a message may do: arrive more than once when the receiver did not accept it, when its answer was lost, or when the
// sender was killed, stopped or cut off before it had stored the outcome (the named window, which is counted). A repeat
// outside is a violation: one claimed after an earlier attempt was stored as delivered, or while the outcome of an attempt
// was not stored whose replica nobody disturbed. A trigger records with each claim whether that outcome was stored: the
// instants of attempts do not tell on a busy machine, where a claim may begin before the outcome is committed that it reads.
package torture
