package app_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/app"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/internal/pgtest"
	"tocsin/internal/retention"
	"tocsin/internal/seal"
	"tocsin/notify/webhook"
)

// installation is what a doctor checks: real databases, and a receiver on loopback.
type installation struct {
	app.Options

	receiver string
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return &installation{
		receiver: "http://" + listener.Addr().String() + "/s3cret",
		Options: app.Options{
			PostgresURL: pgtest.URL(t), ClickHouseURL: chtest.New(t).URL, Source: clickhouse.Exchanges(), Logger: slog.New(slog.DiscardHandler),
			EncryptionKey: base64.StdEncoding.EncodeToString([]byte("a key of 32 bytes for the doctor")),
			OutgoingAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		},
	}
}

// webhook stores a webhook whose secrets are encrypted with a key.
func (p *installation) webhook(t *testing.T, key, address string) {
	t.Helper()
	box, err := seal.New(key)
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.New()
	plain, err := json.Marshal(map[string]string{"url": address})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pgtest.Conn(t, p.PostgresURL).Exec(t.Context(), `insert into webhook
		(webhook_id, tenant_id, name, kind, secrets, url_host, signed, enabled, timeout_ms, max_concurrent, rate_per_second)
		values ($1, 'default', $2, 'generic', $3, '', false, true, 10000, 1, 0)`, id, id.String(), box.Seal(plain, "webhook/"+id.String()))
	if err != nil {
		t.Fatal(err)
	}
}

// examined returns the findings as lines "VERDICT about: text → remedy".
func (p *installation) examined(t *testing.T) (lines string, healthy bool) {
	t.Helper()
	healthy, err := app.Doctor(t.Context(), p.Options, func(f clickhouse.Finding) error {
		if f.Verdict != clickhouse.OK && f.Remedy == "" {
			t.Errorf("no remedy: %+v", f)
		}
		lines += string(f.Verdict) + " " + f.About + ": " + f.Text + " → " + f.Remedy + "\n"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(lines, "s3cret") {
		t.Errorf("a secret is shown:\n%s", lines)
	}
	return lines, healthy
}

func want(t *testing.T, lines string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(lines, part) {
			t.Errorf("%q is not in:\n%s", part, lines)
		}
	}
}

func TestDoctorFindsAHealthyReplicaHealthy(t *testing.T) {
	t.Parallel()
	p := newInstallation(t)
	p.webhook(t, p.EncryptionKey, p.receiver)
	lines, healthy := p.examined(t)
	if !healthy {
		t.Errorf("not healthy:\n%s", lines)
	}
	want(t, lines, "OK settings: valid", "OK postgres: version ", "OK schema: version ", "OK pooler: none", "OK clickhouse: version ", "OK source: table exchanges fits",
		"OK clocks: offset from Postgres's clock", "OK keys: the secrets of all 1 webhooks can be decrypted", "OK wake-up bus: postgres", "OK egress: "+strings.TrimSuffix(p.receiver, "/s3cret"))
}

// TestDoctorThatIsInterruptedFindsNoFault interrupts the examination before anything is connected to.
func TestDoctorThatIsInterruptedFindsNoFault(t *testing.T) {
	t.Parallel()
	p := newInstallation(t)
	ctx, interrupt := context.WithCancel(t.Context())
	healthy, err := app.Doctor(ctx, p.Options, func(f clickhouse.Finding) error {
		if f.Verdict != clickhouse.OK {
			t.Errorf("found %+v", f)
		}
		interrupt()
		return nil
	})
	if healthy || !errors.Is(err, context.Canceled) {
		t.Errorf("healthy is %v, %v", healthy, err)
	}
}

func TestDoctorNamesWhatIsWrongAndItsRemedy(t *testing.T) {
	t.Parallel()
	other := base64.StdEncoding.EncodeToString([]byte("another key of 32 bytes, long ag"))
	for name, c := range map[string]struct {
		change func(t *testing.T, p *installation)
		want   []string
		works  bool
	}{
		"settings": {func(_ *testing.T, p *installation) { p.EncryptionKey, p.Lease = "s3cret", 1 }, []string{"BROKEN settings: TOCSIN_LEASE", "BROKEN settings: TOCSIN_ENCRYPTION_KEY"}, false},
		"execution mode": {
			func(_ *testing.T, p *installation) { p.PostgresURL += "&default_query_exec_mode=exec" },
			[]string{"BROKEN settings: TOCSIN_POSTGRES_URL asks for default_query_exec_mode=exec"},
			false,
		},
		"no Postgres": {func(_ *testing.T, p *installation) { p.PostgresURL = "postgres://tocsin:s3cret@127.0.0.1:1/x" }, []string{"BROKEN postgres", "TOCSIN_POSTGRES_URL", "OK clickhouse"}, false},
		"read-only": {func(_ *testing.T, p *installation) {
			p.PostgresURL += "&options=-c%20default_transaction_read_only%3Don"
		}, []string{"BROKEN postgres: version ", "accepts no writes", "target_session_attrs=read-write"}, false},
		"an old schema": {func(t *testing.T, p *installation) {
			t.Helper()
			p.exec(t, `delete from goose_db_version where version_id > 20`)
		}, []string{"BROKEN postgres: the database schema is at version 20", "tocsin migrate"}, false},
		"asynchronous commits": {func(_ *testing.T, p *installation) { p.PostgresURL += "&synchronous_commit=off" }, []string{"WARN postgres: synchronous_commit is off"}, true},
		"no ClickHouse":        {func(_ *testing.T, p *installation) { p.ClickHouseURL = "http://127.0.0.1:1" }, []string{"BROKEN clickhouse", "TOCSIN_CLICKHOUSE_URL", "OK keys"}, false},
		"no table":             {func(_ *testing.T, p *installation) { p.Source.Table = "nowhere" }, []string{"BROKEN source: table: nowhere does not exist", "create the table nowhere"}, false},
		"another key":          {func(t *testing.T, p *installation) { t.Helper(); p.webhook(t, other, p.receiver) }, []string{"BROKEN keys: the secrets of 1 of 1 webhooks cannot be decrypted", "TOCSIN_ENCRYPTION_KEY"}, false},
		"no bus": {func(_ *testing.T, p *installation) {
			p.Bus = app.BusOptions{Provider: app.BusRedis, URL: "redis://127.0.0.1:1/0"}
		}, []string{"BROKEN wake-up bus: redis", "TOCSIN_BUS_URL"}, false},
		"a rule that looks back too far": {func(t *testing.T, p *installation) {
			t.Helper()
			p.Keep = retention.Keep{Alerts: 48 * time.Hour, Contents: 24 * time.Hour}
			p.exec(t, `insert into rule (rule_id, tenant_id, name, enabled, fire_mode, severity, scope, filter, title_template, message_template, targets,
					interval_seconds, look_back_seconds, re_notify_minutes, for_duration_seconds)
				values (gen_random_uuid(), 'default', 'week', true, 'PER_EXCHANGE', 'INFO', '{}', '{}', '', '', '[]', 10, 604800, 0, 0)`)
		}, []string{`BROKEN retention: the rule "week" looks back 168h0m0s, but alerts are kept only for 48h0m0s`, "increase TOCSIN_RETENTION_ALERTS"}, false},
		"a receiver without its file": {func(t *testing.T, p *installation) {
			t.Helper()
			p.webhook(t, p.EncryptionKey, p.receiver)
			p.exec(t, `update webhook set preset = 'pager-of-ours'`)
		}, []string{"BROKEN receivers: enabled webhooks for the receiver pager-of-ours, whose file this machine does not have: 2; their messages wait", "TOCSIN_RECEIVERS"}, false},
		"a private receiver": {func(t *testing.T, p *installation) {
			t.Helper()
			p.OutgoingAllow = nil
			p.webhook(t, p.EncryptionKey, p.receiver)
		}, []string{"WARN egress: http://127.0.0.1", "TOCSIN_OUTGOING_ALLOW"}, true},
		"a receiver that is away": {func(t *testing.T, p *installation) {
			t.Helper()
			p.webhook(t, p.EncryptionKey, "http://127.0.0.1:1/")
		}, []string{"WARN egress: http://127.0.0.1:1 cannot be reached", "let this machine reach it", "TOCSIN_OUTGOING_PROXY"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newInstallation(t)
			// No request leaves this machine.
			p.webhook(t, p.EncryptionKey, p.receiver)
			if name == "another key" {
				p.exec(t, `delete from webhook`)
			}
			c.change(t, p)
			lines, healthy := p.examined(t)
			if healthy != c.works {
				t.Errorf("healthy is %v:\n%s", healthy, lines)
			}
			want(t, lines, c.want...)
		})
	}
}

func (p *installation) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := pgtest.Conn(t, p.PostgresURL).Exec(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Fatal(err)
	}
}

