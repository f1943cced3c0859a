package explore

import "strconv"

const maxAttempts = 4

// Delivery is spec/delivery.qnt for given bounds.
type Delivery struct {
	// Limit is how many attempts may fail; Attempts is how many may be begun, at most four.
	Limit, Attempts int
	// Failovers is how often Postgres may fail over.
	Failovers int
	// Without names the guard that is removed; "" means none.
	Without string
}

func (m *Delivery) has(guard string) bool { return m.Without != guard }

// status is the status of the notification.
type status int8

const (
	absent status = iota
	waiting
	delivered
	failed
	exhausted
)

// outcome is the recorded outcome of an attempt.
type outcome int8

const (
	none outcome = iota
	unknown
	arrived
	bad
	refused
	notMade
)

func (o outcome) String() string {
	return [...]string{none: "", unknown: "unknown", arrived: "delivered", bad: "failed", refused: "refused", notMade: "not made"}[o]
}

// outbox is what Postgres stores about the notification.
type outbox struct {
	Status                       status
	ID, Attempts, Counted, Token int8
	Begun, Lease                 bool
	Record                       [maxAttempts + 1]outcome
	Sequence                     int8
}

// call is what a dispatcher does for the notification.
type call int8

const (
	resting call = iota
	claimed
	checked
	calling
	answered
	storing
)

type dispatcher struct {
	Stage              call
	Token, Attempt, ID int8
	Arrived            bool
	Outcome            outcome
	Expired, Taken     bool
}

// DeliveryState is a state of the delivery.
type DeliveryState struct {
	DB          outbox
	Stalled     bool
	Standby     outbox
	Failovers   int8
	Tokens      int8
	Dispatchers [maxReplicas]dispatcher
	IDs         int8
	Sent        set
	Received    bool
}

// Initial returns the state before the alert is raised.
func (m *Delivery) Initial() DeliveryState { return DeliveryState{Failovers: int8(m.Failovers)} }

// withUnknown records an attempt that the present claimant has begun without storing an outcome.
func (m *Delivery) withUnknown(o *outbox) {
	if n := o.Attempts; o.Begun && o.Token != 0 && o.Record[n] == none && m.has("unknown-recorded") {
		o.Record[n] = unknown
	}
}

// holds reports whether a dispatcher holds the lease of the message: its token is the latest.
func holds(o *outbox, d *dispatcher) bool { return o.Status == waiting && o.Token == d.Token }

// Next takes each possible step.
func (m *Delivery) Next(w *DeliveryState, emit func(Step, *DeliveryState)) {
	var next DeliveryState
	if w.DB.Status == absent {
		next = *w
		next.DB.Status, next.DB.ID = waiting, 1
		if !m.has("derived-id") {
			next.DB.ID = w.IDs + 1
		}
		next.IDs = max(w.IDs, next.DB.ID)
		emit(Step{Name: "raise"}, &next)
	}
	for r := range maxReplicas {
		m.work(w, r, emit)
	}
	if w.DB.Status == waiting && w.DB.Token != 0 && w.DB.Lease {
		next = *w
		next.DB.Lease = false
		for r := range next.Dispatchers {
			if d := &next.Dispatchers[r]; d.Stage != resting && d.Token == w.DB.Token {
				d.Expired = true
			}
		}
		emit(Step{Name: "expire"}, &next)
	}
	if w.Failovers > 0 && !w.Stalled {
		next = *w
		next.Stalled, next.Standby = true, w.DB
		emit(Step{Name: "stall"}, &next)
	}
	if w.Stalled {
		next = *w
		next.Stalled, next.DB, next.Standby, next.Sent = false, w.Standby, outbox{}, 0
		next.Failovers--
		for r := range next.Dispatchers {
			next.Dispatchers[r].Taken = w.Dispatchers[r].Stage != resting
		}
		emit(Step{Name: "failover"}, &next)
	}
}

// work takes the steps of a dispatcher.
func (m *Delivery) work(w *DeliveryState, r int, emit func(Step, *DeliveryState)) {
	d := &w.Dispatchers[r]
	step := func(name string, args ...string) Step {
		s := Step{Name: name, Args: [3]string{replicaNames(r)}}
		copy(s.Args[1:], args)
		return s
	}
	var next DeliveryState
	q := &next.Dispatchers[r]
	switch d.Stage {
	case resting:
		if w.DB.Status != waiting || int(w.DB.Attempts) == m.Attempts || w.DB.Token != 0 && w.DB.Lease && m.has("claim-exclusive") {
			break
		}
		for _, known := range []bool{true, false} {
			next = *w
			m.claim(&next, r, known)
			emit(step("claim", strconv.FormatBool(known)), &next)
		}
	case claimed:
		for _, wanted := range []bool{true, false} {
			next = *w
			if q.Stage = checked; !wanted {
				q.Stage, q.Outcome = answered, notMade
			}
			emit(step("check", strconv.FormatBool(wanted)), &next)
		}
	case checked:
		for _, arrives := range []bool{true, false} {
			next = *w
			q.Stage, q.Arrived = calling, arrives
			if !d.Taken {
				next.Sent |= bit(int(d.Attempt))
			}
			next.Received = w.Received || arrives
			emit(step("call", strconv.FormatBool(arrives)), &next)
		}
	case calling:
		for _, o := range []outcome{arrived, bad, refused} {
			if o == arrived && !d.Arrived {
				continue
			}
			next = *w
			q.Stage, q.Outcome = answered, o
			emit(step("answer", strconv.Quote(o.String())), &next)
		}
	case answered, storing:
		for _, known := range []bool{true, false} {
			next = *w
			if m.settle(&next, r, known) {
				emit(step("settle", strconv.FormatBool(known)), &next)
			}
		}
	}
	if (d.Stage == calling || d.Stage == answered) && holds(&w.DB, d) && !w.DB.Lease {
		next = *w
		next.DB.Lease = true
		emit(step("renew"), &next)
	}
	if d.Stage != resting {
		next = *w
		*q = dispatcher{}
		emit(step("crash"), &next)
	}
}

