package explore

// The constants of the specification that all instances share.
const (
	recent    = 1
	lookEvery = 1
	pause     = 1

	maxTimes     = 6
	maxExchanges = 3
	maxReplicas  = 2
	servers      = 2
)

// Evaluation is spec/evaluation.qnt for given bounds.
type Evaluation struct {
	// Starts are the start times of the exchanges, at most three, in ascending order.
	Starts []int
	// Until is the last instant of the clock, at most six.
	Until int
	// LookBack is the look-back of the rule.
	LookBack int
	// Failovers is how often Postgres may fail over.
	Failovers int
	// Replicas is the number of processes, one or two.
	Replicas int
	// Without names the guard that is removed; "" means none.
	Without string
}

// set is a set of small numbers.
type set = uint8

func bit(n int) set { return 1 << n }

// The positions of evaluation.qnt: multiples of the width are instants.
func (m *Evaluation) width() int         { return 1 + len(m.Starts) }
func (m *Evaluation) position(e int) int { return m.Starts[e]*m.width() + 1 + e }
func (m *Evaluation) timeOf(at int) int  { return at / m.width() }

func (m *Evaluation) has(guard string) bool { return m.Without != guard }

func (m *Evaluation) reach() int {
	if m.has("wait") {
		return m.LookBack + lookEvery - 1 + pause
	}
	return m.LookBack
}

// store is what Postgres stores.
type store struct {
	Cursor, Revision, Token int8
	Owner                   int8 // replica + 1; 0 means none
	Marked                  bool
	MarkFrom, MarkCursor    int8
	// Alerts holds, for each exchange, the set of ids of its alerts.
	Alerts   [maxExchanges]set
	Notified [maxExchanges]int8
}

// bucket is a bucket of the backlog; an empty set means that there is none.
type bucket struct {
	Seen   set
	Server int8
}

type memory struct {
	Base, From int8
	Judged     [maxTimes]set
	Backlog    [maxTimes]bucket
	Unlooked   set
	Looked     int8
}

// stage is what a process does next.
type stage int8

const (
	idle stage = iota
	held
	reading
	judged
	looking
)

type process struct {
	Stage                   stage
	Knows, Moved            bool
	Cursor, Revision, Token int8
	Marked                  bool
	MarkFrom, MarkCursor    int8
	Memory                  memory
	Watermark, Server       int8
	Fresh                   [maxTimes]set
	From, To, By            int8
	Forward                 bool
	After                   int8
	Conclusive              bool
	Holds                   set
	End                     int8
	More                    bool
}

// EvaluationState is a state of the evaluation.
type EvaluationState struct {
	Now       int8
	Shows     [servers]set
	Due       set
	DB        store
	Stalled   bool
	Standby   store
	Failovers int8
	Tokens    int8
	Processes [maxReplicas]process
	// IDs is how many ids the alerts of each exchange have had.
	IDs [maxExchanges]int8
}

// Initial returns the state in which the rule is armed.
func (m *Evaluation) Initial() EvaluationState { return EvaluationState{Failovers: int8(m.Failovers)} }

func (m *Evaluation) rowsAt(rows set, t int) set {
	var at set
	for e, start := range m.Starts {
		if start == t {
			at |= rows & bit(e)
		}
	}
	return at
}

// span returns the instants from one to before another.
func (m *Evaluation) span(from, to int) set {
	var s set
	for t := max(0, from); t < min(to, m.Until); t++ {
		s |= bit(t)
	}
	return s
}

func (m *Evaluation) waiting(k *memory) set {
	var s set
	for t := range m.Until {
		if k.Backlog[t].Seen != 0 {
			s |= bit(t)
		}
	}
	return s
}

func least(s set, otherwise int) int {
	for t := range 8 {
		if s&bit(t) != 0 {
			return min(t, otherwise)
		}
	}
	return otherwise
}

func size(s set) (n int) {
	for ; s != 0; s &= s - 1 {
		n++
	}
	return n
}