// TestDoctorGoesOutAsDeliveriesDo has a network in which only a proxy leads to the receiver, whose
// certificate is signed by a private authority.
func TestDoctorGoesOutAsDeliveriesDo(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewUnstartedServer(http.NotFoundHandler())
	receiver.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	receiver.StartTLS()
	t.Cleanup(receiver.Close)
	var refuses atomic.Bool
	var tunnels sync.WaitGroup
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "example.com:443" || refuses.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		to, err := new(net.Dialer).DialContext(context.WithoutCancel(r.Context()), "tcp", receiver.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		tunnels.Go(func() { _, _ = io.Copy(conn, to); _ = conn.Close() })
		tunnels.Go(func() { _, _ = io.Copy(to, conn); _ = to.Close() })
	}))
	t.Cleanup(func() { proxy.Close(); tunnels.Wait() })
	p := newInstallation(t)
	// It resolves to an address at which nothing answers here.
	p.webhook(t, p.EncryptionKey, "https://example.com/s3cret")
	p.OutgoingProxy = webhook.Proxy{URL: strings.Replace(proxy.URL, "http://", "http://user:s3cret@", 1), Resolves: true}
	lines, _ := p.examined(t)
	want(t, lines, "WARN egress: https://example.com:443 cannot be reached: TLS handshake", "TOCSIN_OUTGOING_CA")
	p.OutgoingCAs = x509.NewCertPool()
	p.OutgoingCAs.AddCert(receiver.Certificate())
	lines, _ = p.examined(t)
	want(t, lines, "OK egress: https://example.com:443 can be reached")
	refuses.Store(true)
	lines, _ = p.examined(t)
	want(t, lines, "WARN egress: https://example.com:443 cannot be reached: the proxy does not connect to the receiver: it answered 403", "check TOCSIN_OUTGOING_PROXY")
}
