package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin/internal/access"
	"tocsin/internal/app"
)

const (
	adminEmail    = "ada@example.com"
	adminPassword = "correct horse battery"
)

// guarded runs a replica that requires users to sign in, with a first administrator. It only serves the API, unless that is
// changed.
func (w *world) guarded(change ...func(*app.Options)) (base string, logged *log) {
	w.t.Helper()
	return w.replica(append([]func(*app.Options){func(o *app.Options) {
		o.Roles = []app.Role{app.RoleAPI}
		o.Access = app.AccessOptions{AdminEmail: adminEmail, AdminPassword: adminPassword, PasswordCost: cheapPasswords()}
	}}, change...)...)
}

// cheapPasswords prevents the tests from spending most of their time on hashes.
func cheapPasswords() access.Cost { return access.Cost{Time: 1, MemoryKiB: 64, Threads: 1} }

// caller uses the API as a user, with the cookies of a browser or a token. Every response is checked against the API's
// description.
type caller struct {
	t     testing.TB
	base  string
	http  *http.Client
	token string
}

func newCaller(tb testing.TB, base string) *caller {
	tb.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return &caller{t: tb, base: base, http: &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// said is a response of the API.
type said struct {
	status int
	header http.Header
	body   map[string]any
}

// do makes a request with a JSON body, if any; header contains alternating names and values.
func (c *caller) do(method, path string, body any, header ...string) said {
	c.t.Helper()
	var content io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(body)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/api/v1"+path, content)
	if err != nil {
		c.t.Fatal(err)
	}
	if content != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	answer, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read below as far as it matters
	got := said{status: answer.StatusCode, header: answer.Header, body: map[string]any{}}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		return got
	}
	whole := recorded(c.t, answer)
	asDescribed(c.t, method, path, whole)
	text := whole.Body.Bytes()
	if len(text) > 0 {
		if err := json.Unmarshal(text, &got.body); err != nil {
			c.t.Fatalf("%s %s: %v in %q", method, path, err, text)
		}
	}
	return got
}

// must is do, and checks the status.
func (c *caller) must(status int, method, path string, body any, header ...string) said {
	c.t.Helper()
	got := c.do(method, path, body, header...)
	if got.status != status {
		c.t.Fatalf("%s %s: %d, want %d: %v", method, path, got.status, status, got.body)
	}
	return got
}

func (s said) text(field string) string { text, _ := s.body[field].(string); return text }

// signIn signs in with a password.
func (c *caller) signIn(email, password string) *caller {
	c.t.Helper()
	if answered := c.retried(http.MethodPost, "/session", map[string]any{"email": email, "password": password}); answered.status != http.StatusOK {
		c.t.Fatalf("POST /session: %d, want 200: %v", answered.status, answered.body)
	}
	return c
}

// retried makes a request again as long as a busy machine has no time for it, or for the ones before.
func (c *caller) retried(method, path string, body any) said {
	for deadline := time.Now().Add(waitLimit); ; <-time.After(time.Second) {
		answered := c.do(method, path, body)
		if s := answered.status; s != http.StatusServiceUnavailable && s != http.StatusTooManyRequests || time.Now().After(deadline) {
			return answered
		}
	}
}

// withToken creates a token with a role and returns a caller that uses it.
func (c *caller) withToken(name string, role access.Role) *caller {
	c.t.Helper()
	made := c.must(http.StatusCreated, http.MethodPost, "/tokens", map[string]any{"name": name, "role": role})
	program := newCaller(c.t, c.base)
	program.token = made.text("secret")
	return program
}

func TestAPersonSignsInAndOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, logged := w.guarded()
	c := newCaller(t, base)
	c.must(http.StatusUnauthorized, http.MethodGet, "/rules", nil)
	if how := c.must(http.StatusOK, http.MethodGet, "/session", nil); how.body["signedIn"] != false || how.body["setupNeeded"] != false {
		t.Errorf("how to sign in: %v", how.body)
	}
	wrong := c.must(http.StatusUnauthorized, http.MethodPost, "/session", map[string]any{"email": adminEmail, "password": "incorrect horse"})
	unknown := c.must(http.StatusUnauthorized, http.MethodPost, "/session", map[string]any{"email": "nobody@example.com", "password": "incorrect horse"})
	if wrong.text("detail") != unknown.text("detail") {
		t.Errorf("%q of a wrong password, %q of an unknown account", wrong.text("detail"), unknown.text("detail"))
	}
	for i, email := range []string{"a\x00b@example.com", "\x00", "nobody"} {
		got := c.must(http.StatusUnauthorized, http.MethodPost, "/session", map[string]any{"email": email, "password": "incorrect horse"})
		if got.text("detail") != unknown.text("detail") || strings.Contains(logged.String(), "level=ERROR") {
			t.Errorf("%q of %q, which is no address; the log:\n%s", got.text("detail"), email, logged)
		}
		w.wantColumn("attempts from this address", `select max(failures)::text from sign_in_failure`, fmt.Sprint(i+3))
	}

	in := c.must(http.StatusOK, http.MethodPost, "/session", map[string]any{"email": strings.ToUpper(adminEmail), "password": adminPassword})
	cookie := in.header.Get("Set-Cookie")
	for _, part := range []string{"tocsin=", "HttpOnly", "SameSite=Lax", "Path=/", "Expires="} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %q lacks %s", cookie, part)
		}
	}
	me := c.must(http.StatusOK, http.MethodGet, "/me", nil)
	if me.text("email") != adminEmail || me.text("role") != "admin" || me.text("kind") != "user" {
		t.Errorf("me: %v", me.body)
	}
	c.must(http.StatusForbidden, http.MethodPost, "/tokens", map[string]any{"name": "x", "role": "viewer"}, "Sec-Fetch-Site", "cross-site")

	secret, _, _ := strings.Cut(strings.TrimPrefix(cookie, "tocsin="), ";")
	for what, text := range map[string]string{
		"log": logged.String(), "database": strings.Join(w.column(`select s::text from session s union all select a::text from account a union all select a::text from audit a`), ""),
	} {
		if strings.Contains(text, secret) || strings.Contains(text, adminPassword) {
			t.Errorf("the %s shows a secret", what)
		}
	}
	stolen := newCaller(t, base)
	stolen.must(http.StatusOK, http.MethodGet, "/me", nil, "Cookie", "tocsin="+secret)
	c.must(http.StatusNoContent, http.MethodDelete, "/session", nil)
	stolen.must(http.StatusUnauthorized, http.MethodGet, "/me", nil, "Cookie", "tocsin="+secret)
	c.must(http.StatusUnauthorized, http.MethodGet, "/me", nil)
	c.must(http.StatusNoContent, http.MethodDelete, "/session", nil)
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	bob := admin.must(http.StatusCreated, http.MethodPost, "/users", map[string]any{
		"email": "bob@example.com", "name": "Bob", "role": "viewer", "password": "bob's first password",
	})
	id := bob.text("id")
	again := func(password string) *caller { return newCaller(t, base).signIn("bob@example.com", password) }

	one, two := again("bob's first password"), again("bob's first password")
	one.must(http.StatusBadRequest, http.MethodPut, "/me/password", map[string]any{"currentPassword": "not it", "newPassword": "bob's second password"})
	one.must(http.StatusOK, http.MethodPut, "/me/password", map[string]any{"currentPassword": "bob's first password", "newPassword": "bob's second password"})
	one.must(http.StatusOK, http.MethodGet, "/me", nil)
	two.must(http.StatusUnauthorized, http.MethodGet, "/me", nil)

	admin.must(http.StatusNoContent, http.MethodPut, "/users/"+id+"/password", map[string]any{"password": "bob's third password"})
	one.must(http.StatusUnauthorized, http.MethodGet, "/me", nil)

	one = again("bob's third password")
	edit := map[string]any{"name": "Bob", "role": "operator", "disabled": false}
	admin.must(http.StatusPreconditionRequired, http.MethodPut, "/users/"+id, edit)
	admin.must(http.StatusPreconditionFailed, http.MethodPut, "/users/"+id, edit, "If-Match", `"1"`)
	tag := admin.must(http.StatusOK, http.MethodGet, "/users/"+id, nil).header.Get("ETag")
	admin.must(http.StatusOK, http.MethodPut, "/users/"+id, edit, "If-Match", tag)
	if me := one.must(http.StatusOK, http.MethodGet, "/me", nil); me.text("role") != "operator" {
		t.Errorf("another role holds from the next request: %v", me.body)
	}
	edit["disabled"] = true
	tag = admin.must(http.StatusOK, http.MethodGet, "/users/"+id, nil).header.Get("ETag")
	admin.must(http.StatusOK, http.MethodPut, "/users/"+id, edit, "If-Match", tag)
	one.must(http.StatusUnauthorized, http.MethodGet, "/me", nil)
	one.must(http.StatusUnauthorized, http.MethodPost, "/session", map[string]any{"email": "bob@example.com", "password": "bob's third password"})

	w.exec(`update session set seen_at = now() - interval '13 hours'`)
	admin.must(http.StatusUnauthorized, http.MethodGet, "/me", nil)
	admin.signIn(adminEmail, adminPassword)
	w.exec(`update session set expires_at = now() - interval '1 second'`)
	admin.must(http.StatusUnauthorized, http.MethodGet, "/me", nil)
	if err := w.db.Access().Purge(t.Context(), 12*time.Hour, 0); err != nil {
		t.Fatal(err)
	}
	w.wantColumn("sessions after retention", `select count(*)::text from session`, "0")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	program := admin.withToken("ci", access.Editor)
	if me := program.must(http.StatusOK, http.MethodGet, "/me", nil); me.text("kind") != "token" || me.text("name") != "token ci" || me.text("role") != "editor" {
		t.Errorf("me: %v", me.body)
	}
	signedIn := func(c *caller, want bool) {
		t.Helper()
		if how := c.must(http.StatusOK, http.MethodGet, "/session", nil); how.body["signedIn"] != want {
			t.Errorf("how to sign in: %v", how.body)
		}
	}
	signedIn(program, true)
	program.must(http.StatusForbidden, http.MethodPost, "/tokens", map[string]any{"name": "more", "role": "viewer"})
	program.must(http.StatusConflict, http.MethodPut, "/me/password", map[string]any{"newPassword": "a long enough one"})
	admin.must(http.StatusConflict, http.MethodPost, "/tokens", map[string]any{"name": "ci", "role": "viewer"})
	list := admin.must(http.StatusOK, http.MethodGet, "/tokens", nil)
	first := list.body["items"].([]any)[0].(map[string]any)
	if first["usedAt"] == nil || first["createdBy"] == nil || !strings.HasSuffix(program.token, first["hint"].(string)) {
		t.Errorf("token: %v", first)
	}
	admin.must(http.StatusNoContent, http.MethodDelete, "/tokens/"+first["id"].(string), nil)
	program.must(http.StatusUnauthorized, http.MethodGet, "/me", nil)
	signedIn(program, false)
	signedIn(admin, true)
	admin.must(http.StatusNotFound, http.MethodDelete, "/tokens/"+first["id"].(string), nil)

	admin.must(http.StatusBadRequest, http.MethodPost, "/tokens", map[string]any{"name": "past", "role": "viewer", "expiresAt": "2020-01-01T00:00:00Z"})
	// Where it ends in the year 10000 of UTC, no answer could show it.
	never := admin.must(http.StatusBadRequest, http.MethodPost, "/tokens", map[string]any{"name": "never", "role": "viewer", "expiresAt": "9999-12-31T23:59:59-05:00"})
	if field := never.body["errors"].([]any)[0].(map[string]any)["field"]; field != "expiresAt" {
		t.Errorf("refused: %v", never.body)
	}
	admin.must(http.StatusOK, http.MethodGet, "/tokens", nil)
	program = admin.withToken("short", access.Viewer)
	program.must(http.StatusOK, http.MethodGet, "/rules", nil)
	w.exec(`update api_token set expires_at = now() - interval '1 second'`)
	program.must(http.StatusUnauthorized, http.MethodGet, "/rules", nil)
	for _, bad := range []string{"tcn_", "tcn_aaaa", strings.ToUpper(program.token), "nonsense"} {
		program.token = bad
		program.must(http.StatusUnauthorized, http.MethodGet, "/rules", nil)
	}
}

