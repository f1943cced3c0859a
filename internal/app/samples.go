package app

import (
	"context"
	"log/slog"
	"time"
)

// samplesEvery is how often a replica checks whether the present minute has a sample.
const samplesEvery = 20 * time.Second

// sample stores a sample of the state of the system each minute.
func (a *App) sample(ctx context.Context) {
	ticker := time.NewTicker(samplesEvery)
	defer ticker.Stop()
	for {
		if err := a.samples.Take(ctx); err != nil && ctx.Err() == nil {
			a.options.Logger.WarnContext(ctx, "sample of the system state not stored; it is retried: run tocsin doctor if this repeats", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
