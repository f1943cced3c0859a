package explore

import "strconv"

// The numbers of the specification that every instance shares.
const (
	recent    = 1
	lookEvery = 2
	pause     = 1

	maxTimes     = 6
	maxExchanges = 3
	maxReplicas  = 2
	servers      = 2
)

// Evaluation is spec/evaluation.qnt for given bounds.
type Evaluation struct {
	// Starts are the start times of the exchanges, at most three, ascending.
	Starts []int
	// Until is the last instant of the clock, at most six.
	Until int
	// LookBack is that of the rule.
	LookBack int
	// Failovers is how often Postgres may fail over.
	Failovers int
	// Replicas is how many processes there are, one or two.
	Replicas int
	// Without names the guard that is taken away, "" for none.
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
		return m.LookBack + 1
	}
	return m.LookBack
}

// store is what Postgres holds.
type store struct {
	Cursor, Revision, Token int8
	Owner                   int8 // replica + 1, 0 for none
	Marked                  bool
	MarkFrom, MarkCursor    int8
	// Alerts holds for each exchange the set of ids of its alerts.
	Alerts   [maxExchanges]set
	Notified [maxExchanges]int8
}

// bucket is a bucket of the backlog; with an empty set it is none.
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

// World is a state of the evaluation.
type World struct {
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

// Initial returns the world when the rule is armed.
func (m *Evaluation) Initial() World { return World{Failovers: int8(m.Failovers)} }

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

// compare is memory.compare.
func (m *Evaluation) compare(k *memory, buckets set, server int, rows set, patient bool) {
	for t := range m.Until {
		b := &k.Backlog[t]
		now := m.rowsAt(rows, t)
		if buckets&bit(t) == 0 || patient && b.Seen != 0 && int(b.Server) != server && size(b.Seen) > size(now) {
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
	return !(p.Moved && m.lookIsDue(p)) || !m.has("looks")
}

func ended(p *process) process {
	return process{Knows: p.Knows, Revision: p.Revision, Token: p.Token, Memory: p.Memory}
}

// Next takes each step that is possible.
func (m *Evaluation) Next(w *World, emit func(Step, *World)) {
	var next World
	if int(w.Now) < m.Until {
		next = *w
		next.Now++
		emit(Step{Name: "tick"}, &next)
	}
	for e := range m.Starts {
		for s := range servers {
			if m.appears(w, &next, e, s) {
				emit(Step{"appear", [3]string{strconv.Itoa(e), serverNames(s)}}, &next)
			}
		}
	}
	for r := range m.Replicas {
		m.work(w, r, emit)
	}
	if w.Failovers > 0 && !w.Stalled {
		next = *w
		next.Stalled, next.Standby = true, w.DB
		emit(Step{Name: "stall"}, &next)
	}
	if w.Stalled {
		next = *w
		next.Stalled, next.DB, next.Standby = false, w.Standby, store{}
		next.Failovers--
		emit(Step{Name: "failover"}, &next)
	}
}

func replicaNames(r int) string { return [maxReplicas]string{`"p"`, `"q"`}[r] }
func serverNames(s int) string  { return [servers]string{`"A"`, `"B"`}[s] }

func (m *Evaluation) appears(w, next *World, e, s int) bool {
	if w.Shows[s]&bit(e) != 0 || int(w.Now) < m.Starts[e] || m.timeOf(int(w.DB.Cursor)) > m.Starts[e]+m.LookBack {
		return false
	}
	*next = *w
	next.Shows[s] |= bit(e)
	if next.Shows[0]&next.Shows[1]&bit(e) != 0 {
		next.Due |= bit(e)
	}
	return true
}

// work takes the steps of a replica.
func (m *Evaluation) work(w *World, r int, emit func(Step, *World)) {
	p := &w.Processes[r]
	step := func(name string, args ...string) Step {
		s := Step{Name: name, Args: [3]string{replicaNames(r)}}
		copy(s.Args[1:], args)
		return s
	}
	var next World
	switch p.Stage {
	case idle:
		next = *w
		m.hold(&next, r)
		emit(step("hold"), &next)
	case held:
		for s := range servers {
			for _, patient := range []bool{false, true} {
				next = *w
				m.observe(&next, r, s, patient)
				emit(step("observe", serverNames(s), strconv.FormatBool(patient)), &next)
			}
		}
	case reading:
		for s := range servers {
			for _, cut := range []bool{false, true} {
				next = *w
				if m.scan(&next, r, s, cut) {
					emit(step("scan", serverNames(s), strconv.FormatBool(cut)), &next)
				}
			}
		}
	case judged:
		for _, outcome := range []string{"made", "unanswered", "refused", "half"} {
			next = *w
			if m.commit(&next, r, outcome) {
				emit(step("commit", strconv.Quote(outcome)), &next)
			}
		}
	case looking:
		if m.lookIsDue(p) {
			for s := range servers {
				for _, patient := range []bool{false, true} {
					next = *w
					q := &next.Processes[r]
					m.compare(&q.Memory, m.older(q), s, w.Shows[s], patient)
					q.Memory.Looked = q.Watermark
					emit(step("look", serverNames(s), strconv.FormatBool(patient)), &next)
				}
			}
			break
		}
		waiting := m.waiting(&p.Memory)
		for t := range max(0, int(p.Watermark)-recent) {
			if waiting&bit(t) == 0 {
				continue
			}
			next = *w
			q := &next.Processes[r]
			q.Stage, q.From, q.To, q.By, q.Forward = reading, int8(t), int8(t+1), q.Memory.Backlog[t].Server, false
			q.After, q.Conclusive = int8(t*m.width()), true
			emit(step("readOlder", strconv.Itoa(t)), &next)
		}
	}
	if p.Stage != idle && m.mayEnd(p) {
		next = *w
		next.Processes[r] = ended(p)
		emit(step("finish"), &next)
	}
	if *p != (process{}) {
		next = *w
		next.Processes[r] = process{}
		emit(step("crash"), &next)
	}
}

func (m *Evaluation) hold(w *World, r int) {
	p, db := &w.Processes[r], &w.DB
	if int(db.Owner) != r+1 {
		w.Tokens++
		db.Owner, db.Token = int8(r+1), w.Tokens
	}
	remembers := p.Knows && (!m.has("memory") || p.Token == db.Token && p.Revision == db.Revision)
	q := process{
		Stage: held, Cursor: db.Cursor, Revision: db.Revision, Token: db.Token,
		Marked: db.Marked, MarkFrom: db.MarkFrom, MarkCursor: db.MarkCursor,
	}
	if remembers {
		q.Knows, q.Memory = true, p.Memory
	}
	*p = q
}

func (m *Evaluation) observe(w *World, r, server int, patient bool) {
	p := &w.Processes[r]
	now, at := int(w.Now), int(p.Cursor)
	recentFrom, split := max(0, now-recent), m.timeOf(at)
	if at%m.width() != 0 {
		split++
	}
	forward := min(max(split, recentFrom), max(now, recentFrom))
	k := m.begin(p, now)
	m.compare(&k, m.span(recentFrom, forward), server, w.Shows[server], patient)
	from := least(m.waiting(&k)&m.span(recentFrom, forward), forward)
	after := from * m.width()
	if from == forward && at%m.width() != 0 {
		after = at
	}
	for t := forward; t < now; t++ {
		p.Fresh[t] = m.rowsAt(w.Shows[server], t)
	}
	p.Stage, p.Knows, p.Memory, p.Watermark, p.Server = reading, true, k, w.Now, int8(server)
	p.Marked, p.MarkFrom, p.MarkCursor = false, 0, 0
	p.From, p.To, p.By, p.Forward, p.After, p.Conclusive = int8(from), w.Now, int8(server), true, int8(after), true
}

func (m *Evaluation) scan(w *World, r, server int, cut bool) bool {
	p := &w.Processes[r]
	var rows set
	for e := range m.Starts {
		if m.position(e) > int(p.After) && m.Starts[e] < int(p.To) {
			rows |= w.Shows[server] & bit(e)
		}
	}
	if cut && size(rows) < 2 {
		return false
	}
	p.Stage = judged
	p.Conclusive = p.Conclusive && (server == int(p.By) || !m.has("same-server"))
	p.Holds, p.End, p.More = rows, int8(int(p.To)*m.width()), false
	if cut {
		first := least(rows, maxExchanges) // exchanges are numbered in the order of positions
		p.Holds, p.End, p.More = bit(first), int8(m.position(first)), true
		if !m.has("position") {
			p.End, p.More = int8((m.Starts[first]+1)*m.width()), m.Starts[first]+1 < int(p.To)
		}
	}
	return true
}

func (m *Evaluation) commit(w *World, r int, outcome string) bool {
	p, db := &w.Processes[r], &w.DB
	stands := (p.Token == db.Token || !m.has("token")) && (p.Revision == db.Revision || !m.has("revision"))
	refused := outcome == "refused"
	if !refused && !stands || refused && stands && !m.mayEnd(p) || outcome == "half" && m.has("atomic") {
		return false
	}
	k := m.passing(p)
	if refused {
		p.Memory = k
		*p = ended(p)
		return true
	}
	cursor := p.Cursor
	if p.Forward && p.End > cursor {
		cursor = p.End
	}
	done := m.judgedBy(p)
	db.Cursor, db.Revision = cursor, db.Revision+1
	m.mark(db, &k, done, p.By)
	for e, start := range m.Starts {
		if p.Holds&bit(e) == 0 || start < int(k.Base)-m.reach() {
			continue
		}
		fresh := db.Alerts[e] == 0 || !m.has("unique")
		if fresh {
			id := w.IDs[e] + 1
			if m.has("derived-id") && db.Alerts[e] == 0 {
				id = 1
			}
			db.Alerts[e] |= bit(int(id))
			w.IDs[e] = max(w.IDs[e], id)
		}
		if (fresh || !m.has("inserted-only")) && outcome != "half" {
			db.Notified[e]++
		}
	}
	if outcome != "made" {
		p.Memory = k
		*p = ended(p)
		return true
	}
	p.Moved = p.Moved || cursor != p.Cursor
	m.conclude(p, &k, done)
	p.Cursor, p.Revision, p.Memory, p.After = cursor, db.Revision, k, p.End
	if p.Stage = looking; p.More {
		p.Stage = reading
	}
	p.Holds, p.End, p.More = 0, 0, false
	return true
}

// mark is memory.mark.
func (m *Evaluation) mark(db *store, k *memory, done set, server int8) {
	left := k.Unlooked
	for t := range m.Until {
		if b := k.Backlog[t]; b.Seen != 0 && (done&bit(t) == 0 || b.Server != server) {
			left |= bit(t)
		}
	}
	db.Marked, db.MarkFrom, db.MarkCursor = false, 0, 0
	if left != 0 && m.has("mark") {
		db.Marked, db.MarkFrom, db.MarkCursor = true, int8(max(least(left, m.Until), int(k.From))), k.Base
	}
}

// conclude is memory.concluded and pass.concluded.
func (m *Evaluation) conclude(p *process, k *memory, done set) {
	for t := range m.Until {
		if done&bit(t) == 0 {
			continue
		}
		if b := &k.Backlog[t]; b.Seen != 0 && b.Server == p.By {
			k.Judged[t] = b.Seen
			*b = bucket{}
		}
		if p.Fresh[t] != 0 {
			k.Judged[t] = p.Fresh[t]
			p.Fresh[t] = 0
		}
	}
}

// Broken names the promise that a world breaks.
func (m *Evaluation) Broken(w *World) string {
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

// Kept reports whether each exchange that must be alerted is.
func (m *Evaluation) Kept(w *World) bool {
	for e := range m.Starts {
		if w.Due&bit(e) != 0 && w.DB.Alerts[e] == 0 {
			return false
		}
	}
	return true
}
