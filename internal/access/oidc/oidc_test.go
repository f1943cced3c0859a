package oidc_test

import (
	"strings"
	"testing"

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
