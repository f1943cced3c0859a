package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func testSite() fstest.MapFS {
	return fstest.MapFS{
		"index.html":             {Data: []byte("<!doctype html><title>Tocsin</title>")},
		"theme.js":               {Data: []byte("theme()")},
		"assets/main-Ab12.js":    {Data: []byte("main()")},
		"assets/main-Ab12.js.br": {Data: []byte("brotli of main")},
		"assets/main-Ab12.js.gz": {Data: []byte("gzip of main")},
		"assets/inter.woff2":     {Data: []byte("font")},
		"links.json":             {Data: []byte(`{"/rules/new": ["<new>", "<form>"], "/rules/$ruleId": ["<edit>"]}`)},
	}
}

func get(t *testing.T, h http.Handler, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandlerServes(t *testing.T) {
	h, err := newHandler(testSite())
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		Status                              int
		ContentType, Cache, Encoding, Start string
	}
	page := answer{200, "text/html; charset=utf-8", "no-cache", "", "<!doctype"}
	script := answer{200, "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "", "main()"}
	tests := map[string]struct {
		target, accept string
		want           answer
	}{
		"the root is the page":                    {"/", "", page},
		"a page of the application":               {"/inbox/0192f0c1-0000-7000-8000-000000000000?q=x", "", page},
		"climbing out ends at the page":           {"/../../etc/passwd", "", page},
		"an unhashed file is asked for each time": {"/theme.js", "", answer{200, "text/javascript; charset=utf-8", "no-cache", "", "theme()"}},
		"a hashed file is kept":                   {"/assets/main-Ab12.js", "", script},
		"Brotli goes before gzip":                 {"/assets/main-Ab12.js", "gzip, deflate, br", answer{200, script.ContentType, script.Cache, "br", "brotli of main"}},
		"gzip where Brotli is refused":            {"/assets/main-Ab12.js", "br;q=0, gzip;q=0.5", answer{200, script.ContentType, script.Cache, "gzip", "gzip of main"}},
		"plain for a coding that is unknown":      {"/assets/main-Ab12.js", "zstd", script},
		"plain where no compressed form is":       {"/assets/inter.woff2", "br, gzip", answer{200, "font/woff2", script.Cache, "", "font"}},
		"a missing asset is not a page":           {"/assets/main-Old1.js", "", answer{404, "text/plain; charset=utf-8", "no-cache", "", "404 page"}},
		"the build's list has no address":         {"/links.json", "", page},
		"a compressed form has no address":        {"/assets/main-Ab12.js.br", "", answer{404, "text/plain; charset=utf-8", "no-cache", "", "404 page"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := get(t, h, tt.target, "Accept-Encoding", tt.accept)
			got := answer{
				r.Code, r.Header().Get("Content-Type"), r.Header().Get("Cache-Control"),
				r.Header().Get("Content-Encoding"), r.Body.String()[:len(tt.want.Start)],
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The response header has what an address needs, also in a response that says that nothing has
// changed.
func TestHandlerNamesWhatAPageNeeds(t *testing.T) {
	h, err := newHandler(testSite())
	if err != nil {
		t.Fatal(err)
	}
	tag := get(t, h, "/").Header().Get("ETag")
	tests := map[string]struct {
		target  string
		headers []string
		want    []string
	}{
		"a path that is written out":       {"/rules/new", nil, []string{"<new>, <form>"}},
		"one with a segment for any":       {"/rules/0192f0c1?x=y", nil, []string{"<edit>"}},
		"more segments":                    {"/rules/new/more", nil, nil},
		"a page without code of its own":   {"/inbox", nil, nil},
		"a file":                           {"/theme.js", []string{"Cookie", "a=b"}, nil},
		"a browser that may be signed in":  {"/inbox", []string{"Cookie", "a=b"}, []string{firstAnswers}},
		"a page that the browser has kept": {"/rules/new", []string{"If-None-Match", tag}, []string{"<new>, <form>"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, get(t, h, tt.target, tt.headers...).Header().Values("Link")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHandlerAnswersNotModifiedPerForm(t *testing.T) {
	h, err := newHandler(testSite())
	if err != nil {
		t.Fatal(err)
	}
	const target = "/assets/main-Ab12.js"
	tag := get(t, h, target, "Accept-Encoding", "br").Header().Get("ETag")
	if got := get(t, h, target, "Accept-Encoding", "br", "If-None-Match", tag).Code; got != http.StatusNotModified {
		t.Errorf("the same form: got %d", got)
	}
	if got := get(t, h, target, "If-None-Match", tag).Code; got != http.StatusOK {
		t.Errorf("another form: got %d", got)
	}
}

func TestHandlerRefusesOtherMethods(t *testing.T) {
	h, err := newHandler(testSite())
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("x")))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("got %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestSiteWithoutPageIsRefused(t *testing.T) {
	if _, err := newHandler(fstest.MapFS{"theme.js": {Data: []byte("x")}}); err == nil {
		t.Error("accepted")
	}
}

func TestSiteWithAnUnreadableListIsRefused(t *testing.T) {
	site := testSite()
	site["links.json"] = &fstest.MapFile{Data: []byte("{")}
	if _, err := newHandler(site); err == nil {
		t.Error("accepted")
	}
}

// The binary serves a page whether or not the application was built before, and the page may run
// only its own scripts.
func TestHandlerServesWhatIsEmbedded(t *testing.T) {
	r := get(t, Handler(), "/")
	if r.Code != http.StatusOK || !strings.Contains(r.Body.String(), "Tocsin") {
		t.Errorf("got %d: %s", r.Code, r.Body)
	}
	policy := r.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "script-src") {
		t.Errorf("got policy %q", policy)
	}
}
