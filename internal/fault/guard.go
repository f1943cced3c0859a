package fault

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
)

// panics counts what panicked in this process.
var panics atomic.Int64 //nolint:gochecknoglobals // as global as the panics of a process

// Panics returns how many panics Guard has caught in this process. One that is passed on counts once.
func Panics() int64 { return panics.Load() }

// panicked is the error of what panicked. Its text has no stack, so it can be stored and shown.
type panicked struct {
	why   any
	stack string
}

// Error names the panic.
func (p *panicked) Error() string {
	return fmt.Sprintf("panic: %v; this is a bug in Tocsin, please report it", p.why)
}

// Guard calls do. If do panics, Guard returns an error that [Stack] and [Panicked] know. It stands
// where one message, rule or task meets code that may have a bug: only that one fails, and the
// others go on.
func Guard(do func() error) (err error) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case *panicked:
			err = why // passed on from another goroutine, with its stack
		default:
			panics.Add(1)
			err = &panicked{why, string(debug.Stack())}
		}
	}()
	return do()
}

// Panicked reports whether err comes from a panic.
func Panicked(err error) bool {
	_, is := errors.AsType[*panicked](err)
	return is
}

// Stack is the attribute for the log with the stack of the panic that err comes from. It is empty
// for other errors, and handlers leave it out.
func Stack(err error) slog.Attr {
	if p, is := errors.AsType[*panicked](err); is {
		return slog.String("stack", p.stack)
	}
	return slog.Attr{}
}
