package notify

import "github.com/google/uuid"

// WakeUp tells dispatchers that notifications may be waiting. It is only a hint: lost, late or
// repeated wake-ups change nothing except the delay.
type WakeUp struct {
	// Notifications is how many were written.
	Notifications int
	// Webhooks are the webhooks that they were written for; nil if unknown.
	Webhooks []uuid.UUID
}

// Signal is a wake-up as it reaches a dispatcher.
type Signal struct {
	WakeUp WakeUp
	// Claimed is called at most once, when the claiming pass that the signal caused has ended. left
	// reports that more may be due than this dispatcher had room for; err is why the pass failed.
	// It must not block. Nil means that nobody asks.
	Claimed func(left bool, err error)
}

// Answer reports the end of a pass, once. The zero signal reports to nobody.
func (s *Signal) Answer(left bool, err error) {
	if claimed := s.Claimed; claimed != nil {
		s.Claimed = nil
		claimed(left, err)
	}
}
