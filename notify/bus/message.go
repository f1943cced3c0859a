package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// maxHops is how often replicas with too little room publish a wake-up again. It bounds what a
// wake-up costs if no replica has room.
const maxHops = 16

// maxWebhooks is how many webhooks a message names, at most. Each takes 39 bytes.
const maxWebhooks = 16

// maxSize is the length of the longest message that is read.
const maxSize = 1024

// message is a wake-up in transit. Unknown fields are ignored, so that replicas of neighbouring
// versions understand each other.
type message struct {
	Notifications int `json:"notifications"`
	Hops          int `json:"hops,omitempty"`
	// Webhooks is empty if the webhooks are unknown or too many.
	Webhooks []uuid.UUID `json:"webhooks,omitempty"`
}

func (m message) encode() []byte {
	// Integers and ids can always be encoded.
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

// and merges two messages. The result has the hops of the message that may be published again more
// often.
func (m message) and(other message) message {
	sum := m.Notifications + other.Notifications
	if sum < 0 {
		sum = m.Notifications
	}
	return message{Notifications: sum, Hops: min(m.Hops, other.Hops), Webhooks: both(m.Webhooks, other.Webhooks)}
}

// both returns the webhooks of two messages, if they are known and few.
func both(a, b []uuid.UUID) []uuid.UUID {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	all := slices.Clone(a)
	for _, id := range b {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return few(all)
}

// few returns the webhooks if a message has room for them, and none otherwise.
func few(webhooks []uuid.UUID) []uuid.UUID {
	if len(webhooks) > maxWebhooks {
		return nil
	}
	return webhooks
}
