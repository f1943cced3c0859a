package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"tocsin/notify"
)

// target is what is worked out once of how a webhook is called, because thousands
// of messages may go there in a second. It holds for as long as what it was made of.
type target struct {
	made    notify.Webhook
	secrets secrets
	// url is where requests go, without user; err says why it cannot be used.
	url  *url.URL
	user *url.Userinfo
	err  error
	// present signs, former beside it while a secret is rotated; nil does not.
	present, former *signer
}

// of tells whether the target is that of a webhook as it is.
func (t *target) of(w *notify.Webhook) bool {
	return t.made.URL == w.URL && t.made.SigningSecret == w.SigningSecret && t.made.FormerSecret == w.FormerSecret &&
		t.made.FormerSecretUntil.Equal(w.FormerSecretUntil) && t.made.Slack == w.Slack && maps.Equal(t.made.Headers, w.Headers)
}

func newTarget(w *notify.Webhook) *target {
	t := &target{made: *w, secrets: secretsOf(w), present: newSigner(w.SigningSecret), former: newSigner(w.FormerSecret)}
	t.made.Headers = maps.Clone(w.Headers)
	if t.url, t.err = parseURL(w.URL); t.err == nil {
		t.user, t.url.User = t.url.User, nil
		// The request is made of what the URL says when it is written out.
		t.url.Host = strings.TrimSuffix(t.url.Host, ":")
		t.url, t.err = parseURL(t.url.String())
	}
	return t
}

// targets remembers the targets of webhooks.
type targets struct {
	mu   sync.Mutex
	byID map[uuid.UUID]*target
}

// maxTargets bounds what is remembered, beyond which it is worked out anew.
const maxTargets = 4096

func (m *targets) get(w *notify.Webhook) *target {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.byID[w.ID]; t != nil && t.of(w) {
		return t
	}
	if len(m.byID) >= maxTargets || m.byID == nil {
		m.byID = make(map[uuid.UUID]*target)
	}
	t := newTarget(w)
	m.byID[w.ID] = t
	return t
}

// signer signs with each of some secrets.
type signer struct {
	webhooks []*standardwebhooks.Webhook
	err      error
}

// newSigner returns nil without a secret.
func newSigner(secretList string) *signer {
	var s signer
	for secret := range strings.FieldsSeq(secretList) {
		wh, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			s.err = errors.New("the signing secret cannot be read; rotate it")
		}
		s.webhooks = append(s.webhooks, wh)
	}
	if len(s.webhooks) == 0 {
		return nil
	}
	return &s
}

// signature returns the signatures of a message at an instant, separated by white
// space, the present secret's first; empty where nothing is signed.
func (t *target) signature(id string, now time.Time, body []byte) (string, error) {
	if t.present == nil {
		return "", nil
	}
	var signatures []string
	for _, s := range []*signer{t.present, t.former} {
		if s == nil || s == t.former && !now.Before(t.made.FormerSecretUntil) {
			continue
		}
		if s.err != nil {
			return "", s.err
		}
		for _, wh := range s.webhooks {
			signature, err := wh.Sign(id, now, body)
			if err != nil {
				return "", fmt.Errorf("sign the message: %w", err)
			}
			signatures = append(signatures, signature)
		}
	}
	return strings.Join(signatures, " "), nil
}
