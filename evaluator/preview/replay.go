package preview

import (
	"context"
	"fmt"
	"time"

	"tocsin/alerts"
	"tocsin/rules"
)

// Replayed is what a replay of a PER_EXCHANGE rule would find.
type Replayed struct {
	// Result counts the exchanges by when they began.
	Result

	// Keys are the keys of the exchanges, each once.
	Keys []string
}

// Replay returns what a replay of the exchanges that began from one instant to before another would
// find, whether they have alerts or not. It ignores Last of the request.
func (p *Previewer) Replay(ctx context.Context, r Request, fromNS, toNS int64) (Replayed, error) {
	r.Last = time.Duration(toNS - fromNS)
	run, err := p.begin(&r, toNS, p.Clock().Add(p.budget()))
	if err != nil {
		return Replayed{}, err
	}
	run.replay = true
	var keys []string
	seen := map[string]bool{}
	err = run.slices(ctx, fromNS, func(e *rules.Exchange) {
		key := e.Key()
		if seen[key] {
			return
		}
		seen[key] = true
		keys = append(keys, key)
		a := run.alert(e, e.StartTimeNS)
		a.ID = alerts.ID(run.rule.ID, e)
		var problem error
		a.Title, a.Message, problem = p.Texts.Texts(&run.rule, e)
		run.note(problem)
		run.raised(a)
	})
	if err != nil {
		return Replayed{}, fmt.Errorf("replay: %w", err)
	}
	return Replayed{Result: run.result(), Keys: keys}, nil
}
