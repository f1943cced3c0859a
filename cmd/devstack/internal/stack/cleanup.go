package stack

import (
	"context"
	"errors"
	"fmt"
)

// cleanups end what was started, the last first. Each resource is registered right after it exists.
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

// run ends everything, whatever fails on the way.
func (c *cleanups) run(ctx context.Context) error {
	var failed []error
	for i := len(c.named) - 1; i >= 0; i-- {
		if err := c.named[i].end(ctx); err != nil {
			failed = append(failed, fmt.Errorf("stop %s: %w", c.named[i].name, err))
		}
	}
	c.named = nil
	return errors.Join(failed...)
}
