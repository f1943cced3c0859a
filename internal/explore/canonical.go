package explore

import (
	"bytes"
	"slices"
	"unsafe"
)

// Canonical drops what nothing reads any more, and renumbers names without a meaning (tokens,
// revisions, servers and replicas), so that states that differ only in them become equal.
func (m *Evaluation) Canonical(w *EvaluationState) EvaluationState {
	c := *w
	for r := range c.Processes {
		m.forget(&c, &c.Processes[r])
	}
	m.renumber(&c)
	if c.Shows[0] < c.Shows[1] {
		c = swapServers(&c)
	}
	best := c
	m.keepSwapped(&best, &c)
	if c.Shows[0] == c.Shows[1] {
		c = swapServers(&c)
		keepLess(&best, &c)
		m.keepSwapped(&best, &c)
	}
	return best
}

func (m *Evaluation) keepSwapped(best, w *EvaluationState) {
	if m.Replicas > 1 {
		other := m.swapReplicas(w)
		keepLess(best, &other)
	}
}

func keepLess(best, other *EvaluationState) {
	if bytes.Compare(worldBytes(other), worldBytes(best)) < 0 {
		*best = *other
	}
}

// worldBytes returns the bytes of a world. All its fields are one byte long, so there is no padding
// between them.
func worldBytes(w *EvaluationState) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(w)), unsafe.Sizeof(*w))
}

// forget drops what nothing reads any more of a process.
func (m *Evaluation) forget(w *EvaluationState, p *process) {
	if m.fenced() && !at(p, &w.DB) && (!w.Stalled || !at(p, &w.Standby)) {
		// Nothing that it does has an effect, and its memory will be dropped.
		*p = process{}
		return
	}
	k := &p.Memory
	seen := p.Watermark
	if p.Stage == idle || p.Stage == held {
		seen = w.Now
	}
	if p.Knows {
		k.Looked = max(k.Looked, seen-lookEvery)
	} else if p.Stage == idle {
		*p = process{}
	}
	if p.Stage == looking || p.Stage >= reading && !p.Forward {
		p.Fresh, p.Server = [maxTimes]set{}, 0
		p.Moved = p.Moved && m.lookIsDue(p)
	}
	if p.Stage == looking {
		p.From, p.To, p.By, p.After, p.Forward, p.Conclusive = 0, 0, 0, 0, false, false
	}
}

// at reports whether a process is at a checkpoint.
func at(p *process, s *store) bool { return p.Token == s.Token && p.Revision == s.Revision }

// renumber gives tokens and revisions the smallest numbers that behave in the same way: only their
// equality matters.
func (m *Evaluation) renumber(w *EvaluationState) {
	var tokens, revisions [4]*int8
	n := 0
	add := func(token, revision *int8) {
		tokens[n], revisions[n] = token, revision
		n++
	}
	add(&w.DB.Token, &w.DB.Revision)
	if w.Stalled {
		add(&w.Standby.Token, &w.Standby.Revision)
	}
	for r := range w.Processes {
		if p := &w.Processes[r]; p.Stage != idle || p.Knows {
			add(&p.Token, &p.Revision)
		}
	}
	var known [4]int8
	labels := 0
	lowest := *revisions[0]
	for i := range n {
		lowest = min(lowest, *revisions[i])
		label := slices.Index(known[:labels], *tokens[i])
		if label < 0 {
			label = labels
			known[label] = *tokens[i]
			labels++
		}
		*tokens[i] = int8(label) + 1
	}
	w.Tokens = int8(labels)
	for i := range n {
		if *revisions[i] -= lowest; m.fenced() {
			// Of the compared values, only the next revision is new, and it is greater than all
			// others.
			*revisions[i] = min(*revisions[i], 1)
		}
	}
}

// fenced reports whether a process that is at no stored checkpoint has no effect.
func (m *Evaluation) fenced() bool { return m.has("token") && m.has("revision") && m.has("memory") }

func (m *Evaluation) swapReplicas(w *EvaluationState) EvaluationState {
	c := *w
	c.Processes[0], c.Processes[1] = w.Processes[1], w.Processes[0]
	for _, owner := range []*int8{&c.DB.Owner, &c.Standby.Owner} {
		if *owner != 0 {
			*owner = 3 - *owner
		}
	}
	m.renumber(&c)
	return c
}

func swapServers(w *EvaluationState) EvaluationState {
	c := *w
	c.Shows[0], c.Shows[1] = w.Shows[1], w.Shows[0]
	for r := range c.Processes {
		p := &c.Processes[r]
		if p.Stage >= reading {
			p.Server, p.By = 1-p.Server, 1-p.By
		}
		if p.Stage == looking || p.Stage >= reading && !p.Forward {
			p.Server = 0
		}
		if p.Stage == looking {
			p.By = 0
		}
		for t := range p.Memory.Backlog {
			if b := &p.Memory.Backlog[t]; b.Seen != 0 {
				b.Server = 1 - b.Server
			}
		}
	}
	return c
}
