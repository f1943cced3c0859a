package api

import (
	"context"
	"fmt"
)

// Keys lists encryption keys.
type Keys interface {
	// Keys returns the configured keys, the encrypting one first, and then the missing ones. Keys
	// belong to no tenant.
	Keys(ctx context.Context) ([]KeyUse, error)
}

// KeyUse is an encryption key and how much it is used.
type KeyUse struct {
	// Key is the id of the key; empty for values of unknown format.
	Key string
	// Secrets is how many secrets are encrypted with it.
	Secrets int64
	// Configured says that the key is configured, Active that it is the first one.
	Configured, Active bool
}

// State returns the state of the key.
func (u KeyUse) State() EncryptionKeyState {
	switch {
	case u.Active:
		return EncryptionKeyStateACTIVE
	case u.Configured && u.Secrets > 0:
		return EncryptionKeyStateINUSE
	case u.Configured:
		return EncryptionKeyStateUNUSED
	case u.Key != "":
		return EncryptionKeyStateMISSING
	default:
		return EncryptionKeyStateUNKNOWN
	}
}

// ListEncryptionKeys answers GET /encryption-keys.
func (s *server) ListEncryptionKeys(ctx context.Context, _ ListEncryptionKeysRequestObject) (ListEncryptionKeysResponseObject, error) {
	uses, err := s.Keys.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list encryption keys: %w", err)
	}
	items := make([]EncryptionKey, len(uses))
	for i, use := range uses {
		items[i] = EncryptionKey{ID: use.Key, State: use.State(), Secrets: use.Secrets}
	}
	return ListEncryptionKeys200JSONResponse{Items: items}, nil
}
