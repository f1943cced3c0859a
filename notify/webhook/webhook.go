// Package webhook makes the bodies of messages and sends them over HTTP.
//
// A [Sender] makes one attempt and no more: redirects are not followed, and no
// request is sent a second time when a reused connection dies (see package wire).
// What came of it is one [notify.Outcome], decided in one table (outcome.go). An
// attempt of which no byte left the process is marked as such, because its repeat
// cannot be a duplicate.
//
// A URL is given by a person, and names resolve to whatever their owner likes,
// so addresses are judged when a connection is dialled, after name resolution:
// loopback, private, link-local, metadata, shared and multicast networks, and
// IPv6 forms of them, are refused unless configured as allowed. No proxy is
// taken from the environment, because a proxy would dial in our place.
//
// URLs, headers and signing secrets are secrets. No error text, no kept answer
// shows one, even where the receiver sends it back.
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
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"code.dny.dev/ssrf"

	"tocsin/notify"
	"tocsin/notify/webhook/wire"
	"tocsin/rules"
)

// Bounds of an answer, in bytes.
const (
	maxResponse = 4 << 10
	// maxDrain is how much of an answer is read so that its connection can be used again.
	maxDrain          = 64 << 10
	maxResponseHeader = 64 << 10
)

// idleFor is half of how long a connection waits for its next use at most. Many
// servers close theirs after five seconds, and who sends at that very moment never
// learns whether the message was read.
const idleFor = 2 * time.Second

// The headers of Standard Webhooks, spelled as net/http sends them.
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
	// RootCAs verify receivers; nil means those of the system.
	RootCAs *x509.CertPool
	// SlackAPI is where the methods of Slack's Web API are, [DefaultSlackAPI] when empty.
	SlackAPI string
}

// Sender makes attempts over HTTP. It is safe for concurrent use.
type Sender struct {
	client   *wire.Client
	now      func() time.Time
	agent    string
	slackAPI *url.URL
	targets  targets
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
	var v4, v6 []netip.Prefix
	for _, p := range o.AllowedNetworks {
		switch {
		case !p.IsValid():
			return nil, errors.New("webhook sender: an allowed network is not valid; write it as 10.0.0.0/8")
		case p.Addr().Is4():
			v4 = append(v4, p)
		default:
			v6 = append(v6, p)
		}
	}
	guard := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: guard.Safe}
	return &Sender{
		now:      o.Now,
		agent:    "tocsin/" + o.Version,
		slackAPI: slackAPI,
		client: wire.New(wire.Options{
			Dial: dialer.DialContext, TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs}, HandshakeTimeout: 10 * time.Second,
			MaxHead: maxResponseHeader, MaxDrain: maxDrain, MaxIdle: 1024, MaxIdlePerHost: 256, IdleFor: idleFor,
		}),
	}, nil
}

// Close closes the connections that wait for their next use. Those in use are
// closed when their attempts end.
func (s *Sender) Close() { s.client.Close() }

// Prepare makes the request of an attempt.
func (s *Sender) Prepare(d *notify.Delivery) notify.Request {
	now := d.At
	if now.IsZero() {
		now = s.now()
	}
	r := s.prepare(d, now)
	r.webhook, r.at = &d.Webhook, now
	return r
}

// request is an attempt that is ready to be made.
type request struct {
	sender  *Sender
	webhook *notify.Webhook
	// at is the instant of the signature.
	at      time.Time
	http    *http.Request
	content []byte
	// err says why there is no request. It shows no URL.
	err error
}

// Send makes one attempt, within the webhook's timeout.
func (r *request) Send(ctx context.Context) notify.Outcome {
	begin := r.sender.now()
	o := r.attempt(ctx)
	o.Duration = max(r.sender.now().Sub(begin), 0)
	return o
}

func (r *request) attempt(parent context.Context) notify.Outcome {
	s, w := r.sender, r.webhook
	secrets := s.targets.get(w).secrets
	if r.err != nil {
		return notify.Outcome{Verdict: notify.VerdictRefused, NothingSent: true, Error: secrets.redact(r.err.Error())}
	}
	timeout := w.Timeout
	if timeout <= 0 {
		timeout = notify.DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	limit := int64(maxResponse)
	if w.Slack.Used() {
		limit = maxSlackAnswer
	}
	got, nothingSent, err := s.client.Call(ctx, r.http, limit)
	if err != nil {
		verdict, why := unanswered(parent.Err(), ctx.Err(), err, nothingSent, timeout)
		return notify.Outcome{Verdict: verdict, NothingSent: nothingSent, Error: secrets.redact(why)}
	}
	o := judge(w, answer{got.Head.StatusCode, got.Head.Header, got.Body}, secrets, r.at)
	o.Head = secrets.responseHead(got.Head)
	return o
}

// unanswered tells what an attempt without answer is, and why there is none: it was
// stopped, its time is over, or its call failed.
func unanswered(stopped, over, err error, nothingSent bool, timeout time.Duration) (verdict notify.Verdict, why string) {
	switch {
	case errors.Is(stopped, context.Canceled) && nothingSent:
		return notify.VerdictRetry, "Stopped before the receiver answered"
	case errors.Is(stopped, context.Canceled):
		return notify.VerdictUnknown, "Stopped before the receiver answered"
	case errors.Is(over, context.DeadlineExceeded) && nothingSent:
		return notify.VerdictRetry, fmt.Sprintf("Could not connect within %v", timeout)
	case errors.Is(over, context.DeadlineExceeded):
		return notify.VerdictRetry, fmt.Sprintf("No answer within %v", timeout)
	case errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork):
		return notify.VerdictRetry, "The URL leads to an address that is not public; an administrator can allow its network by TOCSIN_OUTGOING_ALLOW"
	}
	return notify.VerdictRetry, rules.CleanText(err.Error(), maxError)
}

const maxError = 500

// prepare makes the request of a delivery.
func (s *Sender) prepare(d *notify.Delivery, now time.Time) *request {
	if d.Body == nil {
		return &request{sender: s, err: errors.New("there is no body to send")}
	}
	if app := d.Webhook.Slack; app.Used() {
		return s.slackRequest(app, slackCall{
			method: "chat.postMessage", body: d.Body, id: d.NotificationID.String(), place: map[string]string{"channel": app.Channel},
		})
	}
	t := s.targets.get(&d.Webhook)
	if t.err != nil {
		return &request{sender: s, err: t.err}
	}
	content := d.Body.Content
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
	header.Set("Content-Type", d.Body.ContentType)
	header.Set("User-Agent", s.agent)
	header.Set(headerID, id)
	header.Set(headerTimestamp, strconv.FormatInt(now.Unix(), 10))
	signature, err := t.signature(id, now, content)
	if err != nil {
		return &request{sender: s, err: err}
	}
	if signature != "" {
		header.Set(headerSignature, signature)
	}
	return &request{sender: s, http: post(t.url, header, content), content: content}
}

// post makes a request.
func post(to *url.URL, header http.Header, content []byte) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
	}
	if len(content) == 0 {
		r.Body = http.NoBody
	}
	return r
}

func basicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// parseURL reads a webhook's URL. Its errors do not repeat it.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the URL cannot be read")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("the URL must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, errors.New("the URL names no host")
	}
	return u, nil
}