func TestTheAuditLogIsFoundByWhoActed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	for _, name := range []string{"ci", "ci-2"} {
		admin.withToken(name, access.Editor).must(http.StatusCreated, http.MethodPost, "/webhooks", map[string]any{
			"name": "of " + name, "kind": "generic", "url": "https://example.com/",
		})
	}
	for actor, want := range map[string][]string{
		"ci": {"of ci"}, "token ci": {"of ci"}, "ci-2": {"of ci-2"}, adminEmail: {"ci-2", "ci", ""}, "token": nil, "token " + adminEmail: nil,
	} {
		var got []string
		for _, entry := range admin.must(http.StatusOK, http.MethodGet, "/audit?actor="+url.QueryEscape(actor), nil).body["items"].([]any) {
			name, _ := entry.(map[string]any)["objectName"].(string)
			got = append(got, name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %q: %q, want %q", actor, got, want)
		}
	}
}

func TestTheFirstAdministratorIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	signIn := func(o *app.Options) { o.Roles, o.Access = []app.Role{app.RoleAPI}, app.AccessOptions{} }
	base, logged := w.replica(signIn)
	other, alsoLogged := w.replica(signIn)
	c := newCaller(t, base)
	if how := c.must(http.StatusOK, http.MethodGet, "/session", nil); how.body["setupNeeded"] != true {
		t.Errorf("how to sign in: %v", how.body)
	}
	code := regexp.MustCompile(`set_up_code=(\S+)`)
	codes := []string{code.FindStringSubmatch(logged.String())[1], code.FindStringSubmatch(alsoLogged.String())[1]}
	form := func(code string) map[string]any {
		return map[string]any{"code": code, "email": adminEmail, "name": "Ada", "password": adminPassword}
	}
	c.must(http.StatusBadRequest, http.MethodPost, "/setup", form("aaaa-bbbb-cccc-dddd"))
	results := make(chan int, 8)
	for i := range 8 {
		each := newCaller(t, []string{base, other}[i%2])
		go func() {
			results <- each.retried(http.MethodPost, "/setup", form(strings.ToUpper(codes[i%2]))).status
		}()
	}
	count := map[int]int{}
	for range 8 {
		count[<-results]++
	}
	if count[http.StatusOK] != 1 || count[http.StatusConflict] != 7 {
		t.Errorf("eight who set up at once: %v", count)
	}
	c.signIn(adminEmail, adminPassword).must(http.StatusOK, http.MethodGet, "/users", nil)
	w.wantColumn("codes left", `select count(*)::text from set_up_code`, "0")
	if text := strings.Join(w.column(`select actor || ' ' || via || ' ' || object_kind from audit where action = 'create' order by audit_id`), "\n"); text != adminEmail+" set-up user" {
		t.Errorf("audit log: %s", text)
	}
}

