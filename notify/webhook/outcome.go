package webhook

import (
	"bytes"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/slack"
	"tocsin/rules"
)

// judge turns an answer into an outcome:
//
//	2xx                            delivered; of Slack, unless it says "ok": false
//	429, 503 with Retry-After      throttled: the whole webhook waits
//	408, 425, 5xx                  retry
//	401, 403, 404, not of Slack    retry: a receiver that was deployed badly answers so
//	410                            gone: the endpoint takes no message any more
//	3xx, other 4xx                 refused
//
// Slack's own words take precedence over the status if that is 4xx, or 2xx with JSON. If a bot's
// call gets an answer that is not the Web API's, it comes from something in between, and a later
// attempt may reach the API. The table of a preset takes precedence over the status; p is nil if
// there is none.
//
// The outcome contains no secret.
func judge(w *notify.Webhook, p *preset.Preset, a answer, secrets secrets, now time.Time) notify.Outcome {
	o := notify.Outcome{
		StatusCode: a.status,
		Response:   rules.CleanText(secrets.redact(clean(a.body[:min(len(a.body), maxResponse)])), maxResponse),
	}
	o.RetryAfter = retryAfter(a.header.Get("Retry-After"), now)
	o.Verdict = byStatus(w.Kind, a.status, o.RetryAfter)
	said, remedy := "", ""
	switch {
	case p != nil:
		j := p.Judge(a.status, a.header, a.body, preset.Judgement{Verdict: o.Verdict, Wait: o.RetryAfter}, now)
		o.Verdict, o.RetryAfter, o.Reference, remedy = j.Verdict, j.Wait, secrets.reference(j.Reference), j.Remedy
	case w.Slack.Used():
		if o.Verdict, said, o.Posted = byWebAPI(o.Verdict, a); slack.ThreadGone(said) {
			o.Verdict, o.Reference = notify.VerdictRetry, new(string)
		}
	// With a status of success, only JSON can say that the message was not posted.
	case w.Kind == notify.KindSlack && (o.Verdict != notify.VerdictDelivered || isObject(a.body)):
		said = slack.Word(string(a.body))
		o.Verdict = bySlack(o.Verdict, a.status, said)
	}
	if o.Verdict != notify.VerdictDelivered {
		o.Error = explain(a.status, secrets.redact(said), a.header)
		if remedy != "" {
			o.Error += ": " + remedy
		}
	}
	return o
}

// answer is an answer of a receiver.
type answer struct {
	status int
	header http.Header
	// body is the beginning of the body.
	body []byte
}

func byStatus(kind notify.WebhookKind, status int, wait time.Duration) notify.Verdict {
	switch {
	case status >= 200 && status <= 299:
		return notify.VerdictDelivered
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && wait > 0:
		return notify.VerdictThrottled
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		return notify.VerdictRetry
	case kind == notify.KindGeneric && (status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound):
		return notify.VerdictRetry
	case status == http.StatusGone:
		return notify.VerdictGone
	default:
		return notify.VerdictRefused
	}
}

func bySlack(byStatus notify.Verdict, status int, said string) notify.Verdict {
	if said == "" || status == http.StatusTooManyRequests || status >= 500 {
		return byStatus
	}
	if verdict, known := slack.Judge(said); known {
		return verdict
	}
	if byStatus == notify.VerdictDelivered {
		// The message was not posted, for a reason that is not known to be permanent.
		return notify.VerdictRetry
	}
	return byStatus
}

func isObject(response []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(response), []byte("{")) }

// explain says what the receiver answered and what to do about it.
func explain(status int, said string, header http.Header) string {
	text := "The receiver answered " + strconv.Itoa(status)
	if name := http.StatusText(status); name != "" {
		text += " " + name
	}
	if said != "" {
		text += ": " + said
		if remedy := slack.Remedy(said); remedy != "" {
			text += ": " + remedy
		}
	}
	if status >= 300 && status <= 399 {
		text += ": redirects are not followed; enter the URL that it leads to"
		if to := redirectHost(header.Get("Location")); to != "" {
			text += ", at " + to
		}
	}
	return text
}

// redirectHost returns the host of a redirect, because the rest may contain a token.
func redirectHost(location string) string {
	u, err := parseURL(location)
	if err != nil {
		return ""
	}
	return rules.CleanText(u.Scheme+"://"+u.Host, 200)
}

// maxRetryAfter bounds the pause that a receiver can ask for, like MaxHold of
// [notify.DefaultPolicy].
const maxRetryAfter = 24 * time.Hour

// retryAfter parses a Retry-After header, in seconds or as a date. It returns 0 if there is none,
// if it is invalid, or if it has passed.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if math.IsNaN(seconds) || seconds <= 0 {
			return 0
		}
		return time.Duration(math.Ceil(min(seconds, maxRetryAfter.Seconds()))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
