package notify

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// idTimeBytes is the part of an id that holds its instant, in milliseconds.
const idTimeBytes = 6

// ID derives the id of a notification, so that one that is written again after a failover
// that lost its transaction has the same id, and a receiver can drop the repeat. It is a
// UUID of version 8: the instant of the alert's id, then the hash of what makes the
// notification unique. Generation tells notifications of one reason apart: of a step of an
// escalation it is the minutes after which that comes, of others, such as reminders, their
// number, the first of which is 0.
func ID(alert, webhook uuid.UUID, reason Reason, generation int) uuid.UUID {
	key := make([]byte, 0, len(alert)+len(webhook)+8+len(reason))
	key = append(key, alert[:]...)
	key = append(key, webhook[:]...)
	key = binary.BigEndian.AppendUint64(key, uint64(generation))
	key = append(key, reason...)
	hash := sha256.Sum256(key)
	var id uuid.UUID
	copy(id[:], alert[:idTimeBytes])
	copy(id[idTimeBytes:], hash[:])
	const version, variant = 0x80, 0x80
	id[6] = id[6]&0x0f | version
	id[8] = id[8]&0x3f | variant
	return id
}
