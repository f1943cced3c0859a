package slackalike

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// receive checks one message.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) {
	hook, v := s.registry.find(r.PathValue("team"), r.PathValue("service"), r.PathValue("token"))
	s.answer(w, r, hook, v)
}

// receiveUnknown refuses a path that cannot belong to a webhook.
func (s *Server) receiveUnknown(w http.ResponseWriter, r *http.Request) {
	hook := Hook{Path: strings.TrimPrefix(r.URL.Path, "/services/")}
	s.answer(w, r, hook, refuse(noService, "the path is no webhook's"))
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, hook Hook, v verdict) {
	e := &Entry{
		At:        s.opts.Clock().UTC(),
		Hook:      hook.Path,
		Channel:   hook.Channel,
		App:       hook.App,
		WebhookID: r.Header.Get("webhook-id"),
		Headers:   redacted(r.Header),
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	e.Body = strings.ToValidUTF8(string(body), "\uFFFD")
	if err != nil {
		e.Reason = "the body ended early: " + err.Error()
		s.note(r, e)
		panic(http.ErrAbortHandler)
	}

	fault, misbehaves := s.registry.fault(hook.Path)
	if misbehaves {
		e.Fault = fault.Kind
		if done := s.misbehave(w, r, e, fault); done {
			return
		}
	}

	if v.accepted() && r.Method != http.MethodPost {
		v = refuse(methodNotAllowed, "a webhook takes POST, not "+r.Method)
	}
	if v.accepted() {
		if wait := s.registry.admit(hook.Path, s.opts.Clock()); wait > 0 {
			v = refuse(rateLimited, fmt.Sprintf("more than %g messages a second", s.opts.Rate))
			retryAfter(w, wait.Seconds())
		}
	}
	if v.accepted() {
		_, v = judge(r.Header.Get("Content-Type"), body)
	}
	if !v.accepted() {
		s.reply(w, r, e, v.word.status(), string(v.word), v.detail)
		return
	}

	e.Accepted = true
	if fault.Kind == FaultLoseAnswer {
		e.Reason = "accepted, but the answer was lost on request"
		s.note(r, e)
		panic(http.ErrAbortHandler)
	}
	s.reply(w, r, e, http.StatusOK, "ok", "")
}

// misbehave carries out a fault, and reports whether that was the answer.
func (s *Server) misbehave(w http.ResponseWriter, r *http.Request, e *Entry, f Fault) (done bool) {
	const asked = "asked to misbehave"
	switch f.Kind {
	case FaultSlow:
		if !s.wait(r, time.Duration(f.Seconds*float64(time.Second))) {
			e.Reason = fmt.Sprintf("the sender left before the %g s it was made to wait were over", f.Seconds)
			s.note(r, e)
			panic(http.ErrAbortHandler)
		}
		return false
	case FaultLoseAnswer:
		return false
	case FaultHang:
		s.wait(r, math.MaxInt64)
		e.Reason = asked + ": it was never answered"
		s.note(r, e)
		panic(http.ErrAbortHandler)
	case FaultDrop:
		e.Reason = asked + ": the connection was closed"
		s.note(r, e)
		panic(http.ErrAbortHandler)
	case FaultError:
		s.reply(w, r, e, f.Status, strings.ToLower(strings.ReplaceAll(http.StatusText(f.Status), " ", "_")), asked)
	case FaultRateLimited:
		retryAfter(w, f.Seconds)
		word := rateLimited
		if e.isBots() {
			word = rateLimitedAPI
		}
		s.reply(w, r, e, http.StatusTooManyRequests, string(word), asked)
	default:
		word := refusal(f.Kind)
		s.reply(w, r, e, word.status(), string(word), asked)
	}
	return true
}

// wait reports whether the time passed while the sender was still connected.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	case <-s.closing:
		return false
	}
}

// reply records and then sends an answer of one word, as Slack does; for a bot in JSON.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, e *Entry, status int, word, reason string) {
	if e.isBots() && status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
		status = http.StatusOK
	}
	e.Status, e.Answer, e.Reason = status, word, reason
	s.note(r, e)
	if e.isBots() {
		respond(w, status, map[string]any{"ok": false, "error": word})
		return
	}
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, word)
}

func (s *Server) note(r *http.Request, e *Entry) {
	if err := s.record.add(e); err != nil {
		s.opts.Logger.WarnContext(r.Context(), "a message is not in the journal", slog.Any("error", err))
	}
}

// retryAfter sets Retry-After to whole seconds, at least one.
func retryAfter(w http.ResponseWriter, seconds float64) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(seconds)))))
}

// redacted copies headers without credentials.
func redacted(h http.Header) http.Header {
	out := h.Clone()
	for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
		if out.Get(name) != "" {
			out.Set(name, "(hidden)")
		}
	}
	return out
}
