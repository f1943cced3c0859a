// Package webhook makes the bodies of messages and sends them over HTTP, or as e-mails to a mail
// server (mail.go).
//
// A [Sender] makes exactly one attempt. It does not follow redirects, and its transport does not
// repeat a request when a reused connection dies. The result is one [notify.Outcome], decided by
// one table (outcome.go). An attempt that sent no byte is marked as such, because its repeat cannot
// be a duplicate.
//
// A person enters the URL, and its owner decides what a name resolves to. So addresses are checked
// when a connection is dialled, after name resolution (dialer.go). Loopback, private, link-local,
// metadata, shared and multicast networks, and their IPv6 forms, are refused unless the
// configuration allows them. A forward proxy is used only if it is configured, never from the
// environment; the guard checks the receiver before the proxy is asked for it.
//
// URLs, headers, signing secrets, client certificates and passwords are secrets. No error text and
// no stored answer contains one, even if the receiver sends it back.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"code.dny.dev/ssrf"

	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/rules"
)

// Bounds of an answer, in bytes.
const (
	maxResponse = 4 << 10
	// maxDrain is how much of an answer is read so that its connection can be used again.
	maxDrain          = 64 << 10
	maxResponseHeader = 64 << 10
	// maxLongAnswer bounds an answer that repeats the message and contains its id.
	maxLongAnswer = 256 << 10
)

// The headers of Standard Webhooks, in the spelling of net/http.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// Options configure a [Sender].
type Options struct {
	// Version of Tocsin, for the User-Agent.
	Version string
	// Now is the clock for timestamps and durations.
	Now func() time.Time
	// AllowedNetworks may be called although they are not public.
	AllowedNetworks []netip.Prefix
	// RootCAs are used to verify receivers; nil means those of the system.
	RootCAs *x509.CertPool
	// Proxy is the forward proxy; none by default.
	Proxy Proxy
	// SlackAPI is the base URL of Slack's Web API, [DefaultSlackAPI] if empty.
	SlackAPI string
	// Presets are the receivers that webhooks may name.
	Presets *preset.Set
}

// Sender makes attempts over HTTP. It is safe for concurrent use.
type Sender struct {
	dialer    *dialer
	tls       *tls.Config
	transport *http.Transport
	now       func() time.Time
	agent     string
	slackAPI  *url.URL
	presets   *preset.Set
	targets   targets
}

var _ notify.Sender = (*Sender)(nil)

// New returns a sender. [Sender.Close] releases its connections.
func New(o Options) (*Sender, error) {
	if o.Now == nil {
		return nil, errors.New("webhook sender: a clock is required")
	}
	slackAPI, err := slackAPIURL(o.SlackAPI)
	if err != nil {
		return nil, err
	}
	const sessions = 1024
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs, ClientSessionCache: tls.NewLRUClientSessionCache(sessions)}
	dialer, err := newDialer(o.AllowedNetworks, o.Proxy, config)
	if err != nil {
		return nil, err
	}
	s := &Sender{dialer: dialer, tls: config, transport: newTransport(dialer, config), now: o.Now, agent: "tocsin/" + o.Version, slackAPI: slackAPI, presets: o.Presets}
	s.targets.transport, s.targets.presetSecrets = s.transportFor, s.presetSecrets
	return s, nil
}

// transportFor returns the transport that presents a client certificate. Each certificate has its
// own connections.
func (s *Sender) transportFor(certificate *tls.Certificate) *http.Transport {
	if certificate == nil {
		return s.transport
	}
	config := s.tls.Clone()
	config.Certificates = []tls.Certificate{*certificate}
	config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	return newTransport(s.dialer, config)
}

// Close closes idle connections. Connections in use are closed when their attempts end.
func (s *Sender) Close() {
	s.targets.close()
	s.transport.CloseIdleConnections()
}

// Send makes one attempt, within the webhook's timeout.
func (s *Sender) Send(ctx context.Context, d *notify.Delivery) notify.Outcome {
	now := d.At
	if now.IsZero() {
		now = s.now()
	}
	t := s.targets.get(&d.Webhook)
	if p := s.presets.Get(d.Webhook.Preset); p != nil {
		if missing := p.Missing(d.Webhook.Inputs); len(missing) > 0 {
			return refused(t, missingInputsError(missing))
		}
		if p.Mails() {
			return s.mail(ctx, t, p, d, now)
		}
		if p.Protocol == preset.ProtocolJira && d.Body != nil {
			return s.jira(ctx, t, p, d, now)
		}
	}
	r, err := s.request(d, t, now)
	if err != nil {
		return refused(t, err)
	}
	if err := d.CheckClaim(); err != nil {
		return stopped(err)
	}
	return s.attempt(ctx, t, &d.Webhook, r, now)
}

// refused is the outcome of an attempt whose request cannot be made.
func refused(t *target, err error) notify.Outcome {
	verdict := notify.VerdictRefused
	if _, missing := errors.AsType[missingInputsError](err); missing || errors.Is(err, errUnknownPreset) {
		verdict = notify.VerdictGone
	}
	return notify.Outcome{Verdict: verdict, NothingSent: true, Error: t.secrets.redact(err.Error())}
}

// stopped is the outcome of an attempt whose claim expired before anything was done.
func stopped(err error) notify.Outcome { return notify.NotMade("Not sent: " + err.Error()) }

// attempt makes a call and checks the result.
func (s *Sender) attempt(ctx context.Context, t *target, w *notify.Webhook, r *http.Request, at time.Time) notify.Outcome {
	o, _ := s.exchange(ctx, t, w, r, at)
	return o
}

