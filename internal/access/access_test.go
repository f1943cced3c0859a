package access_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tocsin/internal/access"
)

func TestRolesAreRanks(t *testing.T) {
	t.Parallel()
	roles := access.Roles()
	for i, have := range roles {
		for j, need := range roles {
			if have.Allows(need) != (i >= j) {
				t.Errorf("%s allows %s: %t", have, need, have.Allows(need))
			}
		}
		if !have.Allows(access.Anyone) || have.Allows("") || have.Allows("root") {
			t.Errorf("%s allows what it must not, or not what anyone may", have)
		}
	}
	for _, nobody := range []access.Role{"", "root", access.Anyone} {
		if nobody.Allows(access.Viewer) || !nobody.Allows(access.Anyone) {
			t.Errorf("%q is no role, and may do what anyone may", nobody)
		}
	}
	if _, err := access.ParseRole("anyone"); err == nil {
		t.Error("anyone is no role that somebody has")
	}
}

// cheap are parameters with which hashing is fast.
func cheap() access.Cost { return access.Cost{Time: 1, MemoryKiB: 64, Threads: 1} }

func TestPasswords(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := access.NewHasher(cheap(), 2)
	hash, err := h.Hash(ctx, "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	other, err := h.Hash(ctx, "correct horse battery")
	if err != nil || other == hash {
		t.Errorf("the same password twice: %s, %v", other, err)
	}
	dearer := access.NewHasher(access.Cost{Time: 2, MemoryKiB: 64, Threads: 1}, 2)
	for _, each := range []struct {
		name, hash, password string
		hasher               *access.Hasher
		fits, outdated       bool
	}{
		{"right", hash, "correct horse battery", h, true, false},
		{"wrong", hash, "correct horse batterY", h, false, false},
		{"empty", hash, "", h, false, false},
		{"of another cost", hash, "correct horse battery", dearer, true, true},
		{"no hash", "", "", h, false, false},
		{"too long", hash, strings.Repeat("x", 2000), h, false, false},
	} {
		fits, outdated, err := each.hasher.Verify(ctx, each.hash, each.password)
		if err != nil || fits != each.fits || outdated != each.outdated {
			t.Errorf("%s: fits %t, outdated %t, %v", each.name, fits, outdated, err)
		}
	}
	for _, bad := range []string{"x", "$argon2id$v=19$m=99999999,t=1,p=1$AAAA$AAAA", strings.Replace(hash, "argon2id", "argon2i", 1), strings.Replace(hash, "t=1", "t=0", 1)} {
		if fits, _, err := h.Verify(ctx, bad, "correct horse battery"); err == nil || fits {
			t.Errorf("%q: fits %t, %v", bad, fits, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	full := access.NewHasher(cheap(), 0)
	if _, err := full.Hash(ended, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("no slot is free: %v", err)
	}
}

func TestPasswordsThatAreTooWeak(t *testing.T) {
	t.Parallel()
	for password, code := range map[string]string{
		"":                                  "too_short",
		"eleven char":                       "too_short",
		strings.Repeat("x", 257):            "too_long",
		"\xff234567890123":                  "too_long",
		"ada.lovelace@example.com":          "guessable",
		"ADA.LOVELACE":                      "guessable",
		"ääääääääääääää":                    "",
		"aaaaaaaaaaaaaa":                    "guessable",
		"a few words are good":              "",
		strings.Repeat("correct horse", 19): "",
	} {
		fields := access.CheckPassword("password", password, "ada.lovelace@example.com")
		got := ""
		if len(fields) > 0 {
			got = fields[0].Code
		}
		if got != code {
			t.Errorf("%q: %q, want %q", password, got, code)
		}
	}
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	throttle := access.Throttle{Free: 3, First: time.Second, Most: 10 * time.Second, Forget: time.Hour}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, each := range []struct {
		failures int
		since    time.Duration
		want     time.Duration
	}{
		{0, 0, 0},
		{2, 0, 0},
		{3, 0, time.Second},
		{3, time.Second, 0},
		{4, 500 * time.Millisecond, 1500 * time.Millisecond},
		{6, 0, 8 * time.Second},
		{7, 0, 10 * time.Second},
		{1_000_000, 0, 10 * time.Second},
		{1_000_000, time.Hour, 0},
		{3, -time.Hour, time.Second}, // a clock that was set back
	} {
		if got := throttle.Wait(each.failures, now.Add(-each.since), now); got != each.want {
			t.Errorf("%d failures, %v ago: wait %v, want %v", each.failures, each.since, got, each.want)
		}
	}
	if n := throttle.Counts(9, now.Add(-time.Hour), now); n != 1 {
		t.Errorf("forgotten failures count: %d", n)
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	same := func(a, b access.Subject) bool { return a.Key == b.Key }
	if !same(access.AccountSubject("Ada@Example.com"), access.AccountSubject("ada@example.com")) {
		t.Error("an account in another case is another one")
	}
	if !same(access.AddressSubject("2001:db8::1"), access.AddressSubject("2001:db8:0:0:ffff::2")) || same(access.AddressSubject("2001:db8::1"), access.AddressSubject("2001:db8:0:1::1")) {
		t.Error("one network of IPv6 is one address, and two are two")
	}
	if !same(access.AddressSubject("::ffff:192.0.2.1"), access.AddressSubject("192.0.2.1")) || same(access.AddressSubject("192.0.2.1"), access.AddressSubject("192.0.2.2")) {
		t.Error("addresses of IPv4 differ")
	}
	if same(access.AccountSubject("x"), access.AddressSubject("x")) {
		t.Error("an account is no address")
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	token, hint := access.NewToken()
	if !access.PlausibleToken(token) || !strings.HasSuffix(token, hint) || access.PlausibleSecret(token) || len(token) != 56 {
		t.Errorf("token %q, hint %q", token, hint)
	}
	if secret := access.NewSecret(); !access.PlausibleSecret(secret) || access.PlausibleToken(secret) || secret == access.NewSecret() {
		t.Errorf("secret %q", secret)
	}
	rapid.Check(t, func(t *rapid.T) {
		code := access.NewCode()
		typed := rapid.SampledFrom([]string{strings.ToUpper(code), " " + code + "\n", strings.ReplaceAll(code, "-", ""), strings.ReplaceAll(code, "-", " ")}).Draw(t, "typed")
		if got := access.CleanCode(typed); got != code {
			t.Fatalf("%q became %q, want %q", typed, got, code)
		}
		text := rapid.String().Draw(t, "text")
		if access.PlausibleSecret(text) && len(text) != 52 {
			t.Fatalf("%q is plausible", text)
		}
	})
}

func TestEmails(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"ada@example.com": true, "a+b@localhost": true, "": false, "ada": false, "@x": false, "x@": false, "a@b@c": false, "a b@c": false,
		"a\x00@b": false, strings.Repeat("a", 250) + "@b.example": false,
	} {
		if err := access.CheckEmail(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
