package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/preset/presettest"
	"tocsin/notify/webhook"
)

func alertmanagerAt(address string) notify.Webhook {
	return notify.Webhook{
		ID: uuid.UUID{2}, Kind: notify.KindGeneric, Preset: "alertmanager", Timeout: time.Second,
		Inputs: map[string]string{"server": address, "user": "tocsin", "password": secretToken},
	}
}

func alertmanagerSender(t *testing.T) (*webhook.Sender, *preset.Set) {
	t.Helper()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	return newSender(t, func(o *webhook.Options) { o.Presets = set }), set
}

// TestInstanceOfAlertmanager checks that a process has one name, and another process another name.
func TestInstanceOfAlertmanager(t *testing.T) {
	t.Parallel()
	sender, set := alertmanagerSender(t)
	service := presettest.New(set.Get("alertmanager"))
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	w := alertmanagerAt(server.URL + "/prefix")
	ask := func() string {
		t.Helper()
		name, err := sender.Instance(t.Context(), &w)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	first := ask()
	if again := ask(); again != first || first == "" {
		t.Errorf("the same process is %q and %q", first, again)
	}
	service.Restart()
	if second := ask(); second == first {
		t.Errorf("after a restart it is still %q", second)
	}
}

// TestInstanceErrorsNameTheRemedy checks what is said of a server that does not answer as
// Alertmanager does, without its credentials.
func TestInstanceErrorsNameTheRemedy(t *testing.T) {
	t.Parallel()
	sender, _ := alertmanagerSender(t)
	for name, c := range map[string]struct {
		answers http.HandlerFunc
		want    string
	}{
		"a proxy that lets only messages through": {answer(http.StatusForbidden, nil, secretToken), "GET /api/v2/status answered 403; allow Tocsin to read it"},
		"another service":                         {answer(http.StatusOK, nil, `{"status":"ok"}`), "did not answer with the uptime of an Alertmanager; check the URL"},
		"no JSON":                                 {answer(http.StatusOK, nil, secretToken), "did not answer with the uptime of an Alertmanager; check the URL"},
		"no answer":                               {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "No response within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			type seen struct{ method, path, user, password string }
			asked := make(chan seen, 1)
			server := receiver(t, func(rw http.ResponseWriter, r *http.Request) {
				user, password, _ := r.BasicAuth()
				asked <- seen{r.Method, r.URL.Path, user, password}
				c.answers(rw, r)
			})
			w := alertmanagerAt(server.URL)
			_, err := sender.Instance(t.Context(), &w)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secretToken) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if got, want := <-asked, (seen{http.MethodGet, "/api/v2/status", "tocsin", secretToken}); got != want {
				t.Errorf("asked %v, want %v", got, want)
			}
		})
	}
	w := alertmanagerAt("http://127.0.0.1:1")
	w.Preset = "pagerduty"
	if _, err := sender.Instance(t.Context(), &w); err == nil {
		t.Error("a receiver without instances was asked")
	}
}
