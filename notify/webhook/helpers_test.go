package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tocsin/notify"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ = flag.Bool("update", false, "write golden files")

// instant is the clock of tests that depend on times.
func instant() time.Time { return time.Unix(1_795_244_523, 999_000_000).UTC() }

// newSender returns a sender that may call this machine.
func newSender(t *testing.T, change ...func(*webhook.Options)) *webhook.Sender {
	t.Helper()
	o := webhook.Options{Version: "1.2.3", Now: time.Now, AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, f := range change {
		f(&o)
	}
	s, err := webhook.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// receiver starts a server on this machine.
func receiver(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

func delivery(url string, change ...func(*notify.Delivery)) *notify.Delivery {
	d := &notify.Delivery{
		NotificationID: uuid.UUID{0xab, 15: 1}, Reason: notify.ReasonFired, Attempt: 1, Alert: template.Samples()[0],
		Webhook: notify.Webhook{ID: uuid.UUID{2}, Kind: notify.KindGeneric, URL: url, Timeout: 5 * time.Second},
		Body:    &notify.Body{ContentType: "application/json", Content: []byte(`{"a":1}`)},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

func slackKind(d *notify.Delivery) { d.Webhook.Kind = notify.KindSlack }

func within(timeout time.Duration) func(*notify.Delivery) {
	return func(d *notify.Delivery) { d.Webhook.Timeout = timeout }
}

func answer(status int, header map[string]string, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func send(t *testing.T, s *webhook.Sender, d *notify.Delivery) notify.Outcome {
	t.Helper()
	t.Helper()
	return s.Send(context.Background(), d)
}

// golden compares a body with a golden file; go test -update writes the file.
func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, body, "", "  "); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	pretty.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
		t.Errorf("%s differs; go test -update writes it again (-want +got):\n%s", path, diff)
	}
}
