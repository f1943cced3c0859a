package api_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tocsin/api"
)

// TestLargeAnswersAreCompressed also requests what is never compressed.
func TestLargeAnswersAreCompressed(t *testing.T) {
	b := newBench(t)
	const many = 60
	var one string
	for i := range many {
		one = b.do("POST", "/api/v1/rules", fmt.Sprintf(`{"name":"rule %02d","fireMode":"PER_EXCHANGE","severity":"INFO"}`, i)).want(201).Header().Get("Location")
	}
	ask := func(path, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Host = "localhost:8080"
		if accept != "" {
			r.Header.Set("Accept-Encoding", accept)
		}
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return w
	}

	plain := ask("/api/v1/rules", "")
	small := ask("/api/v1/rules", "gzip, deflate, br")
	if coding := small.Header().Get("Content-Encoding"); coding != "gzip" || small.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("a list of %d bytes has the coding %q and varies by %q", plain.Body.Len(), coding, small.Header().Get("Vary"))
	}
	if plain.Header().Get("Content-Encoding") != "" || small.Body.Len()*4 > plain.Body.Len() {
		t.Errorf("%d bytes became %d", plain.Body.Len(), small.Body.Len())
	}
	unpacked, err := gzip.NewReader(small.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil || string(text) != plain.Body.String() {
		t.Errorf("the compressed answer is another one: %v", err)
	}

	for _, path := range []string{one, "/", "/healthz"} {
		if got := ask(path, "gzip").Header().Get("Content-Encoding"); got != "" {
			t.Errorf("%s has the coding %q", path, got)
		}
	}
	if got := ask(one, "gzip").Header().Get("ETag"); got != `"1"` {
		t.Errorf("the tag is %s", got)
	}
}

func TestStreamsAreNotCompressed(t *testing.T) {
	b := newBench(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.serve()+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	// A client that asks for a coding itself gets the answer as it was sent.
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	head := make([]byte, len("retry: 2000"))
	if _, err := io.ReadFull(answer.Body, head); err != nil || answer.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(string(head), "retry: ") {
		t.Errorf("%q with the coding %q: %v", head, answer.Header.Get("Content-Encoding"), err)
	}
}

func TestNamesOfRules(t *testing.T) {
	b := newBench(t)
	if got := strings.TrimSpace(b.do("GET", "/api/v1/rules/names", "").want(200).Body.String()); got != `{"items":[]}` {
		t.Errorf("without rules: %s", got)
	}
	for _, body := range []string{
		`{"name":"b","fireMode":"PER_EXCHANGE","severity":"INFO"}`, `{"name":"a","fireMode":"PER_EXCHANGE","severity":"INFO","enabled":false}`,
	} {
		b.do("POST", "/api/v1/rules", body).want(201)
	}
	var got api.RuleNames
	if err := json.Unmarshal(b.do("GET", "/api/v1/rules/names", "").want(200).Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Items) != 2 || got.Items[0].Name != "a" || got.Items[0].Enabled || !got.Items[1].Enabled {
		t.Errorf("%+v", got.Items)
	}
}
