package demo

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// dice are the seeded draws of the model.
type dice struct{ *rand.Rand }

func newDice(seed uint64, start time.Time) dice {
	return dice{rand.New(rand.NewPCG(seed, uint64(start.UnixNano())))}
}

// chance is true with probability p.
func (d dice) chance(p float64) bool { return d.Float64() < p }

// between draws an integer of [low, high].
func (d dice) between(low, high int) int { return low + d.IntN(high-low+1) }

// span draws a duration of [low, high).
func (d dice) span(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64(high-low)))
}

// wait draws the time to the next event of a Poisson process.
func (d dice) wait(perSecond float64) time.Duration {
	return time.Duration(d.ExpFloat64() / perSecond * float64(time.Second))
}

// lognormal draws a duration whose logarithm is normal around that of median.
func (d dice) lognormal(median time.Duration, spread float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(spread*d.NormFloat64()))
}

// pick draws one of the given values.
func pick[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

// number draws a decimal number of exactly the given count of digits.
func (d dice) number(digits int) string {
	low := int(math.Pow10(digits - 1))
	return fmt.Sprintf("%d", d.between(low, 10*low-1))
}

// hex draws n lower-case hexadecimal digits.
func (d dice) hex(n int) string {
	const digits = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[d.IntN(len(digits))]
	}
	return string(b)
}

// uuidAt draws an RFC 9562 version 7 UUID of the given instant: ids of different
// runs never meet, and those of one millisecond have no order to rely on.
func (d dice) uuidAt(at time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(at.UnixMilli())<<16|uint64(d.IntN(1<<12))|0x7000)
	binary.BigEndian.PutUint64(b[8:], d.Uint64()&^(0b11<<62)|0b10<<62)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
