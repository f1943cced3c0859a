package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/internal/postgres/pgq"
	"tocsin/internal/seal"
)

// KeyUse is an encryption key and how much it is used.
type KeyUse = api.KeyUse

// Keys returns the configured keys, the encrypting one first, and then the missing ones.
func (db *DB) Keys(ctx context.Context) ([]KeyUse, error) {
	rows, err := db.queries.SecretKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("count secrets by key: %w", err)
	}
	var uses []KeyUse
	for i, key := range db.box.Keys() {
		uses = append(uses, KeyUse{Key: key, Configured: true, Active: i == 0})
	}
	for _, row := range rows {
		key, known := seal.KeyOf(row.Head), false
		for i := range uses {
			if uses[i].Key == key {
				uses[i].Secrets += row.Secrets
				known = true
			}
		}
		if !known {
			uses = append(uses, KeyUse{Key: key, Secrets: row.Secrets})
		}
	}
	return uses, nil
}

// Resealed is the result of sealing secrets again.
type Resealed struct {
	Resealed int
	// Unreadable are the webhooks whose secrets cannot be decrypted because their key is missing.
	Unreadable []uuid.UUID
}

// Reseal seals all secrets with the first key. It may be stopped and started again at any time,
// while replicas run. A secret that somebody changes in the meantime keeps the changed value.
func (db *DB) Reseal(ctx context.Context) (done Resealed, err error) {
	head := db.box.Seal(nil, "")[:seal.HeadBytes]
	for after := uuid.Nil; ; {
		rows, err := db.queries.SecretsBehind(ctx, pgq.SecretsBehindParams{Head: head, AfterID: after})
		if err != nil {
			return done, fmt.Errorf("read secrets: %w", err)
		}
		if len(rows) == 0 {
			return done, nil
		}
		for _, row := range rows {
			after = row.WebhookID
			plain, err := db.box.Open(row.Secrets, webhookRow(row.WebhookID))
			if err != nil {
				done.Unreadable = append(done.Unreadable, row.WebhookID)
				continue
			}
			replaced, err := db.queries.SecretReplace(ctx, pgq.SecretReplaceParams{
				WebhookID: row.WebhookID, Was: row.Secrets, Sealed: db.box.Seal(plain, webhookRow(row.WebhookID)),
			})
			if err != nil {
				return done, fmt.Errorf("webhook %s: store secrets: %w", row.WebhookID, err)
			}
			done.Resealed += int(replaced)
		}
	}
}
