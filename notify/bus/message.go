package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// maxHops is how often a wake-up is published on by replicas that have less
// room than there is left. It bounds what one wake-up costs when nobody has room.
const maxHops = 16

// maxWebhooks is how many webhooks a message names. Each takes 39 bytes.
const maxWebhooks = 16

// maxSize is the longest message that is looked at.
const maxSize = 1024

// message is a wake-up on its way. Fields that are unknown are passed over, so
// that replicas of neighbouring versions understand each other.
type message struct {
	Notifications int `json:"notifications"`
	Hops          int `json:"hops,omitempty"`
	// Webhooks is empty where it is not known for which they are, or for too many.
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

// and is both at once: as far as the one that may still go further.
func (m message) and(other message) message {
	sum := m.Notifications + other.Notifications
	if sum < 0 {
		sum = m.Notifications
	}
	return message{Notifications: sum, Hops: min(m.Hops, other.Hops), Webhooks: both(m.Webhooks, other.Webhooks)}
}

// both names the webhooks of two messages, if it is known which they are and they are few.
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

// few returns webhooks that a message has room for, and otherwise none.
func few(webhooks []uuid.UUID) []uuid.UUID {
	if len(webhooks) > maxWebhooks {
		return nil
	}
	return webhooks
}
