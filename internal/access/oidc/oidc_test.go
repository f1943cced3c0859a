package oidc_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tocsin/internal/access"
	"tocsin/internal/access/oidc"
)

func TestOnlyPathsAreReturnedTo(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/inbox", "/inbox?q=a%20b&state=FIRING", "/rules/1"} {
		if got := oidc.CleanReturn(path); got != path {
			t.Errorf("%q became %q", path, got)
		}
	}
	for _, path := range []string{"", "inbox", "//evil.example", "/\\evil.example", "https://evil.example/", "/\tx", "/\nx", "javascript:alert(1)", "/" + strings.Repeat("x", 3000)} {
		if got := oidc.CleanReturn(path); got != "/" {
			t.Errorf("%q became %q", path, got)
		}
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	good := oidc.Options{Issuer: "https://login.example", ClientID: "tocsin", RedirectURL: "https://tocsin.example/x"}
	p, err := oidc.New(good)
	if err != nil || p.Name != "login.example" {
		t.Fatalf("%+v, %v", p, err)
	}
	for want, change := range map[string]func(*oidc.Options){
		"TOCSIN_OIDC_ISSUER":     func(o *oidc.Options) { o.Issuer = "login.example" },
		"TOCSIN_OIDC_CLIENT_ID":  func(o *oidc.Options) { o.ClientID = "" },
		"TOCSIN_PUBLIC_URL":      func(o *oidc.Options) { o.RedirectURL = "" },
		"TOCSIN_OIDC_ROLE_CLAIM": func(o *oidc.Options) { o.RoleMap = map[string]access.Role{"x": access.Admin} },
		"unknown role":           func(o *oidc.Options) { o.RoleClaim, o.RoleMap = "groups", map[string]access.Role{"x": "root"} },
	} {
		o := good
		change(&o)
		if _, err := oidc.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestNobodyWaitsForOthersAtAProviderThatHangs signs people in at a provider that does not answer, and then at one that does.
func TestNobodyWaitsForOthersAtAProviderThatHangs(t *testing.T) {
	t.Parallel()
	answers := make(chan struct{})
	var asked atomic.Int32
	var url string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-answers
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"issuer":"` + url + `","authorization_endpoint":"` + url + `/a","token_endpoint":"` + url + `/t","jwks_uri":"` + url + `/k"}`))
	}))
	t.Cleanup(server.Close)
	url = server.URL
	p, err := oidc.New(oidc.Options{Issuer: url, ClientID: "tocsin", RedirectURL: "https://tocsin.example/x", Now: time.Now, Seal: func(plain []byte) []byte { return plain }})
	if err != nil {
		t.Fatal(err)
	}
	var patient sync.WaitGroup
	for range 3 {
		patient.Go(func() {
			if _, _, err := p.Begin(t.Context(), "/"); err != nil {
				t.Error(err)
			}
		})
	}
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, _, err := p.Begin(impatient, "/"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 3*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	close(answers)
	patient.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
}
