package explore

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// Model is a transition system. States are compared by ==.
type Model[S comparable] interface {
	Initial() S
	// Next calls emit with each state that one step leads to.
	Next(s *S, emit func(Step, *S))
	// Canonical returns the representative of all states that differ from s only in names, or in
	// what nothing reads any more.
	Canonical(s *S) S
	// Broken returns the promise that a state breaks; "" if there is none.
	Broken(s *S) string
	// Kept reports whether what is promised eventually has happened. This must be possible from
	// each state.
	Kept(s *S) bool
}

// Step is a step of a model, in the notation of the specification: commit("p", "made").
type Step struct {
	Name string
	Args [3]string
}

func (s Step) String() string {
	var args []string
	for _, a := range s.Args {
		if a != "" {
			args = append(args, a)
		}
	}
	if len(args) == 0 {
		return s.Name
	}
	return s.Name + "(" + strings.Join(args, ", ") + ")"
}

// Result is the result of an exploration.
type Result struct {
	// States is the number of canonical states that were reached, and Steps the number of steps
	// between them. Depth is the length of the longest of the shortest ways.
	States, Steps, Depth int
	// Whole says that every state within the bounds was reached.
	Whole bool
	// Broken is the promise that is broken; "" if there is none. Trace is the shortest way there.
	Broken string
	Trace  []Step
}

func (r *Result) String() string {
	text := fmt.Sprintf("%d states, %d steps, depth %d", r.States, r.Steps, r.Depth)
	if !r.Whole {
		text += ", not all"
	}
	if r.Broken != "" {
		text += fmt.Sprintf(": %s is broken after %d steps", r.Broken, len(r.Trace))
	}
	return text
}

// explorer is an exploration under way: the states in the order in which they were reached, and a
// hash table of their indexes with open addressing.
type explorer[S comparable] struct {
	model  Model[S]
	states []S
	from   []uint32
	table  []uint32
	seed   maphash.Seed
	// edges are the steps, as pairs of indexes.
	edges []edge
}

type edge struct{ from, to uint32 }

// Explore visits all states of a model, breadth first, until a promise is broken or it has reached
// most states; 0 means no bound.
func Explore[S comparable](model Model[S], most int) Result {
	x := explorer[S]{model: model, seed: maphash.MakeSeed(), table: make([]uint32, 1<<16)}
	first := model.Initial()
	canonical := model.Canonical(&first)
	x.add(&canonical, 0)
	r := Result{Whole: true}
	level := 1          // the index of the first state that is one step further
	for i := 0; ; i++ { // the number of states grows
		if i == len(x.states) {
			break
		}
		if i == level {
			r.Depth++
			level = len(x.states)
		}
		s := x.states[i]
		broken, at := "", 0
		model.Next(&s, func(_ Step, next *S) {
			r.Steps++
			if broken != "" {
				return
			}
			c := model.Canonical(next)
			fresh, place := x.add(&c, i)
			x.edges = append(x.edges, edge{uint32(i), place})
			if !fresh {
				return
			}
			if broken = model.Broken(&c); broken != "" {
				at = len(x.states) - 1
			}
		})
		if broken != "" {
			r.Broken, r.Trace, r.Whole = broken, x.trace(at), false
			break
		}
		if most > 0 && len(x.states) >= most {
			r.Whole = false
			break
		}
	}
	if r.States = len(x.states); r.Whole {
		if at, stuck := x.stuck(); stuck {
			r.Broken, r.Trace = "kept", x.trace(at)
		}
	}
	return r
}

// stuck returns the first state from which what is promised cannot happen any more.
func (x *explorer[S]) stuck() (at int, stuck bool) {
	// The steps to each state, one after the other.
	begin := make([]uint32, len(x.states)+1)
	for _, e := range x.edges {
		begin[e.to+1]++
	}
	for i := range x.states {
		begin[i+1] += begin[i]
	}
	sources := make([]uint32, len(x.edges))
	next := append([]uint32(nil), begin...)
	for _, e := range x.edges {
		sources[next[e.to]] = e.from
		next[e.to]++
	}
	can := make([]bool, len(x.states))
	var queue []uint32
	for i := range x.states {
		if x.model.Kept(&x.states[i]) {
			can[i] = true
			queue = append(queue, uint32(i))
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, from := range sources[begin[queue[0]]:begin[queue[0]+1]] {
			if !can[from] {
				can[from] = true
				queue = append(queue, from)
			}
		}
	}
	for i := range can {
		if !can[i] {
			return i, true
		}
	}
	return 0, false
}

// add adds a state, unless it is known, and returns its index.
func (x *explorer[S]) add(s *S, from int) (fresh bool, at uint32) {
	if 2*len(x.states) >= len(x.table) {
		x.grow()
	}
	place := x.find(s)
	if known := x.table[place]; known != 0 {
		return false, known - 1
	}
	x.states = append(x.states, *s)
	x.from = append(x.from, uint32(from))
	x.table[place] = uint32(len(x.states))
	return true, uint32(len(x.states) - 1)
}

// find returns the slot of a state in the table, or the slot where it belongs.
func (x *explorer[S]) find(s *S) uint64 {
	mask := uint64(len(x.table) - 1)
	place := maphash.Comparable(x.seed, *s) & mask
	for x.table[place] != 0 && x.states[x.table[place]-1] != *s {
		place = (place + 1) & mask
	}
	return place
}

func (x *explorer[S]) grow() {
	x.table = make([]uint32, 2*len(x.table))
	for i := range x.states {
		x.table[x.find(&x.states[i])] = uint32(i + 1)
	}
}

// trace returns the steps to a state. The states on the way are canonical, and their names change
// from one to the next. So the way is walked once more with unchanged names.
func (x *explorer[S]) trace(at int) []Step {
	var way []int
	for i := at; i != 0; i = int(x.from[i]) {
		way = append(way, i)
	}
	s := x.model.Initial()
	trace := make([]Step, 0, len(way))
	for _, place := range slices.Backward(way) {
		want := &x.states[place]
		found := false
		here := s
		x.model.Next(&here, func(step Step, next *S) {
			if found {
				return
			}
			if c := x.model.Canonical(next); c == *want {
				found, s = true, *next
				trace = append(trace, step)
			}
		})
		if !found {
			panic("explore: a canonical state stands for one that behaves otherwise")
		}
	}
	return trace
}
