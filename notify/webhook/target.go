package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"tocsin/notify"
)

// target is what can be computed once for the calls of a webhook, because there may be thousands of
// them in a second. It is valid while the fields that it was made from do not change.
type target struct {
	made    notify.Webhook
	secrets secrets
	// url is the URL of requests, without user. err says why it cannot be used.
	url  *url.URL
	user *url.Userinfo
	err  error
	// present signs with the present secret, and former with the former one while a secret is
	// rotated; nil does not sign.
	present, former *signer
	// transport sends the requests. own says that only this target uses it.
	transport *http.Transport
	own       bool
}

// of reports whether the target is still valid for a webhook.
func (t *target) of(w *notify.Webhook) bool {
	return t.made.URL == w.URL && t.made.SigningSecret == w.SigningSecret && t.made.FormerSecret == w.FormerSecret &&
		t.made.FormerSecretUntil.Equal(w.FormerSecretUntil) && t.made.Slack == w.Slack && t.made.ClientCertificate == w.ClientCertificate &&
		t.made.Preset == w.Preset && maps.Equal(t.made.Inputs, w.Inputs) && maps.Equal(t.made.Headers, w.Headers)
}

// newTarget returns the target of a webhook; more are secrets of its preset.
func newTarget(w *notify.Webhook, more []string) *target {
	t := &target{made: *w, secrets: secretsOf(w, more), present: newSigner(w.SigningSecret), former: newSigner(w.FormerSecret)}
	t.made.Headers, t.made.Inputs = maps.Clone(w.Headers), maps.Clone(w.Inputs)
	if w.Preset != "" {
		// Each event may have its own URL.
		return t
	}
	if t.url, t.err = parseURL(w.URL); t.err == nil {
		t.user, t.url.User = t.url.User, nil
		// The request uses the URL in the form in which it is written.
		t.url.Host = strings.TrimSuffix(t.url.Host, ":")
		t.url, t.err = parseURL(t.url.String())
	}
	return t
}

// withTransport gives the target its transport.
func (t *target) withTransport(of func(*tls.Certificate) *http.Transport) *target {
	if t.made.ClientCertificate == "" {
		t.transport = of(nil)
		return t
	}
	certificate, err := tls.X509KeyPair([]byte(t.made.ClientCertificate), []byte(t.made.ClientCertificate))
	if err != nil {
		t.err = errors.New("the client certificate cannot be read; enter certificate and key again, as PEM")
		return t
	}
	t.transport, t.own = of(&certificate), true
	return t
}

// close closes the connections that only this target uses.
func (t *target) close() {
	if t.own {
		t.transport.CloseIdleConnections()
	}
}

// targets caches the targets of webhooks.
type targets struct {
	// transport returns a transport that presents a certificate.
	transport func(*tls.Certificate) *http.Transport
	// presetSecrets returns the texts of a preset's webhook that must not be shown.
	presetSecrets func(*notify.Webhook) []string

	mu   sync.Mutex
	byID map[uuid.UUID]*target
}

// close closes the connections of targets that have their own, and clears the cache.
func (m *targets) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.byID {
		t.close()
	}
	m.byID = nil
}

// maxTargets bounds the cache; beyond it all targets are computed again.
const maxTargets = 4096

func (m *targets) get(w *notify.Webhook) *target {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.byID[w.ID]; t != nil && t.of(w) {
		return t
	}
	if len(m.byID) >= maxTargets || m.byID == nil {
		for _, t := range m.byID {
			t.close()
		}
		m.byID = make(map[uuid.UUID]*target)
	}
	if former := m.byID[w.ID]; former != nil {
		former.close()
	}
	var more []string
	if w.Preset != "" {
		more = m.presetSecrets(w)
	}
	t := newTarget(w, more).withTransport(m.transport)
	m.byID[w.ID] = t
	return t
}

// signer signs with each of several secrets.
type signer struct {
	webhooks []*standardwebhooks.Webhook
	err      error
}

// newSigner returns a signer, or nil without a secret.
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

// signature returns the signatures of a message at an instant, separated by spaces, that of the
// present secret first; empty if nothing is signed.
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
