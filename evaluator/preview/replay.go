package preview

import (
	"context"
	"fmt"
	"time"

	"tocsin/rules"
)

// ReplayRequest asks what a replay of the exchanges that began from FromNS, inclusive, to ToNS,
// exclusive, would find. Last of the request is ignored.
type ReplayRequest struct {
	Request

	FromNS, ToNS int64
	// Unalerted returns those of some keys of exchanges that have no alert of the rule.
	Unalerted func(ctx context.Context, keys []string) ([]string, error)
}

// Replayed is what a replay of a PER_EXCHANGE rule would find.
type Replayed struct {
	// Result counts the exchanges by when they began, whether they have alerts or not. Newest are
	// those without an alert, which a replay would raise.
	Result

	// Existing is how many of the exchanges have an alert.
	Existing int64
}

// Replay returns what a replay would find.
func (p *Previewer) Replay(ctx context.Context, r ReplayRequest) (Replayed, error) {
	r.Last = time.Duration(r.ToNS - r.FromNS)
	run, err := p.begin(&r.Request, r.ToNS, p.Clock().Add(p.budget()))
	if err != nil {
		return Replayed{}, err
	}
	run.replay, run.scan.EndedSinceNS = true, 0
	var keys []string
	found := map[string]sample{}
	err = run.slices(ctx, r.FromNS, func(e *rules.Exchange) {
		key := e.Key()
		if _, seen := found[key]; seen {
			return
		}
		found[key] = sample{newest: counted{startNS: e.StartTimeNS, endedNS: e.EndedNS(), key: key}, atNS: e.StartTimeNS}
		keys = append(keys, key)
		run.raised(run.alert(e, e.StartTimeNS))
	})
	if err != nil {
		return Replayed{}, fmt.Errorf("replay: %w", err)
	}
	without, err := r.Unalerted(ctx, keys)
	if err != nil {
		return Replayed{}, fmt.Errorf("replay: %w", err)
	}
	missing := make([]sample, len(without))
	for i, key := range without {
		missing[i] = found[key]
	}
	if err := run.describe(ctx, missing); err != nil {
		return Replayed{}, fmt.Errorf("replay: %w", err)
	}
	return Replayed{Result: run.result(), Existing: int64(len(keys) - len(without))}, nil
}
