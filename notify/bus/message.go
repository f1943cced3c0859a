package bus

import (
	"encoding/json"
	"errors"
	"fmt"
)

// maxHops is how often a wake-up is published on by replicas that have less
// room than there is left. It bounds what one wake-up costs when nobody has room.
const maxHops = 16

// maxSize is the longest message that is looked at.
const maxSize = 1024

// message is a wake-up on its way. Fields that are unknown are passed over, so
// that replicas of neighbouring versions understand each other.
type message struct {
	Notifications int `json:"notifications"`
	Hops          int `json:"hops,omitempty"`
}

func (m message) encode() []byte {
	// Two integers can always be encoded.
	payload, _ := json.Marshal(m)
	return payload
}

func decode(payload []byte) (message, error) {
	var m *message
	if len(payload) > maxSize {
		return message{}, errors.New("too long")
	}
	if err := json.Unmarshal(payload, &m); err != nil {
		return message{}, fmt.Errorf("decode wake-up: %w", err)
	}
	if m == nil || m.Notifications < 0 || m.Hops < 0 {
		return message{}, errors.New("not a wake-up")
	}
	return *m, nil
}

// and is both at once: as far as the one that may still go further.
func (m message) and(other message) message {
	sum := m.Notifications + other.Notifications
	if sum < 0 {
		sum = m.Notifications
	}
	return message{Notifications: sum, Hops: min(m.Hops, other.Hops)}
}
