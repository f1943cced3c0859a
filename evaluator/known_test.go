package evaluator

import (
	"strconv"
	"testing"

	"github.com/google/uuid"

	"tocsin/cursor"
)

// TestKnownForgetsTheOldestHalf adds many more alerts than are remembered: at any
// time the last half of the bound are known, each with its cursor, and never more
// than the bound are kept.
func TestKnownForgetsTheOldestHalf(t *testing.T) {
	k, rule := newKnown(), uuid.UUID{1}
	position := func(i int) cursor.Position { return cursor.Position{StartTimeNS: int64(i)} }
	const half = mostKnown / 2
	for i := range 3 * mostKnown {
		k.add(rule, strconv.Itoa(i), position(i))
		if kept := len(k.fresh) + len(k.former); kept > mostKnown {
			t.Fatalf("%d alerts are kept after %d, want at most %d", kept, i+1, mostKnown)
		}
		for _, back := range []int{0, 1, half / 2, half - 1} {
			if back > i {
				continue
			}
			if to, there := k.with(rule, strconv.Itoa(i-back)); !there || to != position(i-back) {
				t.Fatalf("after %d alerts, the one %d before the last is there: %t, with %v", i+1, back, there, to)
			}
		}
		if k.has(rule, strconv.Itoa(i-mostKnown)) {
			t.Fatalf("after %d alerts, the one %d before the last is still known", i+1, mostKnown)
		}
	}
	if last := strconv.Itoa(3*mostKnown - 1); k.has(uuid.UUID{2}, last) {
		t.Error("an alert of one rule counts as known of another")
	}
}

// TestKnownTellsTheLastCursor adds an alert again after it was moved to the older half.
func TestKnownTellsTheLastCursor(t *testing.T) {
	k, rule := newKnown(), uuid.UUID{1}
	k.add(rule, "again", cursor.Position{StartTimeNS: 1})
	for i := range mostKnown / 2 {
		k.add(rule, strconv.Itoa(i), cursor.Position{StartTimeNS: 1})
	}
	if _, fresh := k.fresh[alertKeyOf(rule, "again")]; fresh || !k.has(rule, "again") {
		t.Fatal("the alert is not in the older half")
	}
	want := cursor.Position{StartTimeNS: 2}
	k.add(rule, "again", want)
	if to, _ := k.with(rule, "again"); to != want {
		t.Errorf("the cursor of the alert is %v, want %v", to, want)
	}
}
