package explore

import "strconv"

// Next takes each possible step.
func (m *Evaluation) Next(w *EvaluationState, emit func(Step, *EvaluationState)) {
	var next EvaluationState
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

func (m *Evaluation) appears(w, next *EvaluationState, e, s int) bool {
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
func (m *Evaluation) work(w *EvaluationState, r int, emit func(Step, *EvaluationState)) {
	p := &w.Processes[r]
	step := func(name string, args ...string) Step {
		s := Step{Name: name, Args: [3]string{replicaNames(r)}}
		copy(s.Args[1:], args)
		return s
	}
	var next EvaluationState
	switch p.Stage {
	case idle:
		next = *w
		m.hold(&next, r)
		emit(step("hold"), &next)
	case held:
		for s := range servers {
			for _, waits := range []bool{false, true} {
				next = *w
				m.observe(&next, r, s, waits)
				emit(step("observe", serverNames(s), strconv.FormatBool(waits)), &next)
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
				for _, waits := range []bool{false, true} {
					next = *w
					q := &next.Processes[r]
					m.compare(&q.Memory, m.older(q), s, w.Shows[s], waits)
					q.Memory.Looked = q.Watermark
					emit(step("look", serverNames(s), strconv.FormatBool(waits)), &next)
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

func (m *Evaluation) hold(w *EvaluationState, r int) {
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

func (m *Evaluation) observe(w *EvaluationState, r, server int, waits bool) {
	p := &w.Processes[r]
	now, at := int(w.Now), int(p.Cursor)
	recentFrom, split := max(0, now-recent), m.timeOf(at)
	if at%m.width() != 0 {
		split++
	}
	forward := min(max(split, recentFrom), max(now, recentFrom))
	k := m.begin(p, now)
	m.compare(&k, m.span(recentFrom, forward), server, w.Shows[server], waits)
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

func (m *Evaluation) scan(w *EvaluationState, r, server int, cut bool) bool {
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

func (m *Evaluation) commit(w *EvaluationState, r int, outcome string) bool {
	p, db := &w.Processes[r], &w.DB
	valid := (p.Token == db.Token || !m.has("token")) && (p.Revision == db.Revision || !m.has("revision"))
	refused := outcome == "refused"
	if !refused && !valid || refused && valid && !m.mayEnd(p) || outcome == "half" && m.has("atomic") {
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

// mark is Backlog.Mark.
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

// conclude is Backlog.Conclude.
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
