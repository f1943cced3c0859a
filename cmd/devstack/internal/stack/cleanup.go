package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// cleanups end what was started, last first. Each resource is registered right after it exists.
type cleanups struct {
	named []namedCleanup
}

type namedCleanup struct {
	name string
	end  func(ctx context.Context) error
}

func (c *cleanups) add(name string, end func(ctx context.Context) error) {
	c.named = append(c.named, namedCleanup{name: name, end: end})
}

// run ends everything, even if some of it fails.
func (c *cleanups) run(ctx context.Context) error {
	var failed []error
	for _, each := range slices.Backward(c.named) {
		if err := each.end(ctx); err != nil {
			failed = append(failed, fmt.Errorf("stop %s: %w", each.name, err))
		}
	}
	c.named = nil
	return errors.Join(failed...)
}
