package evaluator

import (
	"github.com/google/uuid"

	"tocsin/cursor"
)

// mostKnown bounds how many alerts a process remembers, a few megabytes.
const mostKnown = 32_000

// known holds the last alerts that this process has written, so that a second
// which is judged again, because one exchange more became visible in it, does not
// have the database refuse all that it has already. It says only what need not be
// written again: what lies after a cursor is written whatever it says, since a
// database may have lost both, but for what was written together with that very
// cursor.
type known struct {
	// fresh and former tell for each alert where its transaction put the cursor.
	fresh, former map[alertKey]cursor.Position
}

// alertKey is what an alert is unique by.
type alertKey struct {
	rule      uuid.UUID
	execution string
}

func newKnown() *known { return &known{fresh: map[alertKey]cursor.Position{}} }

func (k *known) add(rule uuid.UUID, execution string, to cursor.Position) {
	if len(k.fresh) >= mostKnown/2 {
		k.fresh, k.former = make(map[alertKey]cursor.Position, mostKnown/2), k.fresh
	}
	k.fresh[alertKey{rule, execution}] = to
}

func (k *known) has(rule uuid.UUID, execution string) bool {
	_, there := k.with(rule, execution)
	return there
}

// with returns where the transaction that wrote an alert put the rule's cursor.
func (k *known) with(rule uuid.UUID, execution string) (to cursor.Position, there bool) {
	key := alertKey{rule, execution}
	if to, there = k.fresh[key]; !there {
		to, there = k.former[key]
	}
	return to, there
}
