package counting

import (
	"context"
	"fmt"
	"slices"

	"tocsin/rules"
)

// newestTries is how often a newest exchange is asked for that servers do not show.
const newestTries = 3

// Newest gives describe the newest exchange of each of the Groups of windows, in which the caller
// leaves only those that it wants. What was counted is read regardless of the time: otherwise a
// count that takes all the time would never raise anything.
func (p *Pass) Newest(ctx context.Context, windows []*Window, describe func(*Window, []rules.Exchange)) {
	read := func(ctx context.Context, windows []*Window) (then func(context.Context, bool), err error) {
		newest, err := p.newest(ctx, windows)
		if err != nil {
			return nil, fmt.Errorf("read newest exchanges: %w", err)
		}
		return func(context.Context, bool) {
			for i, w := range windows {
				describe(w, newest[i])
			}
		}, nil
	}
	for batch := range slices.Chunk(windows, batchMost) {
		p.ask(ctx, batch, p.ended, read)
	}
}

// newest reads the newest exchanges of the groups of windows. A server other than the one that
// counted may be asked, and lag: then the exchange is not shown, and is asked for again, because
// another server may answer the next time.
func (p *Pass) newest(ctx context.Context, windows []*Window) ([][]rules.Exchange, error) {
	newest := make([][]rules.Exchange, len(windows))
	for i, w := range windows {
		newest[i] = make([]rules.Exchange, len(w.Groups))
	}
	for try := range newestTries {
		var queries []NewestQuery
		var missing []*rules.Exchange
		for i, w := range windows {
			q := NewestQuery{Query: w.query()}
			for j := range w.Groups {
				if e := &newest[i][j]; e.ExecutionID == "" {
					q.Groups, missing = append(q.Groups, w.Groups[j]), append(missing, e)
				}
			}
			if len(q.Groups) > 0 {
				queries = append(queries, q)
			}
		}
		if len(queries) == 0 {
			break
		}
		shown, err := p.counter.Source.Newest(ctx, queries)
		if err != nil && try == 0 {
			return nil, err
		}
		for i, e := range slices.Concat(shown...) {
			*missing[i] = e
		}
	}
	return newest, nil
}
