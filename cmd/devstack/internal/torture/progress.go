//go:build unix

package torture

import (
	"context"
	"fmt"
	"time"
)

// tellProgress logs the progress of the run every ten seconds, until ctx ends.
func (w *world) tellProgress(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		w.options.Progress(w.progress())
	}
}

func (w *world) progress() string {
	visible := 0
	w.truth.mu.Lock()
	for _, seen := range w.truth.seen {
		if seen != (span{}) {
			visible++
		}
	}
	w.truth.mu.Unlock()
	text := fmt.Sprintf("%v: %d of %d exchanges written, %d requests received, %d of %d faults",
		w.elapsed().Round(time.Second), visible, len(w.truth.seen), len(w.receiver.requests()), w.tally.all(), len(w.plan.faults))
	if visible == len(w.truth.seen) {
		text += "; coming to rest"
	}
	return text
}
