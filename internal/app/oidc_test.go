package app_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tocsin/internal/access"
	"tocsin/internal/app"
	"tocsin/internal/pgtest"
)

// provider is an OpenID Connect provider at which every user is already signed in: discovery, keys,
// authorization codes with PKCE, tokens.
type provider struct {
	t      testing.TB
	url    string
	key    *rsa.PrivateKey
	client struct{ id, secret string }

	mu sync.Mutex
	// claims are those of the next user; change may break a token.
	claims map[string]any
	change func(claims map[string]any)
	codes  map[string]url.Values
	denies bool
}

func newProvider(tb testing.TB) *provider {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	p := &provider{t: tb, key: key, codes: map[string]url.Values{}}
	p.client.id, p.client.secret = "tocsin", "the client's secret"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.describe)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	server := httptest.NewServer(mux)
	tb.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *provider) answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (p *provider) describe(w http.ResponseWriter, _ *http.Request) {
	p.answer(w, map[string]any{
		"issuer": p.url, "authorization_endpoint": p.url + "/authorize", "token_endpoint": p.url + "/token", "jwks_uri": p.url + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (p *provider) keys(w http.ResponseWriter, _ *http.Request) {
	encode := base64.RawURLEncoding.EncodeToString
	p.answer(w, map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
		"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != p.client.id || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		!strings.Contains(q.Get("scope"), "openid") {
		http.Error(w, "not a request of this client", http.StatusBadRequest)
		return
	}
	answer := url.Values{"state": {q.Get("state")}}
	if p.denies {
		answer.Set("error", "access_denied")
	} else {
		code := rand.Text()
		p.codes[code] = q
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	asked, known := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	secret, _ = url.QueryUnescape(secret)
	if id != p.client.id || secret != p.client.secret || !known || base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{
		"iss": p.url, "aud": p.client.id, "nonce": asked.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
	}
	maps.Copy(claims, p.claims)
	if p.change != nil {
		p.change(claims)
	}
	p.answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.sign(claims)})
}

func (p *provider) sign(claims map[string]any) string {
	encode := base64.RawURLEncoding.EncodeToString
	body, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	text := encode([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	return text + "." + encode(signature)
}

// next sets the next user.
func (p *provider) next(claims map[string]any, change func(map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims, p.change = claims, change
}

// elsewhere runs a replica that trusts p.
func (w *world) elsewhere(p *provider, o app.OIDCOptions, change ...func(*app.Options)) string {
	w.t.Helper()
	listener, err := new(net.ListenConfig).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	o.Issuer, o.ClientID, o.ClientSecret = p.url, p.client.id, p.client.secret
	base, _ := w.guarded(append([]func(*app.Options){func(options *app.Options) {
		options.Listen, options.PublicURL, options.Access.OIDC = address, "http://"+address, o
	}}, change...)...)
	return base
}

// comeIn signs in at the provider and returns the page on which the browser ends up.
func (c *caller) comeIn(returnTo string) *url.URL {
	c.t.Helper()
	return c.visit(c.base + "/api/auth/oidc/start?return=" + url.QueryEscape(returnTo))
}

func (c *caller) visit(target string) *url.URL {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.Request.URL
}

func TestPeopleComeFromAProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newProvider(t)
	base := w.elsewhere(p, app.OIDCOptions{
		Name: "Example", RoleClaim: "realm_access.roles", GroupsClaim: "groups", DefaultRole: access.Viewer,
		RoleMap: map[string]access.Role{"ops": access.Operator, "platform": access.Admin},
	})
	how := newCaller(t, base).must(http.StatusOK, http.MethodGet, "/session", nil)
	if got := fmt.Sprint(how.body["provider"]); got != "map[name:Example url:/api/auth/oidc/start]" {
		t.Errorf("provider %s", got)
	}
	claims := func(subject string, roles ...any) map[string]any {
		return map[string]any{"sub": subject, "email": subject + "@example.com", "name": subject, "realm_access": map[string]any{"roles": roles}}
	}
	p.next(claims("grace", "ops", "unknown"), nil)
	grace := newCaller(t, base)
	if end := grace.comeIn("/rules?q=x"); end.Path != "/rules" || end.RawQuery != "q=x" {
		t.Errorf("ended up at %s", end)
	}
	me := grace.must(http.StatusOK, http.MethodGet, "/me", nil)
	if me.text("email") != "grace@example.com" || me.text("role") != "operator" || me.text("tenant") != tenant {
		t.Errorf("me: %v", me.body)
	}
	// The same person again, with other roles and another address.
	changed := claims("grace", "platform")
	changed["email"] = "grace@elsewhere.example"
	changed["groups"] = []any{"sre", "sre", 7, strings.Repeat("x", 201), "a\x00b", "integration"}
	p.next(changed, nil)
	again := newCaller(t, base)
	again.comeIn("//evil.example")
	if me := again.must(http.StatusOK, http.MethodGet, "/me", nil); me.text("role") != "admin" || me.text("id") != grace.must(http.StatusOK, http.MethodGet, "/me", nil).text("id") {
		t.Errorf("me, later: %v", me.body)
	}
	w.wantColumn("groups that can be kept", `select array_to_string(groups, ' ') from account where email = 'grace@example.com'`, "integration sre")
	// The provider decides who may sign in; a password of their own does not get a user around
	// that.
	again.must(http.StatusConflict, http.MethodPut, "/me/password", map[string]any{"newPassword": "my very own password"})
	w.wantColumn("passwords", `select email from account where issuer is not null and password_hash is not null`)
	ada := newCaller(t, base).signIn(adminEmail, adminPassword)
	ada.must(http.StatusNoContent, http.MethodPut, "/users/"+me.text("id")+"/password", map[string]any{"password": "of an administrator"})
	newCaller(t, base).signIn("grace@example.com", "of an administrator").must(http.StatusOK, http.MethodPut, "/me/password",
		map[string]any{"currentPassword": "of an administrator", "newPassword": "my very own password"})
	p.next(claims("linus"), nil)
	linus := newCaller(t, base)
	linus.comeIn("/")
	if me := linus.must(http.StatusOK, http.MethodGet, "/me", nil); me.text("role") != "viewer" {
		t.Errorf("without a role by the claim: %v", me.body)
	}
	w.wantColumn("audit log", `select actor || ' ' || via || ' ' || action || ' ' || object_kind from audit where via = 'oidc' order by audit_id limit 2`,
		"grace@example.com oidc create user", "grace@example.com oidc request session")
}

// TestASignInUndoesNoEditOfItsUser lets a provider give a user another role while an administrator
// disables the user: they stay disabled, and keep the name they then have.
func TestASignInUndoesNoEditOfItsUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recognition := w.db.Accounts().Recognition(true, true, true)
	eve := access.NewAccount{TenantID: tenant, Email: "eve@example.com", Name: "Eve", Role: access.Operator, Issuer: "https://i.example", Subject: "eve"}
	if _, err := recognition.Recognise(t.Context(), eve); err != nil {
		t.Fatal(err)
	}
	edit, err := pgtest.Conn(t, w.pgURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := edit.Exec(t.Context(), `update account set disabled = true, name = 'Eve, gone' where email = 'eve@example.com'`); err != nil {
		t.Fatal(err)
	}
	recognised := make(chan error, 1)
	go func() {
		changed := eve
		changed.Role = access.Editor
		account, err := recognition.Recognise(t.Context(), changed)
		if err == nil && (!account.Disabled || account.Role != access.Editor) {
			err = fmt.Errorf("recognised %+v", account)
		}
		recognised <- err
	}()
	w.until("the sign-in waits for the edit", func() bool {
		return len(w.column(`select 'waits' from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)) > 0
	})
	if err := edit.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the person is recognised", recognised); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("the account", `select name || ' ' || role || ' ' || disabled from account where email = 'eve@example.com'`, "Eve, gone editor true")
}

// TestNobodyIsRecognisedWithoutPostgres takes away the database that holds sessions.
func TestNobodyIsRecognisedWithoutPostgres(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newProvider(t)
	base := w.elsewhere(p, app.OIDCOptions{DefaultRole: access.Viewer})
	ada := newCaller(t, base).signIn(adminEmail, adminPassword)
	p.next(map[string]any{"sub": "grace", "email": "grace@example.com"}, nil)
	w.exec(`alter table account rename to account_away`)
	w.exec(`alter table sign_in_failure rename to sign_in_failure_away`)
	credentials := map[string]any{"email": adminEmail, "password": adminPassword}
	for _, ask := range []struct {
		by           *caller
		method, path string
		body         any
	}{
		{ada, http.MethodGet, "/me", nil},
		{ada, http.MethodGet, "/status", nil},
		{ada, http.MethodGet, "/session", nil},
		{newCaller(t, base), http.MethodGet, "/session", nil},
		{newCaller(t, base), http.MethodPost, "/session", credentials},
		{ada, http.MethodDelete, "/session", nil},
	} {
		got := ask.by.must(http.StatusServiceUnavailable, ask.method, ask.path, ask.body)
		if detail := got.text("detail"); detail != "Your identity cannot be checked now; try again" {
			t.Errorf("%s %s: %q", ask.method, ask.path, detail)
		}
	}
	if got := newCaller(t, base).comeIn("/").Query().Get("sign-in-problem"); got != "unavailable" {
		t.Errorf("from the provider: %q", got)
	}
	w.exec(`alter table account_away rename to account`)
	w.exec(`alter table sign_in_failure_away rename to sign_in_failure`)
	ada.must(http.StatusOK, http.MethodGet, "/me", nil)
}

// TestACodeHoldsWhoeverComesInBefore has a user who signs in at the provider before there is an
// administrator.
func TestACodeHoldsWhoeverComesInBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newProvider(t)
	base := w.elsewhere(p, app.OIDCOptions{DefaultRole: access.Viewer}, func(o *app.Options) { o.Access.AdminEmail, o.Access.AdminPassword = "", "" })
	p.next(map[string]any{"sub": "grace", "email": "grace@example.com"}, nil)
	newCaller(t, base).comeIn("/")
	w.wantColumn("users", `select email || ' ' || role from account`, "grace@example.com viewer")
	if err := w.db.Access().Purge(t.Context(), time.Hour, 0); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("codes", `select count(*)::text from set_up_code`, "1")
	needed := func(want bool) {
		t.Helper()
		if how := newCaller(t, base).must(http.StatusOK, http.MethodGet, "/session", nil); how.body["setupNeeded"] != want {
			t.Errorf("how to sign in: %v", how.body)
		}
	}
	needed(true)
	// The settings create the first user, and none later.
	_, logged := w.guarded()
	code := regexp.MustCompile(`set_up_code=(\S+)`).FindStringSubmatch(logged.String())
	if code == nil {
		t.Fatalf("no code in the log:\n%s", logged)
	}
	form := map[string]any{"code": code[1], "email": adminEmail, "name": "Ada", "password": adminPassword}
	newCaller(t, base).must(http.StatusOK, http.MethodPost, "/setup", form)
	needed(false)
	if got := newCaller(t, base).must(http.StatusConflict, http.MethodPost, "/setup", form); got.text("detail") != "There is already an administrator; sign in" {
		t.Errorf("set up once more: %v", got.body)
	}
	w.wantColumn("users", `select email || ' ' || role from account order by email`, adminEmail+" admin", "grace@example.com viewer")
	// A disabled user cannot sign in.
	w.exec(`update account set disabled = true where role = 'admin'`)
	needed(true)
}

func TestWhomAProviderCannotLetIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newProvider(t)
	base := w.elsewhere(p, app.OIDCOptions{DefaultRole: access.Viewer})
	good := map[string]any{"sub": "grace", "email": "grace@example.com"}
	for _, each := range []struct {
		name, want string
		claims     map[string]any
		change     func(map[string]any)
	}{
		{"an address that has a password", "email-taken", map[string]any{"sub": "x", "email": strings.ToUpper(adminEmail)}, nil},
		{"no address", "provider", map[string]any{"sub": "x"}, nil},
		{"no subject", "provider", map[string]any{"email": "grace@example.com"}, nil},
		{"a subject that cannot be stored", "provider", map[string]any{"sub": "a\x00b", "email": "grace@example.com"}, nil},
		{"a subject that is too long", "provider", map[string]any{"sub": rand.Text() + strings.Repeat("x", 9000), "email": "grace@example.com"}, nil},
		{"another nonce", "provider", good, func(c map[string]any) { c["nonce"] = "other" }},
		{"for another client", "provider", good, func(c map[string]any) { c["aud"] = "other" }},
		{"of another issuer", "provider", good, func(c map[string]any) { c["iss"] = "https://evil.example" }},
		{"expired", "provider", good, func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() }},
	} {
		p.next(each.claims, each.change)
		c := newCaller(t, base)
		if got := c.comeIn("/inbox").Query().Get("sign-in-problem"); got != each.want {
			t.Errorf("%s: %q, want %q", each.name, got, each.want)
		}
		c.must(http.StatusUnauthorized, http.MethodGet, "/me", nil)
	}
	p.next(good, nil)
	p.denies = true
	if got := newCaller(t, base).comeIn("/").Query().Get("sign-in-problem"); got != "cancelled" {
		t.Errorf("denied: %q", got)
	}
	p.denies = false

	// The response for one browser is used in another one that has begun to sign in, too.
	begin := func(c *caller) string {
		c.http.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(req.URL.String(), base+"/api/auth/oidc/callback") {
				return http.ErrUseLastResponse
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/auth/oidc/start", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		c.http.CheckRedirect = nil
		return answer.Header.Get("Location")
	}
	mine, theirs := newCaller(t, base), newCaller(t, base)
	callback := begin(mine)
	begin(theirs)
	if got := theirs.visit(callback).Query().Get("sign-in-problem"); got != "expired" {
		t.Errorf("another browser's answer: %q", got)
	}
	if got := newCaller(t, base).visit(callback).Query().Get("sign-in-problem"); got != "expired" {
		t.Errorf("a browser that did not begin: %q", got)
	}
	if end := mine.visit(callback); end.RawQuery != "" {
		t.Errorf("the browser that began: %s", end)
	}
	if got := mine.visit(callback).Query().Get("sign-in-problem"); got != "expired" {
		t.Errorf("the same answer again: %q", got)
	}

	closed := newWorld(t)
	base = closed.elsewhere(p, app.OIDCOptions{})
	if got := newCaller(t, base).comeIn("/").Query().Get("sign-in-problem"); got != "not-admitted" {
		t.Errorf("without a default role: %q", got)
	}
}