// exchange is an attempt that also returns the answer as it was read.
func (s *Sender) exchange(parent context.Context, t *target, w *notify.Webhook, r *http.Request, at time.Time) (o notify.Outcome, answered []byte) {
	began := s.now()
	defer func() { o.Duration = max(s.now().Sub(began), 0) }()
	timeout := timeoutOf(w)
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	limit, transport, p := int64(maxResponse), t.transport, s.presets.Get(w.Preset)
	switch {
	case w.Slack.Used():
		limit, transport = maxLongAnswer, s.transport
	case p != nil && p.Captures():
		limit = maxLongAnswer
	}
	wait := func(status int) time.Duration {
		if w.Slack.Used() || p != nil && p.ReadsBody(status) {
			return timeout
		}
		return bodyWait
	}
	head, body, nothingSent, err := call(ctx, transport, r, reading{limit, wait}) //nolint:bodyclose // call has closed it
	if err != nil {
		verdict, why := unanswered(parent, ctx, err, nothingSent, timeout)
		return notify.Outcome{Verdict: verdict, NothingSent: nothingSent, Error: t.secrets.redact(why)}, nil
	}
	o = judge(w, p, answer{head.StatusCode, head.Header, body}, t.secrets, at)
	o.Head = t.secrets.responseHead(head)
	return o, body
}

func timeoutOf(w *notify.Webhook) time.Duration {
	if w.Timeout <= 0 {
		return notify.DefaultTimeout
	}
	return w.Timeout
}

// unanswered returns the verdict of an attempt without an answer, and the reason: its caller
// stopped it, it timed out, or its call failed. The context of the attempt is asked for its deadline,
// because a call may end at the same deadline before the context does.
func unanswered(caller, attempt context.Context, err error, nothingSent bool, timeout time.Duration) (verdict notify.Verdict, why string) {
	deadline, bounded := attempt.Deadline()
	late := bounded && time.Until(deadline) <= 0
	switch stopped := caller.Err(); {
	case errors.Is(context.Cause(caller), notify.ErrFenced) && nothingSent:
		return notify.VerdictNotMade, "Not sent: " + context.Cause(caller).Error()
	case errors.Is(stopped, context.Canceled) && nothingSent:
		return notify.VerdictRetry, "Stopped before the receiver answered"
	case errors.Is(stopped, context.Canceled):
		return notify.VerdictUnknown, "Stopped before the receiver answered"
	case late && nothingSent:
		return notify.VerdictRetry, fmt.Sprintf("Could not connect within %v", timeout)
	case late:
		return notify.VerdictRetry, fmt.Sprintf("No response within %v", timeout)
	case errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork):
		return notify.VerdictRetry, "The URL leads to an address that is not public; an administrator can allow its network with TOCSIN_OUTGOING_ALLOW"
	}
	return notify.VerdictRetry, rules.CleanText(err.Error(), maxError)
}

const maxError = 500

// request makes the request of a delivery.
func (s *Sender) request(d *notify.Delivery, t *target, now time.Time) (*http.Request, error) {
	if d.Webhook.Preset != "" && s.presets.Get(d.Webhook.Preset) == nil {
		return nil, errUnknownPreset
	}
	if d.Body == nil {
		return nil, errors.New("there is no body to send")
	}
	if app := d.Webhook.Slack; app.Used() {
		place := map[string]any{"channel": app.Channel}
		if app.Threads && d.Thread != "" {
			place["thread_ts"] = d.Thread
			if d.Reason == notify.ReasonEscalated || d.Reason == notify.ReasonSnoozeEnded {
				// It should reach people who do not follow the thread.
				place["reply_broadcast"] = true
			}
		}
		return s.slackRequest(app, slackCall{method: "chat.postMessage", body: d.Body, id: d.NotificationID.String(), place: place})
	}
	if t.err != nil {
		return nil, t.err
	}
	if d.Webhook.Preset != "" {
		r, err := s.presetRequest(d)
		if err != nil {
			return nil, err
		}
		s.common(r.Header, d, now)
		return r, nil
	}
	id := d.MessageID()
	header := make(http.Header, len(d.Webhook.Headers)+6)
	for name, value := range d.Webhook.Headers {
		if !reserved(name) {
			header.Set(name, value)
		}
	}
	if password, _ := t.user.Password(); t.user != nil && header.Get("Authorization") == "" {
		header.Set("Authorization", basicAuth(t.user.Username(), password))
	}
	s.common(header, d, now)
	signature, err := t.signature(id, now, d.Body.Content)
	if err != nil {
		return nil, err
	}
	if signature != "" {
		header.Set(headerSignature, signature)
	}
	return post(t.url, header, d.Body.Content), nil
}

// common sets the headers of every message.
func (s *Sender) common(header http.Header, d *notify.Delivery, now time.Time) {
	header.Set("Content-Type", d.Body.ContentType)
	header.Set("User-Agent", s.agent)
	header.Set(headerID, d.MessageID())
	header.Set(headerTimestamp, strconv.FormatInt(now.Unix(), 10))
}

// post makes a request. It has no GetBody, so that no transport can repeat it.
func post(to *url.URL, header http.Header, content []byte) *http.Request {
	return &http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
	}
}

func basicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// parseURL parses a webhook's URL. Its errors do not quote it.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the URL cannot be read; it must have the form https://host/path")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("the URL must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, errors.New("the URL names no host; it must have the form https://host/path")
	case !utf8.ValidString(u.Host): // by escapes such as %FF
		return nil, errors.New("the host is not valid text; write its name without escapes")
	}
	return u, nil
}