func TestReplicasThatStartAtOnceMakeOneAdministrator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		w.guarded()
	}
	w.wantColumn("administrators", `select email || ' ' || role from account`, adminEmail+" admin")
}

func TestAttemptsToSignInAreSlowedDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	other, _ := w.guarded()
	wrong := map[string]any{"email": adminEmail, "password": "wrong wrong wrong"}
	results := make(chan int, 24)
	for i := range 24 {
		each := newCaller(t, []string{base, other}[i%2])
		go func() { results <- each.do(http.MethodPost, "/session", wrong).status }()
	}
	count := map[int]int{}
	for range 24 {
		count[<-results]++
	}
	if count[http.StatusUnauthorized] > access.AccountThrottle().Free+3 || count[http.StatusTooManyRequests] < 10 {
		t.Errorf("24 attempts at once: %v", count)
	}
	w.exec(`update sign_in_failure set last_at = now(), failures = 20`)
	early := newCaller(t, base).must(http.StatusTooManyRequests, http.MethodPost, "/session", map[string]any{"email": adminEmail, "password": adminPassword})
	if early.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.exec(`update sign_in_failure set last_at = now() - interval '2 minutes'`)
	newCaller(t, base).signIn(adminEmail, adminPassword)
	w.wantColumn("counts after a success", `select failures::text from sign_in_failure where failures >= 19`, "20")
}

func TestTheLastAdministratorStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	id := admin.must(http.StatusOK, http.MethodGet, "/me", nil).text("id")
	admin.must(http.StatusConflict, http.MethodDelete, "/users/"+id, nil)
	for _, edit := range []map[string]any{{"name": "A", "role": "editor", "disabled": false}, {"name": "A", "role": "admin", "disabled": true}} {
		admin.must(http.StatusConflict, http.MethodPut, "/users/"+id, edit, "If-Match", `"1"`)
	}
	// Two administrators repeatedly try to remove each other.
	program := admin.withToken("program", access.Admin)
	for range 10 {
		eve := program.must(http.StatusCreated, http.MethodPost, "/users", map[string]any{"email": w.newID().String() + "@example.com", "name": "Eve", "role": "admin"}).text("id")
		results := make(chan int, 2)
		for _, victim := range []string{id, eve} {
			go func() { results <- program.do(http.MethodDelete, "/users/"+victim, nil).status }()
		}
		count := map[int]int{}
		for range 2 {
			count[<-results]++
		}
		if count[http.StatusNoContent] != 1 || count[http.StatusConflict] != 1 {
			t.Fatalf("two who remove each other: %v", count)
		}
		id = w.column(`select account_id::text from account`)[0]
	}
}

func TestOneTimeLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	id := admin.must(http.StatusCreated, http.MethodPost, "/users", map[string]any{"email": "bob@example.com", "name": "Bob", "role": "viewer"}).text("id")
	link := admin.must(http.StatusOK, http.MethodPost, "/users/"+id+"/link", nil).text("url")
	_, secret, _ := strings.Cut(link, "#")
	results := make(chan int, 4)
	for range 4 {
		each := newCaller(t, base)
		go func() { results <- each.do(http.MethodPost, "/session/link", map[string]any{"secret": secret}).status }()
	}
	count := map[int]int{}
	for range 4 {
		count[<-results]++
	}
	if count[http.StatusOK] != 1 || count[http.StatusUnauthorized] != 3 {
		t.Errorf("four who use one link: %v", count)
	}
	err := app.WithUsers(t.Context(), w.pgURL, func(u *app.Users) error {
		link, err := u.Link(t.Context(), "bob@example.com", "https://tocsin.example/")
		if !strings.HasPrefix(link, "https://tocsin.example/sign-in#") {
			t.Errorf("link %q", link)
		}
		_, secret, _ = strings.Cut(link, "#")
		if _, err := u.Link(t.Context(), "nobody@example.com", ""); err == nil || !strings.Contains(err.Error(), `"nobody@example.com"`) {
			t.Errorf("a link for nobody: %v", err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	bob := newCaller(t, base)
	bob.must(http.StatusOK, http.MethodPost, "/session/link", map[string]any{"secret": secret})
	bob.must(http.StatusOK, http.MethodPut, "/me/password", map[string]any{"newPassword": "bob's own password"})
	newCaller(t, base).signIn("bob@example.com", "bob's own password")
}

func TestOpenAccessNeedsLoopback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, change := range []func(*app.Options){
		func(o *app.Options) { o.Listen = "0.0.0.0:0" },
		func(o *app.Options) { o.PublicURL = "https://tocsin.example" },
	} {
		o := app.Options{
			PostgresURL: w.pgURL, ClickHouseURL: w.ch.URL, EncryptionKey: key, Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
			Access: app.AccessOptions{Mode: app.AccessOpen},
		}
		change(&o)
		if a, err := app.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "TOCSIN_ACCESS=open") {
			t.Errorf("New: %v", err)
			_ = a.Close(context.Background())
		}
	}
}

func TestAStreamNeedsASignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	if got := admin.must(http.StatusOK, http.MethodGet, "/events", nil).header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Errorf("Content-Type %q", got)
	}
	newCaller(t, base).must(http.StatusUnauthorized, http.MethodGet, "/events", nil)
}

func TestMetricsMayNeedAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base, _ := w.guarded(func(o *app.Options) { o.Access.MetricsToken = "scrape" })
	open, _ := w.guarded()
	for _, each := range []struct {
		base, token string
		want        int
	}{{open, "", 200}, {base, "", 401}, {base, "wrong", 401}, {base, "scrape", 200}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, each.base+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if each.token != "" {
			req.Header.Set("Authorization", "Bearer "+each.token)
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != each.want {
			t.Errorf("token %q: %d, want %d", each.token, answer.StatusCode, each.want)
		}
	}
}
