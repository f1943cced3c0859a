package webhook_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tocsin/notify"
	"tocsin/notify/slack"
	"tocsin/notify/webhook"
)

// What precedes the response is no response.
func TestInformationalAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		heads   string
		verdict notify.Verdict
	}{
		"100 and 200":      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", notify.VerdictDelivered},
		"102, 103 and 204": {"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", notify.VerdictDelivered},
		"103 and 400":      {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", notify.VerdictRefused},
		"103 and the end":  {"HTTP/1.1 103 Early Hints\r\n\r\n", notify.VerdictRetry},
		"103 for ever":     {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100_000), notify.VerdictRetry},
	} {
		t.Run(name, func(t *testing.T) {
			address := raw(t, func(conn net.Conn) {
				if readRequest(bufio.NewReader(conn)) == nil {
					_, _ = io.WriteString(conn, c.heads)
				}
			})
			if o := send(t, newSender(t), delivery(address)); o.Verdict != c.verdict || o.NothingSent {
				t.Errorf("outcome %+v, want %v", o, c.verdict)
			}
		})
	}
}

// After a status of success nothing that happens to the body matters, and before it nothing counts
// as delivered.
func TestAnswersThatEndEarly(t *testing.T) {
	for name, c := range map[string]struct {
		head    string
		slack   bool
		verdict notify.Verdict
	}{
		"status line only":          {"HTTP/1.1 200 OK\r\n", false, notify.VerdictRetry},
		"part of the status line":   {"HTTP/1.1 20", false, notify.VerdictRetry},
		"success, body cut off":     {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", false, notify.VerdictDelivered},
		"success, chunk cut off":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\npart", false, notify.VerdictDelivered},
		"success, bad chunk":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", false, notify.VerdictDelivered},
		"Slack, success, cut off":   {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"ok\":fal", true, notify.VerdictDelivered},
		"refusal, body cut off":     {"HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\npart", false, notify.VerdictRefused},
		"gone, body cut off":        {"HTTP/1.1 410 Gone\r\nContent-Length: 100\r\n\r\n", false, notify.VerdictGone},
		"Slack, word cut off":       {"HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nno_serv", true, notify.VerdictRefused},
		"two lengths":               {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", false, notify.VerdictRetry},
		"larger than what is kept":  {"HTTP/1.1 503 Busy\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200_000), false, notify.VerdictRetry},
		"larger, and a success":     {"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200_000), false, notify.VerdictDelivered},
		"a status of four digits":   {"HTTP/1.1 2000 OK\r\n\r\n", false, notify.VerdictRetry},
		"a protocol of the future":  {"HTTP/3.7 200 OK\r\n\r\n", false, notify.VerdictDelivered},
		"nothing at all, after all": {"", false, notify.VerdictRetry},
	} {
		t.Run(name, func(t *testing.T) {
			address := raw(t, func(conn net.Conn) {
				if readRequest(bufio.NewReader(conn)) == nil {
					_, _ = io.WriteString(conn, c.head)
				}
			})
			d := delivery(address)
			if c.slack {
				slackKind(d)
			}
			if o := send(t, newSender(t), d); o.Verdict != c.verdict || o.NothingSent || len(o.Response) > 4<<10 {
				t.Errorf("outcome %+v, want %v", o, c.verdict)
			}
		})
	}
}

// The status decides what became of the message: a body that never ends is not waited for, whether
// nothing or more and more arrives.
func TestABodyThatNeverEndsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"silent": "", "talkative": "x"} {
		for status, want := range map[int]notify.Verdict{http.StatusOK: notify.VerdictDelivered, http.StatusBadRequest: notify.VerdictRefused} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				t.Parallel()
				server := receiver(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.WriteHeader(status)
					for r.Context().Err() == nil {
						_, _ = io.WriteString(w, more)
						_ = http.NewResponseController(w).Flush()
						select {
						case <-time.After(20 * time.Millisecond):
						case <-r.Context().Done():
						}
					}
				})
				o := send(t, newSender(t), delivery(server.URL, within(5*time.Minute)))
				if o.Verdict != want || o.StatusCode != status || o.Duration > time.Minute {
					t.Errorf("outcome %+v after %v, want %v within seconds", o, o.Duration, want)
				}
			})
		}
	}
}

