package evaluator

import (
	"time"

	"github.com/google/uuid"

	"tocsin/rules"
)

// bench keeps what is the same in each tick: compiled rules, and the indexes of
// the sets of rules that were last due together. It holds nothing that could
// not be made again.
type bench struct {
	compiled map[uuid.UUID]*compiled
	// indexes are few, the one used last first.
	indexes []*rules.Index
}

// compiled is a rule of one version and arming.
type compiled struct {
	version, armedSinceNS int64
	judge                 *rules.Judge
	used                  time.Time
}

const (
	// maxIndexes is how many sets of rules are remembered: rules of one interval
	// are due together, and with those of each interval that divides it.
	maxIndexes = 8
	// compiledFor is the longest interval of a rule, and more.
	compiledFor = 2 * time.Hour
)

func newBench() *bench { return &bench{compiled: map[uuid.UUID]*compiled{}} }

// compile returns the judge of a rule. Its error names what cannot be used.
func (b *bench) compile(r *rules.Rule, now time.Time) (*rules.Judge, error) {
	c := b.compiled[r.ID]
	if c == nil || c.version != r.Version || c.armedSinceNS != r.ArmedSinceNS {
		judge, err := rules.NewJudge(r)
		if err != nil {
			return nil, err
		}
		c = &compiled{version: r.Version, armedSinceNS: r.ArmedSinceNS, judge: judge}
		b.compiled[r.ID] = c
	}
	c.used = now
	return c.judge, nil
}

// index returns the index of judges, whose numbers are their places in the slice.
func (b *bench) index(judges []*judge) *rules.Index {
	list := make([]*rules.Judge, len(judges))
	for i, j := range judges {
		list[i] = j.Judge
	}
	for i, x := range b.indexes {
		if x.Holds(list) {
			copy(b.indexes[1:i+1], b.indexes[:i])
			b.indexes[0] = x
			return x
		}
	}
	x := rules.NewIndex(list)
	b.indexes = append([]*rules.Index{x}, b.indexes[:min(len(b.indexes), maxIndexes-1)]...)
	return x
}

// sweep drops the rules that have not been due for long.
func (b *bench) sweep(now time.Time) {
	for id, c := range b.compiled {
		if now.Sub(c.used) > compiledFor {
			delete(b.compiled, id)
		}
	}
}
