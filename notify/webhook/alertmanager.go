package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tocsin/notify"
	"tocsin/notify/preset"
)

// maxStatus bounds Alertmanager's description of itself, in bytes. It contains the configuration.
const maxStatus = 8 << 20

// maxAsking bounds a question. Receivers that do not answer must not hold up the questions to others.
const maxAsking = 10 * time.Second

// Instance asks the Alertmanager of a webhook when its process began, which names the process. The
// request is made like that of a message, with its credentials. The error names the remedy.
func (s *Sender) Instance(parent context.Context, w *notify.Webhook) (string, error) {
	p := s.presets.Get(w.Preset)
	if p == nil || p.Protocol != preset.ProtocolAlertmanager {
		return "", errors.New("the receiver is not an Alertmanager")
	}
	t := s.targets.get(w)
	to, err := p.Target(preset.Fired, preset.About{}, w.Inputs)
	if err != nil {
		return "", errors.New(t.secrets.redact(err.Error()))
	}
	address, err := parseURL(strings.TrimSuffix(to.URL.String(), preset.AlertmanagerPath) + preset.AlertmanagerStatus)
	if err != nil {
		return "", err
	}
	header := http.Header{"User-Agent": {s.agent}, "Accept": {"application/json"}}
	for name, value := range w.Headers {
		if !reserved(name) {
			header.Set(name, value)
		}
	}
	for name := range to.Header {
		header.Set(name, to.Header.Get(name))
	}
	timeout := min(timeoutOf(w), maxAsking)
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	request := &http.Request{Method: http.MethodGet, URL: address, Host: address.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header}
	head, body, nothingSent, err := call(ctx, t.transport, request, reading{maxStatus, func(int) time.Duration { return timeout }}) //nolint:bodyclose // call has closed it
	if err != nil {
		_, why := unanswered(parent, ctx, err, nothingSent, timeout)
		return "", errors.New(t.secrets.redact(why))
	}
	if head.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s answered %d; allow Tocsin to read it", preset.AlertmanagerStatus, head.StatusCode)
	}
	var status struct{ Uptime time.Time }
	if err := json.Unmarshal(body, &status); err != nil || status.Uptime.IsZero() {
		return "", fmt.Errorf("GET %s did not answer with the uptime of an Alertmanager; check the URL", preset.AlertmanagerStatus)
	}
	return status.Uptime.UTC().Format(time.RFC3339Nano), nil
}