// A receiver may close the connection before it has read the request: the outcome says truthfully
// whether a byte had left, and the attempt is repeated either way.
func TestResetBeforeTheRequestIsRead(t *testing.T) {
	address := raw(t, func(conn net.Conn) { reset(conn) })
	big := func(d *notify.Delivery) { d.Body.Content = []byte(`"` + strings.Repeat("x", 4<<20) + `"`) }
	for range 20 {
		if o := send(t, newSender(t), delivery(address, big)); o.Verdict != notify.VerdictRetry || o.StatusCode != 0 || o.Error == "" {
			t.Fatalf("outcome %+v", o)
		}
	}
	// It responds before it has read all of it.
	hasty := raw(t, func(conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, 1000))
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
	if o := send(t, newSender(t), delivery(hasty, big)); o.Verdict != notify.VerdictRefused || o.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("outcome %+v", o)
	}
}

// TestServerOfOtherProtocols has a server that does not use HTTP/1.1.
func TestServerOfOtherProtocols(t *testing.T) {
	pair := httptest.NewUnstartedServer(nil)
	pair.StartTLS()
	t.Cleanup(pair.Close)
	roots := x509.NewCertPool()
	roots.AddCert(pair.Certificate())
	address := raw(t, func(conn net.Conn) {
		config := &tls.Config{Certificates: pair.TLS.Certificates, NextProtos: []string{"other"}, MinVersion: tls.VersionTLS12}
		_ = tls.Server(conn, config).HandshakeContext(t.Context())
	})
	s := newSender(t, func(o *webhook.Options) { o.RootCAs = roots })
	o := send(t, s, delivery(strings.Replace(address, "http:", "https:", 1)))
	if o.Verdict != notify.VerdictRetry || !o.NothingSent || !strings.Contains(o.Error, "application protocol") {
		t.Errorf("outcome %+v", o)
	}
}

// Each error code of Slack has a row, with every status under which it may occur.
func TestSlackWordsDecide(t *testing.T) {
	for verdict, words := range map[notify.Verdict]string{
		notify.VerdictRefused: "invalid_payload invalid_blocks invalid_blocks_format invalid_attachments no_text too_many_attachments msg_too_long " +
			"msg_blocks_too_long user_not_found message_not_found cant_update_message edit_window_closed block_mismatch",
		notify.VerdictGone: "no_service no_service_id no_active_hooks no_team team_disabled invalid_token channel_not_found channel_is_archived " +
			"action_prohibited posting_to_general_channel_denied not_in_channel is_archived not_authed invalid_auth account_inactive token_revoked " +
			"token_expired missing_scope not_allowed_token_type no_permission org_login_required ekm_access_denied restricted_action " +
			"restricted_action_read_only_channel team_access_not_granted",
		notify.VerdictRetry:     "rollup_error internal_error fatal_error service_unavailable request_timeout",
		notify.VerdictThrottled: "ratelimited rate_limited message_limit_exceeded",
	} {
		for word := range strings.FieldsSeq(words) {
			if got, known := slack.Judge(word); got != verdict || !known {
				t.Errorf("Judge(%q) = %v, %t; want %v", word, got, known, verdict)
			}
			for _, status := range []int{200, 400, 403, 404, 410} {
				body := word
				if status == http.StatusOK {
					body = fmt.Sprintf(`{"ok":false,"error":%q}`, word)
				}
				server := receiver(t, answer(status, nil, body))
				if o := send(t, newSender(t), delivery(server.URL, slackKind)); o.Verdict != verdict || !strings.Contains(o.Error, word) {
					t.Errorf("%d %s: %+v, want %v", status, body, o, verdict)
				}
			}
		}
	}
}
