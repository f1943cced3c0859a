package backlog

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tocsin/cursor"
	"tocsin/evaluator/source"
)

// row is an exchange that begins at an instant and becomes visible on each of two servers.
type row struct {
	startNS   int64
	visibleNS [2]int64
	judged    bool
}

// table is what two servers show, and a partition that reads it in passes.
type table struct {
	*testing.T
	*rand.Rand
	seed  uint64
	rows  []*row
	nowNS int64
	// cursorNS and mark are the stored state; b is what the process remembers.
	cursorNS int64
	mark     *Mark
	b        *Backlog
	// server is the one that answered the observation of the last pass.
	server int
	// blind says that looks at the older look-back fail.
	blind bool
}

// The look-back of the rules covers the latest row, and that of the partition additionally the time
// for which a row may wait for a look.
const lookBackNS = 20 * minuteNS

func reachNS() int64 { return lookBackNS + WaitNS(lookBackNS) }

func (t *table) prints(server int, r cursor.Range, splitNS int64) (out []source.Fingerprint) {
	at := map[int64]int{}
	for i, row := range t.rows {
		if row.startNS < r.FromNS || row.startNS >= r.ToNS || row.visibleNS[server] > t.nowNS {
			continue
		}
		width := t.b.widthNS(row.startNS)
		bucket := floor(row.startNS, width)
		if splitNS > bucket && row.startNS >= splitNS {
			bucket = splitNS
		}
		if _, known := at[bucket]; !known {
			at[bucket] = len(out)
			out = append(out, source.Fingerprint{FromNS: bucket})
		}
		out[at[bucket]].Count++
		out[at[bucket]].Checksum += uint64(i)*2654435761 + 1
	}
	return out
}

// count returns how many rows of a range a server shows.
func (t *table) count(server int, r cursor.Range) (n uint64) {
	for _, row := range t.rows {
		if row.startNS >= r.FromNS && row.startNS < r.ToNS && row.visibleNS[server] <= t.nowNS {
			n++
		}
	}
	return n
}

// read evaluates what a server shows of a range, up to its end or to an instant within it.
func (t *table) read(s Stretch, calm bool) {
	server, end := t.IntN(2), s.ToNS
	if calm {
		server = int(s.Server[0] - 'a')
	} else if t.IntN(4) == 0 && s.FromNS < s.ToNS {
		end = s.FromNS + t.Int64N(s.ToNS-s.FromNS)
	}
	for _, row := range t.rows {
		if row.startNS >= s.FromNS && row.startNS < end && row.visibleNS[server] <= t.nowNS {
			row.judged = true
		}
	}
	judged := t.b.Read(s, end, name(server) == s.Server, t.nowNS)
	// The commit stores cursor and mark, or is lost with the process.
	if s.Forward {
		t.cursorNS = max(t.cursorNS, end)
	}
	t.mark = t.b.Mark(judged, s.Server)
	t.b.Conclude(judged, s.Server)
}

func name(server int) string { return []string{"a", "b"}[server] }

// pass makes a pass; it and the process may end after any of its ranges.
func (t *table) pass(calm bool) {
	from := RecentFromNS(t.nowNS)
	if t.b == nil {
		t.b = New(t.cursorNS, reachNS(), t.mark)
		t.b.LookAt(cursor.Range{FromNS: t.b.FromNS(), ToNS: from})
	} else {
		t.b.LookBack(t.cursorNS, reachNS())
	}
	if t.nowNS-t.cursorNS > 5*secondNS {
		t.b.LookAt(cursor.Range{FromNS: min(t.b.FromNS(), t.cursorNS), ToNS: from})
	}
	t.b.Advance(t.nowNS)
	server := t.IntN(2)
	t.server = server
	forward := min(max(t.cursorNS, from), max(t.nowNS, from))
	t.b.Observe(name(server), t.prints(server, cursor.Range{FromNS: from, ToNS: t.nowNS}, forward), from, forward, t.nowNS)
	seen := t.shown(server)
	defer func() { t.holds(seen) }()
	defer func() {
		if t.b != nil {
			t.b.Skip(from, t.nowNS)
		}
	}()
	for _, s := range t.b.Recent(name(server), from, forward, t.nowNS) {
		if t.read(s, calm); !calm && t.IntN(20) == 0 {
			t.b = nil
			return
		}
	}
	for _, l := range t.b.Looks(from, t.nowNS) {
		if t.blind || !calm && t.IntN(3) == 0 {
			break
		}
		if !calm && t.IntN(6) == 0 {
			t.b.LookFailed(l, t.nowNS)
			continue
		}
		server := t.IntN(2)
		rows := t.count(server, l.Range)
		if t.b.Compares(l, name(server), rows, t.nowNS) {
			t.b.Compare(l, name(server), t.prints(server, l.Range, 0), t.nowNS)
			if calm || t.IntN(2) == 0 {
				t.b.Quick(l)
			}
		}
		t.b.Looked(l, name(server), rows, t.nowNS)
	}
	for _, s := range t.b.Older(from) {
		if t.read(s, calm); !calm && t.IntN(20) == 0 {
			t.b = nil
			return
		}
	}
}

