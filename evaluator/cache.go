package evaluator

import (
	"time"

	"github.com/google/uuid"

	"tocsin/rules"
)

// cache keeps what is the same in each tick: compiled rules, and the indexes of
// the sets of rules that were last due together. It holds nothing that could
// not be made again.
type cache struct {
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
	// are due together, and with those of each interval that divides it. Those
	// that count form a few sets for each tenant.
	maxIndexes = 32
	// compiledFor is the longest interval of a rule, and more.
	compiledFor = 2 * time.Hour
)

func newCache() *cache { return &cache{compiled: map[uuid.UUID]*compiled{}} }

// compile returns the judge of a rule. Its error names what cannot be used.
func (c *cache) compile(r *rules.Rule, now time.Time) (*rules.Judge, error) {
	known := c.compiled[r.ID]
	if known == nil || known.version != r.Version || known.armedSinceNS != r.ArmedSinceNS {
		judge, err := rules.NewJudge(r)
		if err != nil {
			return nil, err
		}
		known = &compiled{version: r.Version, armedSinceNS: r.ArmedSinceNS, judge: judge}
		c.compiled[r.ID] = known
	}
	known.used = now
	return known.judge, nil
}

// index returns the index of judges, whose numbers are their places in the slice.
func (c *cache) index(judges []*judge) *rules.Index {
	list := judgesOf(judges)
	for i, x := range c.indexes {
		if x.Holds(list) {
			copy(c.indexes[1:i+1], c.indexes[:i])
			c.indexes[0] = x
			return x
		}
	}
	x := rules.NewIndex(list)
	c.indexes = append([]*rules.Index{x}, c.indexes[:min(len(c.indexes), maxIndexes-1)]...)
	return x
}

// newIndex makes an index that is not remembered.
func newIndex(judges []*judge) *rules.Index { return rules.NewIndex(judgesOf(judges)) }

func judgesOf(judges []*judge) []*rules.Judge {
	list := make([]*rules.Judge, len(judges))
	for i, j := range judges {
		list[i] = j.Judge
	}
	return list
}

// sweep drops the rules that have not been due for long.
func (c *cache) sweep(now time.Time) {
	for id, rule := range c.compiled {
		if now.Sub(rule.used) > compiledFor {
			delete(c.compiled, id)
		}
	}
}
