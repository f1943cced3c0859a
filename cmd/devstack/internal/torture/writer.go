//go:build unix

package torture

import (
	"context"
	"time"
)

// writeAll writes the rows of the plan when they are due, repeating each batch until ClickHouse has
// accepted it.
func (w *world) writeAll(ctx context.Context) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for rows := w.plan.writes; len(rows) > 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		due := 0
		for now := w.elapsed(); due < len(rows) && rows[due].atNS <= int64(now); {
			due++
		}
		if due == 0 {
			continue
		}
		if err := w.write(ctx, rows[:due]); err != nil {
			return err
		}
		rows = rows[due:]
	}
	w.source.late.Wait()
	return ctx.Err()
}

func (w *world) write(ctx context.Context, rows []write) error {
	var data []byte
	var ended []int
	for _, row := range rows {
		data = w.truth.exchanges[row.exchange].appendRow(data, row.running)
		if !row.running {
			ended = append(ended, row.exchange)
		}
	}
	began := time.Now().UnixNano()
	return w.source.insert(ctx, "INSERT INTO exchanges ("+columns+") FORMAT RowBinary", data,
		func(err error) { w.logf("writer: %.60v", err) },
		func() { w.truth.noteSeen(ended, span{began, time.Now().UnixNano()}) })
}
