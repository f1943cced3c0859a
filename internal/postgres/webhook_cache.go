package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

// webhookCache caches webhooks, so that their secrets need not be decrypted for each message. It is
// safe for concurrent use. A webhook is read again when its edition changes. Do not read fields
// from the cache that change without a version, such as how long a webhook is held.
type webhookCache struct {
	db    *DB
	mu    sync.Mutex
	known map[uuid.UUID]cachedWebhook
	// complained is when the last complaint about the secrets of a webhook was returned.
	complained map[uuid.UUID]time.Time
}

// complainEvery is the least time between two complaints about a webhook.
const complainEvery = time.Minute

// complaint returns why a webhook cannot be read, or nil if it was said recently.
func (c *webhookCache) complaint(id uuid.UUID, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || time.Since(c.complained[id]) < complainEvery {
		return nil
	}
	if c.complained == nil {
		c.complained = map[uuid.UUID]time.Time{}
	}
	c.complained[id] = time.Now() //nolint:forbidigo // how often something is logged
	return err
}

// cachedWebhook is a webhook, or why it could not be read.
type cachedWebhook struct {
	webhook notify.Webhook
	err     error
}

// maxCachedWebhooks bounds the cache; beyond it all webhooks are read again.
const maxCachedWebhooks = 10_000

// edition is a version of a webhook, and when it was stored. After a failover that took an edit away, the next edit has the
// version of the lost one.
type edition struct {
	version int64
	at      time.Time
}

func (e edition) is(w *notify.Webhook) bool { return w.Version == e.version && w.UpdatedAt.Equal(e.at) }

// get returns webhooks by their ids, each in the requested edition, or as it was read a moment ago.
func (c *webhookCache) get(ctx context.Context, versions map[uuid.UUID]edition) (map[uuid.UUID]cachedWebhook, error) {
	found := make(map[uuid.UUID]cachedWebhook, len(versions))
	var missing []uuid.UUID
	c.mu.Lock()
	for id, version := range versions {
		if w, ok := c.known[id]; ok && w.err == nil && version.is(&w.webhook) {
			found[id] = w
		} else {
			missing = append(missing, id)
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return found, nil
	}
	rows, err := c.db.queries.WebhookByID(ctx, missing)
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known)+len(rows) > maxCachedWebhooks {
		c.known = make(map[uuid.UUID]cachedWebhook, len(rows))
	}
	for _, row := range rows {
		w, err := c.db.webhookOf(row.Webhook)
		found[w.ID] = cachedWebhook{w, err}
		c.known[w.ID] = found[w.ID]
	}
	return found, nil
}
