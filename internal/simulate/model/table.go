package model

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/uuid"
)

// table is a table whose changes can all be reverted.
type table[K comparable, V any] struct {
	rows map[K]V
	log  *journal
	// touched is called with the key of each row that changes, also when a change is reverted; it
	// may be nil.
	touched func(key K)
}

func newTable[K comparable, V any](log *journal) table[K, V] {
	return table[K, V]{rows: map[K]V{}, log: log}
}

func (t *table[K, V]) get(key K) (V, bool) {
	v, ok := t.rows[key]
	return v, ok
}

func (t *table[K, V]) has(key K) bool {
	_, ok := t.rows[key]
	return ok
}

func (t *table[K, V]) put(key K, value V) {
	former, existed := t.rows[key]
	t.log.undo(func() {
		t.note(key)
		if existed {
			t.rows[key] = former
		} else {
			delete(t.rows, key)
		}
	})
	t.rows[key] = value
	t.note(key)
}

func (t *table[K, V]) note(key K) {
	if t.touched != nil {
		t.touched(key)
	}
}

func (t *table[K, V]) remove(key K) bool {
	former, existed := t.rows[key]
	if !existed {
		return false
	}
	t.log.undo(func() {
		t.note(key)
		t.rows[key] = former
	})
	delete(t.rows, key)
	t.note(key)
	return true
}

// byID returns the keys of a table in order.
func byID[V any](t *table[uuid.UUID, V]) []uuid.UUID {
	return slices.SortedFunc(maps.Keys(t.rows), compareIDs)
}

func compareIDs(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }

func sorted[K cmp.Ordered, V any](t *table[K, V]) []K { return slices.Sorted(maps.Keys(t.rows)) }

// mostLost limits how many transactions a failover can revert.
const mostLost = 64

// journal contains how to revert transactions.
type journal struct {
	present []func()
	former  [][]func()
}

func (j *journal) undo(f func()) { j.present = append(j.present, f) }

func (j *journal) commit() {
	if len(j.present) == 0 {
		return
	}
	if len(j.former) == mostLost {
		j.former = slices.Delete(j.former, 0, 1)
	}
	j.former = append(j.former, j.present)
	j.present = nil
}

func (j *journal) rollback() {
	back(j.present)
	j.present = nil
}

func back(changes []func()) {
	for _, undo := range slices.Backward(changes) {
		undo()
	}
}

// lose reverts the last transactions, at most n, and returns how many.
func (j *journal) lose(n int) int {
	n = min(n, len(j.former))
	for range n {
		last := len(j.former) - 1
		back(j.former[last])
		j.former = j.former[:last]
	}
	return n
}
