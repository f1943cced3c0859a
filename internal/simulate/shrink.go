package simulate

import "errors"

// Shrink returns the simplest form of a failing simulation: all steps are removed without which it
// still fails in the same way, that is, violates the same promise. It gives up after a number of
// runs.
func Shrink(o Options, failed Result, run func(Options) Result, most int) (Options, Result) {
	promise := promiseOf(failed.Violation)
	o.setDefaults()
	left := make([]int, 0, o.Steps)
	for n := range o.Steps {
		if !o.Leave[n] {
			left = append(left, n)
		}
	}
	try := func(without []int) bool {
		attempt := o
		attempt.Leave = map[int]bool{}
		for n := range o.Steps {
			attempt.Leave[n] = true
		}
		for _, n := range without {
			delete(attempt.Leave, n)
		}
		most--
		r := run(attempt)
		if promiseOf(r.Violation) != promise {
			return false
		}
		o, failed = attempt, r
		return true
	}
	for size := len(left) / 2; size > 0; size /= 2 {
		for from := 0; from < len(left) && most > 0; {
			to := min(from+size, len(left))
			rest := append(append([]int{}, left[:from]...), left[to:]...)
			if try(rest) {
				left = rest
			} else {
				from = to
			}
		}
	}
	return o, failed
}

// promiseOf returns the promise that a violation breaks, or "" if there is none.
func promiseOf(err error) string {
	if v, ok := errors.AsType[*BreachError](err); ok {
		return v.Promise
	}
	return ""
}