func (m *Delivery) claim(w *DeliveryState, r int, known bool) {
	o := &w.DB
	m.withUnknown(o)
	token := w.Tokens + 1
	if !m.has("fresh-token") {
		token = o.Sequence + 1
	}
	o.Sequence++
	o.Attempts++
	o.Token, o.Begun, o.Lease = token, m.has("claim-begins"), true
	w.Tokens = max(w.Tokens, token)
	if known {
		w.Dispatchers[r] = dispatcher{Stage: claimed, Token: token, Attempt: o.Attempts, ID: o.ID}
	}
}

// settle stores an outcome, and reports whether it can be stored.
func (m *Delivery) settle(w *DeliveryState, r int, known bool) bool {
	o, d := &w.DB, &w.Dispatchers[r]
	switch {
	case holds(o, d) || o.Status == waiting && !m.has("settle-token"):
		if d.Outcome == bad {
			o.Counted++
		}
		switch {
		case d.Outcome == arrived:
			o.Status = delivered
		case d.Outcome == refused:
			o.Status = failed
		case int(o.Counted) >= m.Limit:
			o.Status = exhausted
		case o.Record[d.Attempt] != none:
			return false
		}
		o.Token, o.Begun, o.Lease = 0, false, false
		o.Record[d.Attempt] = d.Outcome
	case o.Status == absent:
	case o.Status == waiting && d.Outcome == arrived && m.has("late-success"):
		m.withUnknown(o)
		o.Status, o.Token, o.Begun, o.Lease = delivered, 0, false, false
		o.Record[d.Attempt] = d.Outcome
	default:
		o.Record[d.Attempt] = d.Outcome
	}
	if d.Stage = storing; known {
		*d = dispatcher{}
	}
	return true
}

// Broken returns the promise that a state breaks.
func (m *Delivery) Broken(w *DeliveryState) string {
	o := &w.DB
	for n := 1; n <= m.Attempts; n++ {
		if w.Sent&bit(n) != 0 && o.Record[n] == none && (o.Status != waiting || !o.Begun || int(o.Attempts) != n) {
			return "recorded"
		}
		if o.Status == waiting && o.Record[n] == arrived {
			return "successEnds"
		}
	}
	if o.Status == delivered && !w.Received {
		return "deliveredIsTrue"
	}
	for r := range w.Dispatchers {
		d := &w.Dispatchers[r]
		if d.Stage >= claimed && d.Stage <= answered && !d.Expired && !d.Taken && !holds(o, d) && o.Status != delivered {
			return "claimStands"
		}
	}
	if w.IDs > 1 {
		return "oneId"
	}
	return ""
}

// Kept reports whether the notification is settled, or the bound of the exploration is reached.
func (m *Delivery) Kept(w *DeliveryState) bool {
	return w.DB.Status > waiting || int(w.DB.Attempts) == m.Attempts
}

// Canonical gives tokens the smallest numbers that keep them distinct.
func (m *Delivery) Canonical(w *DeliveryState) DeliveryState {
	c := *w
	if !m.has("fresh-token") {
		return c
	}
	c.DB.Sequence, c.Standby.Sequence = 0, 0
	if c.Dispatchers[1] != c.Dispatchers[0] && lessDispatcher(&c.Dispatchers[1], &c.Dispatchers[0]) {
		c.Dispatchers[0], c.Dispatchers[1] = c.Dispatchers[1], c.Dispatchers[0]
	}
	var known [4]int8
	n := int8(0)
	name := func(token *int8) {
		if *token == 0 {
			return
		}
		for i, k := range known[:n] {
			if k == *token {
				*token = int8(i) + 1
				return
			}
		}
		known[n] = *token
		n++
		*token = n
	}
	name(&c.DB.Token)
	name(&c.Standby.Token)
	name(&c.Dispatchers[0].Token)
	name(&c.Dispatchers[1].Token)
	c.Tokens = n
	return c
}

// lessDispatcher orders the two dispatchers, which are interchangeable. It ignores tokens, whose
// numbers have no meaning, so that two dispatchers that differ only in tokens keep their order.
func lessDispatcher(a, b *dispatcher) bool {
	key := func(d *dispatcher) int {
		k := int(d.Stage)*8 + int(d.Attempt)
		k = k*8 + int(d.Outcome)
		for _, yes := range []bool{d.Arrived, d.Expired, d.Taken} {
			if k *= 2; yes {
				k++
			}
		}
		return k
	}
	return key(a) < key(b)
}
