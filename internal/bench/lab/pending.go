package lab

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/bench/product"
)

// MostConcurrent is how many concurrent attempts a webhook may have at most.
const MostConcurrent = 256

// Pending commits count alerts of one webhook, which is disabled and may have [MostConcurrent] attempts.
func (b *Bench) Pending(ctx context.Context, world *product.World, address string, count int) (uuid.UUID, error) {
	return PendingWith(ctx, world, address, MostConcurrent, count)
}

// PendingWith is the same with a number of concurrent attempts.
func PendingWith(ctx context.Context, world *product.World, address string, concurrent, count int) (uuid.UUID, error) {
	hook, err := world.Hook(ctx, address, concurrent, false)
	if err != nil {
		return hook, err
	}
	if _, err := world.Rule(ctx, []uuid.UUID{hook}); err != nil {
		return hook, err
	}
	committer, err := world.Committer(ctx)
	if err != nil {
		return hook, err
	}
	if err := committer.Pending(ctx, count); err != nil {
		return hook, err
	}
	return hook, world.Exec(ctx, "analyze")
}

// Wait waits for d, or until ctx ends.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