// shown returns what a server shows of the last two minutes and has not been evaluated.
func (t *table) shown(server int) (list []*row) {
	for _, row := range t.rows {
		if row.startNS >= RecentFromNS(t.nowNS) && row.startNS < t.nowNS && row.visibleNS[server] <= t.nowNS && !row.judged {
			list = append(list, row)
		}
	}
	return list
}

// holds checks that everything shown has been evaluated, or is ahead of the stored cursor, within the
// look-back of the stored cursor, or behind the stored mark.
func (t *table) holds(shown []*row) {
	for _, row := range shown {
		if row.judged || row.startNS >= t.cursorNS {
			continue
		}
		if t.mark == nil || t.mark.FromNS > row.startNS {
			mark := "there is no mark"
			if t.mark != nil {
				mark = fmt.Sprintf("the mark begins %v after it", time.Duration(t.mark.FromNS-row.startNS))
			}
			t.Fatalf("seed %d: a row that began %v before the cursor was shown to the pass at %v, is not evaluated, and no later pass reads it: %s",
				t.seed, time.Duration(t.cursorNS-row.startNS), time.Unix(0, t.nowNS).UTC().Format(time.TimeOnly), mark)
		}
	}
}

// forget marks a range to be evaluated for a rule that re-reads what was evaluated without it: of the
// last pass's observation, by the server that answered. What that server did not show, and what is
// older, has not been evaluated for the rule.
func (t *table) forget() {
	if t.b == nil {
		return
	}
	recent := RecentFromNS(t.nowNS)
	r := cursor.Range{FromNS: recent - 8*minuteNS + t.Int64N(9*minuteNS), ToNS: min(t.cursorNS+1, recent+t.Int64N(3*minuteNS))}
	t.b.Forget(r)
	for _, row := range t.rows {
		read := row.startNS >= recent && row.visibleNS[t.server] <= t.nowNS
		if row.startNS >= r.FromNS && row.startNS < r.ToNS && !read {
			row.judged = false
		}
	}
}

// Whatever servers show, and wherever a process dies: every row shown has been evaluated, or is ahead
// of the stored cursor, or is behind the stored mark. Once both servers show the same and nothing
// dies, everything is evaluated and no mark is left.
func TestNothingShownIsForgotten(t *testing.T) {
	for seed := range uint64(16) {
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
		s := &table{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), seed: seed, nowNS: begin, cursorNS: begin}
		for range 1000 {
			step := 3 * secondNS
			if s.IntN(200) == 0 {
				step = s.Int64N(lookBackNS)
			}
			s.nowNS += step
			if s.IntN(100) == 0 {
				s.blind = !s.blind
			}
			for range s.IntN(3) {
				r := &row{startNS: s.nowNS - s.Int64N([]int64{3 * secondNS, 5 * minuteNS, lookBackNS - 20*secondNS}[s.IntN(3)])}
				if n := len(s.rows); n > 0 && s.IntN(2) == 0 {
					r.startNS = s.rows[n-1].startNS // several in one second
				}
				r.visibleNS = [2]int64{s.nowNS + s.Int64N(2*secondNS), s.nowNS + s.Int64N(20*secondNS)}
				s.rows = append(s.rows, r)
			}
			s.pass(false)
			if s.IntN(4) == 0 {
				s.forget()
			}
		}
		s.blind = false
		for range 600 {
			s.nowNS += 2 * secondNS
			s.pass(true)
		}
		for _, l := range s.b.looksTo(RecentFromNS(s.nowNS)) {
			if l.part {
				t.Fatalf("seed %d: a look is still cut, although none fails: %+v", seed, l)
			}
		}
		if s.mark != nil {
			t.Fatalf("seed %d: the mark %+v is left", seed, s.mark)
		}
		for i, r := range s.rows {
			if !r.judged {
				t.Fatalf("seed %d: row %d, which began %v before the end, was never evaluated", seed, i, time.Duration(s.nowNS-r.startNS))
			}
		}
	}
}
