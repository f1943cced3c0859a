package retry_test

import (
	"testing"
	"time"

	"tocsin/cursor"
	"tocsin/evaluator/retry"
)

const (
	second = int64(time.Second)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

func now() time.Time { return time.Unix(1_795_244_520, 0) }

// pause returns how long something waits from now on; 0 where it does not, or for longer than ten minutes.
func pause(b *retry.Backoff) time.Duration {
	for seconds := range 600 {
		d := time.Duration(seconds) * time.Second
		if at := now().Add(d); b.Waits(at.Add(-1)) && !b.Waits(at) {
			return d
		}
	}
	return 0
}

// TestSpan states how much is read after each step from what was read before.
func TestSpan(t *testing.T) {
	widen := func(s *retry.Span) { s.Widen() }
	fails := func(s *retry.Span) { s.Fails(now()) }
	stays := func(*retry.Span) {}
	for _, c := range []struct {
		name   string
		before int64
		step   func(*retry.Span)
		want   int64
		failed bool
	}{
		{"a day at first", 0, stays, day, false},
		{"as much as it says", minute, stays, minute, false},
		{"doubled from a day", 0, widen, 2 * day, false},
		{"doubled", 10 * second, widen, 20 * second, false},
		{"doubled up to 32 days", 16 * day, widen, 32 * day, false},
		{"not beyond", 17 * day, widen, 32 * day, false},
		{"a quarter of a day", 0, fails, 6 * hour, true},
		{"a quarter", 32 * day, fails, 8 * day, true},
		{"a quarter down to ten seconds", 40 * second, fails, 10 * second, true},
		{"not below", 39 * second, fails, 10 * second, true},
		{"nor from there", 10 * second, fails, 10 * second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := retry.SpanOf(c.before)
			c.step(&s)
			if got := s.EndNS(cursor.Position{StartTimeNS: 7}) - 7; got != c.want || s.Failed() != c.failed || s.Waits(now()) != c.failed {
				t.Errorf("%v is read, failed %v, waits %v; want %v", time.Duration(got), s.Failed(), s.Waits(now()), time.Duration(c.want))
			}
		})
	}
}

// TestBackoff states that the pause doubles to five minutes, also after so many failures that a shift would overflow.
func TestBackoff(t *testing.T) {
	var b retry.Backoff
	for i := range 100 {
		b.Fails(now())
		want := 5 * time.Minute
		if doubled := []int64{5, 10, 20, 40, 80, 160}; i < len(doubled) {
			want = time.Duration(doubled[i] * second)
		}
		if got := pause(&b); got != want || !b.Failed() {
			t.Fatalf("failure %d: a pause of %v, failed %v; want %v", i+1, got, b.Failed(), want)
		}
	}
	b.Succeeds()
	if b != (retry.Backoff{}) {
		t.Errorf("%+v is left after a success", b)
	}
	if b.Pauses(now()); pause(&b) != 5*time.Second || b.Failed() {
		t.Errorf("a pause of %v without a failure, failed %v", pause(&b), b.Failed())
	}
	if b.Fails(now()); pause(&b) != 5*time.Second {
		t.Errorf("the first pause after a success is %v", pause(&b))
	}
}
