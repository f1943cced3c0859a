package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/access"
	"tocsin/internal/app"
	"tocsin/notify"
)

// digestReceiver keeps the bodies that it gets.
type digestReceiver struct {
	t   *testing.T
	url string

	mu     sync.Mutex
	ids    []string
	bodies [][]byte
}

func newDigestReceiver(t *testing.T) *digestReceiver {
	t.Helper()
	r := &digestReceiver{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ids, r.bodies = append(r.ids, request.Header.Get("webhook-id")), append(r.bodies, body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// webhook stores a webhook for the receiver.
func (r *digestReceiver) webhook(w *world) uuid.UUID {
	r.t.Helper()
	made, err := w.db.Webhooks().Create(r.t.Context(), tenant, notify.Webhook{
		Name: "digests", Kind: notify.KindGeneric, URL: r.url, Enabled: true, Timeout: notify.DefaultTimeout, MaxConcurrent: notify.DefaultMaxConcurrent,
		Events: notify.Events(),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return made.ID
}

// silenceDigested is what the tests read of a digest.
type silenceDigested struct {
	Type string `json:"type"`
	Data struct {
		Digest struct {
			ID      string         `json:"id"`
			Size    int            `json:"size"`
			Reasons map[string]int `json:"reasons"`
			Silence struct {
				ID, Name, From, Until string
			} `json:"silence"`
		} `json:"digest"`
		Alerts []string `json:"alerts"`
	} `json:"data"`
}

// all returns what has arrived.
func (r *digestReceiver) all() (list []silenceDigested) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, body := range r.bodies {
		var d silenceDigested
		if err := json.Unmarshal(body, &d); err != nil {
			r.t.Fatal(err)
		}
		if d.Type == "digest" && !strings.HasPrefix(r.ids[i], d.Data.Digest.ID) {
			r.t.Errorf("digest %s is sent as %s", d.Data.Digest.ID, r.ids[i])
		}
		list = append(list, d)
	}
	return list
}

// digest writes the digests that are due, and delivers everything.
func (w *world) digest() {
	w.t.Helper()
	if _, err := w.db.Outbox().DigestSilences(w.t.Context(), nil, func(string) bool { return true }); err != nil {
		w.t.Fatal(err)
	}
	w.deliverAll()
}

// wantGuided holds that the receiver gets one digest in the form that the guide shows.
func (r *digestReceiver) wantGuided(w *world, shown string) {
	r.t.Helper()
	w.digest()
	got := r.all()
	if len(got) != 1 || got[0].Type != "digest" || got[0].Data.Digest.Size != 2 || got[0].Data.Digest.Silence.Name != "ERP 9.1" {
		r.t.Fatalf("it got %+v, want one digest of two messages", got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(shape(r.t, []byte(shown)), shape(r.t, r.bodies[0])); diff != "" {
		r.t.Errorf("the guide shows another form (-guide +sent):\n%s", diff)
	}
}

// shape returns the names and kinds in a JSON document, without the content of exchanges.
func shape(t *testing.T, text []byte) any {
	t.Helper()
	var whole any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	var of func(v any) any
	of = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			fields := map[string]any{}
			for name, value := range v {
				if fields[name] = of(value); name == "exchange" {
					fields[name] = "object"
				}
			}
			return fields
		case []any:
			list := make([]any, len(v))
			for i := range v {
				list[i] = of(v[i])
			}
			return list
		case string:
			return "text"
		default:
			return v
		}
	}
	return of(whole)
}

// TestASilenceSendsADigestAtItsEnd follows a digest from an operator's request to the receiver, by two
// replicas that look for it themselves, and to what the API shows afterwards.
func TestASilenceSendsADigestAtItsEnd(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newDigestReceiver(t)
	rule := w.rule(r.webhook(w))
	w.armed(rule, w.ch.Now(t)-int64(time.Minute))
	base, _ := w.guarded()
	operator := newCaller(t, base).signIn(adminEmail, adminPassword).withToken("operator", access.Operator)
	made := operator.must(http.StatusCreated, http.MethodPost, "/silences", map[string]any{
		"name": "ERP maintenance", "match": map[string]any{"rules": []string{rule.ID.String()}}, "digest": true,
		"endsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
	if made.body["digest"] != true || made.body["digests"] != 0.0 {
		t.Errorf("made %v", made.body)
	}
	within := w.raise("one", "two")
	w.doTo(within[0], alerts.Acknowledge)
	w.digest()
	operator.must(http.StatusOK, http.MethodPost, "/silences/"+made.text("id")+"/end", nil)
	w.doTo(within[1], alerts.Resolve) // nobody was notified of the alert: it names the silence, and comes after its end
	for range 2 {
		w.replica(func(o *app.Options) { o.Roles = []app.Role{app.RoleDispatch} })
	}
	w.until("the digest is delivered", func() bool {
		return len(r.all()) > 0 && len(w.column(`select status from notification_status where status = 'DELIVERED'`)) > 0
	})
	w.digest()
	got := r.all()
	if len(got) != 1 || got[0].Data.Digest.Size != 3 || !cmp.Equal(got[0].Data.Digest.Reasons, map[string]int{"FIRED": 2, "ACKNOWLEDGED": 1}) {
		t.Fatalf("it got %+v, want one digest of three messages", got)
	}
	d := got[0].Data
	if d.Digest.Silence.ID != made.text("id") || len(d.Alerts) != 3 || !slices.Contains(d.Alerts, within[1].String()) {
		t.Errorf("the digest lists %+v", d)
	}
	w.wantColumn("messages", `select n.reason || ' ' || s.status from notification n join notification_status s using (notification_id) order by n.reason, s.status`,
		"ACKNOWLEDGED SUPPRESSED", "DIGEST DELIVERED", "FIRED SUPPRESSED", "FIRED SUPPRESSED", "RESOLVED SUPPRESSED")
	listed := func(query string) (ids []any) {
		t.Helper()
		list, _ := operator.must(http.StatusOK, http.MethodGet, "/notifications?"+query, nil).body["items"].([]any)
		for _, item := range list {
			n, _ := item.(map[string]any)
			ids = append(ids, n["id"])
		}
		return ids
	}
	if ids := listed("digestOfSilenceId=" + made.text("id")); len(ids) != 1 || ids[0] != d.Digest.ID {
		t.Errorf("the digests of the silence are %v, want %s", ids, d.Digest.ID)
	}
	if ids := listed("digestId=" + d.Digest.ID); len(ids) != 3 {
		t.Errorf("the digest lists %v", ids)
	}
	if after := operator.must(http.StatusOK, http.MethodGet, "/silences/"+made.text("id"), nil); after.body["digests"] != 1.0 || after.body["suppressed"] != 4.0 {
		t.Errorf("afterwards %v", after.body)
	}
	// A person sends the digest again: it lists the same.
	operator.must(http.StatusOK, http.MethodPost, "/notifications/"+d.Digest.ID+"/retry", nil)
	w.until("it has arrived again", func() bool { return len(r.all()) == 2 })
}
