package evaluator

import "github.com/google/uuid"

// mostKnown bounds how many alerts a process remembers, a few megabytes.
const mostKnown = 32_000

// known holds the last alerts that this process has written, so that a second
// which is judged again, because one exchange more became visible in it, does not
// have the database refuse all that it has already. It says only what need not be
// written again: what lies after a cursor is written whatever it says, since a
// database may have lost both.
type known struct{ fresh, former map[alertKey]struct{} }

// alertKey is what an alert is unique by.
type alertKey struct {
	rule      uuid.UUID
	execution string
}

func newKnown() *known { return &known{fresh: map[alertKey]struct{}{}} }

func (k *known) add(rule uuid.UUID, execution string) {
	if len(k.fresh) >= mostKnown/2 {
		k.fresh, k.former = make(map[alertKey]struct{}, mostKnown/2), k.fresh
	}
	k.fresh[alertKey{rule, execution}] = struct{}{}
}

func (k *known) has(rule uuid.UUID, execution string) bool {
	key := alertKey{rule, execution}
	if _, there := k.fresh[key]; there {
		return true
	}
	_, there := k.former[key]
	return there
}
