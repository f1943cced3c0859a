package alerts

import (
	"crypto/sha256"

	"github.com/google/uuid"

	"tocsin/rules"
)

// ID returns the id of the alert of a rule about an exchange. The id is derived: if a failover of
// the database loses an alert, it comes back with the same id, and so do its messages. It is a UUID
// of version 8 (RFC 9562, section 5.8). It consists of 48 bits of the exchange's start in
// milliseconds, as in version 7, so that ids ascend roughly with time and indexes grow at their
// end, and of 74 bits of SHA-256 over the rule and the key of the exchange.
func ID(rule uuid.UUID, e *rules.Exchange) uuid.UUID {
	return derived(e.StartTimeNS/1e6, rule, []byte(e.Key()))
}

// WindowID returns the id of the alert that a window rule raises for a group. previous is the id of
// the group's previous alert, or uuid.Nil for the first one. The milliseconds of the instant are
// part of the id.
func WindowID(rule uuid.UUID, group string, previous uuid.UUID, atNS int64) uuid.UUID {
	return derived(atNS/1e6, rule, append(previous[:], group...))
}

func derived(ms int64, rule uuid.UUID, key []byte) uuid.UUID {
	h := sha256.New()
	h.Write(rule[:])
	h.Write(key)
	sum := h.Sum(nil)
	var id uuid.UUID
	copy(id[6:], sum)
	// Instants before 1970 all get 0 here; the hash distinguishes them.
	ms = max(ms, 0)
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}
