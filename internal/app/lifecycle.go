package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// lifecycle holds the clean-ups, in the order in which their resources were opened.
type lifecycle struct{ cleanUps []cleanUp }

type cleanUp struct {
	name string
	run  func(context.Context) error
}

// add registers a clean-up right after its resource exists.
func (l *lifecycle) add(name string, run func(context.Context) error) {
	l.cleanUps = append(l.cleanUps, cleanUp{name, run})
}

// close runs every clean-up once, in reverse order, and joins their errors.
func (l *lifecycle) close(ctx context.Context) error {
	var errs []error
	for _, c := range slices.Backward(l.cleanUps) {
		if err := c.run(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", c.name, err))
		}
	}
	l.cleanUps = nil
	return errors.Join(errs...)
}

// wait waits until parts have ended, or ctx ends.
func wait(ctx context.Context, parts *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() {
		parts.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return errors.New("work did not finish in time; other replicas take its messages over when their leases expire")
	}
}
