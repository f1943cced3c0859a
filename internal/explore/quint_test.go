//go:build !race

package explore

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

//nolint:gochecknoglobals // a flag of the test binary
var update = flag.Bool("update", false, "write spec/traces.qnt")

const tracesPath = "../../spec/traces.qnt"

// TestTheSpecificationIsTheSameModel removes one guard at a time, and checks that a property is
// then violated; and that spec/traces.qnt contains what this package does: random walks through the
// models with the states in which they end, and for each guard the shortest trace to a violation
// without it. `make spec` takes the same steps in Quint.
func TestTheSpecificationIsTheSameModel(t *testing.T) {
	var b strings.Builder
	b.WriteString(`// Written by make generate-spec; do not edit.

/// Steps that internal/explore takes, taken here as well: random walks, which have to end in the
/// same states, and for each guard the shortest way to break a promise without it.
module traces {
`)
	whole := &Evaluation{Starts: []int{0, 1}, Until: 4, LookBack: 1, Failovers: 2, Replicas: 2}
	b.WriteString(whole.instance("evaluation"))
	for n := range uint64(8) {
		steps, end := walk(whole, n, 60)
		fmt.Fprintf(&b, "  run evaluationWalk%dTest = %s\n    .expect(and {\n%s    })\n\n", n, run("evaluation", steps), whole.quint("evaluation", &end))
	}
	for _, g := range EvaluationGuards() {
		name := "without" + camel(g.Without)
		trace := g.mustBreak(t)
		fmt.Fprintf(&b, "%s  run %sTest = %s\n    .expect(not(%s::%s))\n\n", g.instance(name), name, run(name, trace.Trace), name, trace.Broken)
	}
	out := &Delivery{Limit: 2, Attempts: 4, Failovers: 2}
	b.WriteString(out.instance("delivery"))
	for n := range uint64(16) {
		steps, end := walk(out, n, 40)
		fmt.Fprintf(&b, "  run deliveryWalk%dTest = %s\n    .expect(and {\n%s    })\n\n", n, run("delivery", steps), out.quint("delivery", &end))
	}
	for _, g := range DeliveryGuards() {
		name := "deliveryWithout" + camel(g.Without)
		trace := g.mustBreak(t)
		fmt.Fprintf(&b, "%s  run %sTest = %s\n    .expect(not(%s::%s))\n\n", g.instance(name), name, run(name, trace.Trace), name, trace.Broken)
	}
	text := strings.TrimRight(b.String(), "\n") + "\n}\n"
	if *update {
		if err := os.WriteFile(tracesPath, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(tracesPath)
	if err != nil {
		t.Fatal(err)
	}
	if string(is) != text {
		t.Error("spec/traces.qnt is of another model: run make generate-spec, then make spec")
	}
}

func (m *Evaluation) mustBreak(t *testing.T) Result { t.Helper(); return mustBreak(t, m) }
func (m *Delivery) mustBreak(t *testing.T) Result   { t.Helper(); return mustBreak(t, m) }

func mustBreak[S comparable](t *testing.T, m Model[S]) Result {
	t.Helper()
	r := Explore(m, 0)
	t.Logf("%+v: %s", m, &r)
	for i, step := range r.Trace {
		t.Logf("%3d %s", i+1, step)
	}
	if r.Broken == "" || r.Broken == "kept" {
		t.Errorf("%+v: no invariant is broken", m)
	}
	return r
}

// walk takes random steps, rarely those that undo others.
func walk[S comparable](m Model[S], seed uint64, most int) (steps []Step, s S) {
	random := rand.New(rand.NewPCG(seed, 0))
	s = m.Initial()
	type edge struct {
		step Step
		to   S
	}
	for len(steps) < most {
		var list []edge
		names := map[string]bool{}
		m.Next(&s, func(step Step, next *S) {
			list = append(list, edge{step, *next})
			names[step.Name] = true
		})
		for _, dull := range []string{"crash", "finish", "failover", "stall", "tick", "expire", "settle", "raise"} {
			if names[dull] && random.IntN(6) > 0 && slices.ContainsFunc(list, func(e edge) bool { return e.step.Name != dull }) {
				list = slices.DeleteFunc(list, func(e edge) bool { return e.step.Name == dull })
			}
		}
		if len(list) == 0 {
			break
		}
		e := list[random.IntN(len(list))]
		steps, s = append(steps, e.step), e.to
	}
	return steps, s
}

func camel(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// run writes steps in Quint's syntax.
func run(alias string, steps []Step) string {
	var b strings.Builder
	b.WriteString(alias + "::init")
	for _, s := range steps {
		b.WriteString("\n    .then(" + alias + "::" + s.String() + ")")
	}
	return b.String()
}

func (m *Evaluation) instance(alias string) string {
	starts := make([]string, len(m.Starts))
	for e, s := range m.Starts {
		starts[e] = fmt.Sprintf("%d -> %d", e, s)
	}
	return fmt.Sprintf("  import evaluation(STARTS = Map(%s), UNTIL = %d, LOOK_BACK = %d, FAILOVERS = %d, WITHOUT = %s) as %s from \"./evaluation\"\n\n",
		strings.Join(starts, ", "), m.Until, m.LookBack, m.Failovers, without(m.Without), alias)
}

func (m *Delivery) instance(alias string) string {
	return fmt.Sprintf("  import delivery(LIMIT = %d, ATTEMPTS = %d, FAILOVERS = %d, WITHOUT = %s) as %s from \"./delivery\"\n\n",
		m.Limit, m.Attempts, m.Failovers, without(m.Without), alias)
}

func without(guard string) string {
	if guard == "" {
		return "Set()"
	}
	return fmt.Sprintf("Set(%q)", guard)
}

func elements(s set) string {
	var list []string
	for n := range 8 {
		if s&bit(n) != 0 {
			list = append(list, fmt.Sprint(n))
		}
	}
	return "Set(" + strings.Join(list, ", ") + ")"
}

// mapOf writes a map from numbers.
func mapOf(from, to int, value func(int) string) string {
	var list []string
	for n := from; n < to; n++ {
		list = append(list, fmt.Sprintf("%d -> %s", n, value(n)))
	}
	return "Map(" + strings.Join(list, ", ") + ")"
}

func (m *Evaluation) quint(alias string, w *EvaluationState) string {
	var b strings.Builder
	is := func(name, value string) { fmt.Fprintf(&b, "      %s::%s == %s,\n", alias, name, value) }
	is("now", fmt.Sprint(w.Now))
	is("shows", fmt.Sprintf(`Map("A" -> %s, "B" -> %s)`, elements(w.Shows[0]), elements(w.Shows[1])))
	is("due", elements(w.Due))
	is("db", m.quintStore(alias, &w.DB))
	standby := "Set()"
	if w.Stalled {
		standby = "Set(" + m.quintStore(alias, &w.Standby) + ")"
	}
	is("standby", standby)
	is("failovers", fmt.Sprint(w.Failovers))
	is("tokens", fmt.Sprint(w.Tokens))
	is("ids", mapOf(0, len(m.Starts), func(e int) string { return fmt.Sprint(w.IDs[e]) }))
	for r, name := range []string{"p", "q"} {
		fmt.Fprintf(&b, "      %s::processes.get(%q) == %s,\n", alias, name, m.quintProcess(alias, &w.Processes[r]))
	}
	fmt.Fprintf(&b, "      %s::promises\n", alias)
	return b.String()
}

func quintMark(alias string, marked bool, start, cursor int8) string {
	if !marked {
		return alias + "::NoMark"
	}
	return fmt.Sprintf("%s::MarkAt({ start: %d, cursor: %d })", alias, start, cursor)
}

func (m *Evaluation) quintStore(alias string, s *store) string {
	var alerts []string
	for e := range m.Starts {
		for id := range 8 {
			if s.Alerts[e]&bit(id) != 0 {
				alerts = append(alerts, fmt.Sprintf("{ about: %d, id: %d }", e, id))
			}
		}
	}
	return fmt.Sprintf("{ cursor: %d, revision: %d, owner: %q, token: %d, mark: %s, alerts: Set(%s), notified: %s }",
		s.Cursor, s.Revision, []string{"", "p", "q"}[s.Owner], s.Token, quintMark(alias, s.Marked, s.MarkFrom, s.MarkCursor), strings.Join(alerts, ", "),
		mapOf(0, len(m.Starts), func(e int) string { return fmt.Sprint(s.Notified[e]) }))
}

func (m *Evaluation) quintProcess(alias string, p *process) string {
	server := func(n int8) string {
		if p.Stage < reading {
			return `""`
		}
		return serverNames(int(n))
	}
	k := &p.Memory
	memory := fmt.Sprintf("{ base: %d, start: %d, judged: %s, backlog: %s, unlooked: %s, looked: %d }", k.Base, k.From,
		mapOf(0, m.Until, func(t int) string { return elements(k.Judged[t]) }),
		mapOf(0, m.Until, func(t int) string {
			name := `""`
			if k.Backlog[t].Seen != 0 {
				name = serverNames(int(k.Backlog[t].Server))
			}
			return fmt.Sprintf("{ seen: %s, server: %s }", elements(k.Backlog[t].Seen), name)
		}), elements(k.Unlooked), k.Looked)
	return fmt.Sprintf("{ stage: %q, knows: %t, moved: %t, cursor: %d, revision: %d, token: %d, mark: %s, memory: %s, watermark: %d, server: %s, fresh: %s, "+
		"stretch: { start: %d, upTo: %d, server: %s, forward: %t, after: %d, conclusive: %t }, page: { holds: %s, end: %d, more: %t } }",
		[]string{"idle", "held", "reading", "judged", "looking"}[p.Stage], p.Knows, p.Moved, p.Cursor, p.Revision, p.Token,
		quintMark(alias, p.Marked, p.MarkFrom, p.MarkCursor), memory, p.Watermark, server(p.Server),
		mapOf(0, m.Until, func(t int) string { return elements(p.Fresh[t]) }),
		p.From, p.To, server(p.By), p.Forward, p.After, p.Conclusive, elements(p.Holds), p.End, p.More)
}

func (m *Delivery) quint(alias string, w *DeliveryState) string {
	var b strings.Builder
	is := func(name, value string) { fmt.Fprintf(&b, "      %s::%s == %s,\n", alias, name, value) }
	is("db", m.quintOutbox(&w.DB))
	standby := "Set()"
	if w.Stalled {
		standby = "Set(" + m.quintOutbox(&w.Standby) + ")"
	}
	is("standby", standby)
	is("failovers", fmt.Sprint(w.Failovers))
	is("tokens", fmt.Sprint(w.Tokens))
	is("ids", fmt.Sprint(w.IDs))
	is("sent", elements(w.Sent))
	is("received", fmt.Sprint(w.Received))
	for r, name := range []string{"p", "q"} {
		d := &w.Dispatchers[r]
		fmt.Fprintf(&b, "      %s::processes.get(%q) == { stage: %q, token: %d, attempt: %d, id: %d, arrived: %t, outcome: %q, expired: %t, taken: %t },\n", alias, name,
			[]string{"idle", "claimed", "checked", "calling", "answered", "storing"}[d.Stage], d.Token, d.Attempt, d.ID, d.Arrived, d.Outcome, d.Expired, d.Taken)
	}
	fmt.Fprintf(&b, "      %s::promises\n", alias)
	return b.String()
}

func (m *Delivery) quintOutbox(o *outbox) string {
	return fmt.Sprintf("{ status: %q, id: %d, attempts: %d, counted: %d, token: %d, begun: %t, lease: %t, record: %s, sequence: %d }",
		[]string{"absent", "waiting", "DELIVERED", "FAILED", "EXHAUSTED"}[o.Status], o.ID, o.Attempts, o.Counted, o.Token, o.Begun, o.Lease,
		mapOf(1, m.Attempts+1, func(n int) string { return fmt.Sprintf("%q", o.Record[n]) }), o.Sequence)
}
