package evaluator

import (
	"crypto/sha256"

	"github.com/google/uuid"

	"tocsin/cursor"
)

// mostKnown bounds how many alerts a process remembers, at some 50 bytes each.
const mostKnown = 32_000

// known holds the last alerts that this process has written, so that a second
// which is judged again, because one exchange more became visible in it, does not
// have the database refuse all that it has already. It says only what need not be
// written again: what lies after a cursor is written whatever it says, since a
// database may have lost both, but for what was written together with that very
// cursor.
type known struct {
	// fresh and former tell for each alert where its transaction put the cursor,
	// which is last for the transaction at hand.
	fresh, former map[alertKey]*cursor.Position
	last          *cursor.Position
}

// alertKey stands for what an alert is unique by: half of a cryptographic hash, of
// which no two are ever the same.
type alertKey [16]byte

func alertKeyOf(rule uuid.UUID, execution string) alertKey {
	var room [256]byte
	sum := sha256.Sum256(append(append(room[:0], rule[:]...), execution...))
	return alertKey(sum[:16])
}

func newKnown() *known { return &known{fresh: map[alertKey]*cursor.Position{}} }

func (k *known) add(rule uuid.UUID, execution string, to cursor.Position) {
	if len(k.fresh) >= mostKnown/2 {
		k.fresh, k.former = make(map[alertKey]*cursor.Position, mostKnown/2), k.fresh
	}
	if k.last == nil || *k.last != to {
		last := to
		k.last = &last
	}
	k.fresh[alertKeyOf(rule, execution)] = k.last
}

func (k *known) has(rule uuid.UUID, execution string) bool {
	_, there := k.with(rule, execution)
	return there
}

// with returns where the transaction that wrote an alert put the rule's cursor.
func (k *known) with(rule uuid.UUID, execution string) (to cursor.Position, there bool) {
	key := alertKeyOf(rule, execution)
	at := k.fresh[key]
	if at == nil {
		at = k.former[key]
	}
	if at == nil {
		return cursor.Position{}, false
	}
	return *at, true
}