// compare is Backlog.Compare.
func (m *Evaluation) compare(k *memory, buckets set, server int, rows set, waits bool) {
	for t := range m.Until {
		b := &k.Backlog[t]
		now := m.rowsAt(rows, t)
		if buckets&bit(t) == 0 || waits && b.Seen != 0 && int(b.Server) != server && size(b.Seen) > size(now) {
			continue
		}
		if now == k.Judged[t] || now == 0 || !m.has("look-back") {
			*b = bucket{}
		} else {
			*b = bucket{now, int8(server)}
		}
		if now == 0 || !m.has("look-back") {
			k.Judged[t] = now
		}
	}
	k.Unlooked &^= buckets
}

// begin is pass.begin.
func (m *Evaluation) begin(p *process, watermark int) memory {
	at, recentFrom := m.timeOf(int(p.Cursor)), max(0, watermark-recent)
	base := min(at, watermark)
	k := p.Memory
	switch {
	case !p.Knows:
		from := base - m.reach()
		if p.Marked {
			base, from = min(base, int(p.MarkCursor)), min(from, int(p.MarkFrom))
		}
		from = max(0, from)
		k = memory{Base: int8(base), From: int8(from), Unlooked: m.span(from, recentFrom), Looked: -lookEvery}
	case m.waiting(&k) == 0 && k.Unlooked == 0:
		k.Base, k.From = int8(base), int8(max(0, base-m.reach()))
		for t := range max(0, base-m.reach()) {
			k.Judged[t] = 0
		}
	}
	if watermark-at > pause && m.has("pause") {
		k.Unlooked |= m.span(min(int(k.From), at), recentFrom)
	}
	return k
}

func (m *Evaluation) judgedTo(p *process) int {
	if p.More {
		return m.timeOf(int(p.End))
	}
	return int(p.To)
}

func (m *Evaluation) judgedBy(p *process) set {
	if !p.Conclusive {
		return 0
	}
	return m.span(int(p.From), m.judgedTo(p))
}

// passing is pass.stepTo.
func (m *Evaluation) passing(p *process) memory {
	k := p.Memory
	if !p.Forward {
		return k
	}
	to := m.timeOf(int(p.End))
	if int(p.End)%m.width() != 0 {
		to++
	}
	done := m.judgedBy(p)
	for t := range min(to, m.Until) {
		if p.Fresh[t] != 0 && done&bit(t) == 0 {
			k.Backlog[t] = bucket{p.Fresh[t], p.Server}
		}
	}
	return k
}

func (m *Evaluation) older(p *process) set {
	return m.span(int(p.Memory.From), int(p.Watermark)-recent)
}

func (m *Evaluation) lookIsDue(p *process) bool {
	older := m.older(p)
	return older != 0 && (p.Watermark-p.Memory.Looked >= lookEvery || p.Memory.Unlooked&older != 0)
}

func (m *Evaluation) mayEnd(p *process) bool {
	return !p.Moved || !m.lookIsDue(p) || !m.has("looks")
}

func ended(p *process) process {
	return process{Knows: p.Knows, Revision: p.Revision, Token: p.Token, Memory: p.Memory}
}

// Broken returns the promise that a state breaks.
func (m *Evaluation) Broken(w *EvaluationState) string {
	base := m.timeOf(int(w.DB.Cursor))
	if w.DB.Marked {
		base = min(base, int(w.DB.MarkCursor))
	}
	var alerted set
	for e, start := range m.Starts {
		n := size(w.DB.Alerts[e])
		switch {
		case n > 1:
			return "oneAlert"
		case w.IDs[e] > 1:
			return "sameId"
		case int(w.DB.Notified[e]) != n:
			return "notifiedOnce"
		case n == 1:
			alerted |= bit(e)
		case w.Due&bit(e) != 0 && m.position(e) <= int(w.DB.Cursor) && start < base-m.reach():
			return "covered"
		}
	}
	for r := range w.Processes {
		p := &w.Processes[r]
		if !p.Knows || p.Token != w.DB.Token || p.Revision != w.DB.Revision {
			continue
		}
		for t := range m.Until {
			if p.Memory.Judged[t]&^alerted != 0 {
				return "judgedIsAlerted"
			}
		}
	}
	return ""
}

// Kept reports whether each exchange that must have an alert has one.
func (m *Evaluation) Kept(w *EvaluationState) bool {
	for e := range m.Starts {
		if w.Due&bit(e) != 0 && w.DB.Alerts[e] == 0 {
			return false
		}
	}
	return true
}
