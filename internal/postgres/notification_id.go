package postgres

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"

	"tocsin/notify"
)

// notificationID derives the id of a notification, so that one which a failover took away
// comes back with the same id. It begins with the instant of the alert's id.
func notificationID(alert, webhook uuid.UUID, reason notify.Reason, generation int) uuid.UUID {
	const instantBytes = 6
	key := append(append(alert[:], webhook[:]...), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint64(key[len(key)-8:], uint64(generation))
	sum := sha256.Sum256(append(key, reason...))
	var id uuid.UUID
	copy(id[:], alert[:instantBytes])
	copy(id[instantBytes:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}
