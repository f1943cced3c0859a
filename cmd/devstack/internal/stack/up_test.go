//go:build unix

package stack_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tocsin/cmd/devstack/internal/chdb"
	"tocsin/cmd/devstack/internal/filelock"
)

// up runs devstack up on a directory, with the real tocsin, and returns it with the page's address,
// which contains the user that may sign in there.
func up(t *testing.T, dir string, args ...string) (*devstack, string) {
	t.Helper()
	d := run(t, filepath.Dir(dir), append([]string{"up", "--data", dir, "--tocsin", build(t).tocsin}, args...)...)
	link := d.stdout.await(t, "http://")
	page, secret, _ := strings.Cut(link, "sign-in#")
	if len(secret) != 52 {
		t.Errorf("the address %q is no link to sign in with", link)
	}
	password, err := os.ReadFile(filepath.Join(dir, "admin.password"))
	if err != nil {
		t.Fatal(err)
	}
	return d, strings.Replace(page, "://", "://demo:"+string(password)+"@", 1)
}

// signedIn are the clients that are signed in, by page: each password costs as much processor time as many requests.
var signedIn sync.Map //nolint:gochecknoglobals // shared by all tests of the process

// signIn returns a client that is signed in, and the address without the password. While Postgres
// is down, that fails.
func signIn(t *testing.T, page string) (*http.Client, string) {
	t.Helper()
	address, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := address.User.Password()
	address.User = nil
	if known, ok := signedIn.Load(page); ok {
		return known.(*http.Client), address.String() //nolint:forcetypeassert // nothing else is stored
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	body := fmt.Sprintf(`{"email": "demo@tocsin.localhost", "password": %q}`, password)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address.String()+"api/v1/session", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode < http.StatusMultipleChoices {
		signedIn.Store(page, client)
	}
	return client, address.String()
}

// read requests a resource from Tocsin's API, and signs in again if a crash of Postgres lost the session.
func read(t *testing.T, page, path string) map[string]any {
	t.Helper()
	status, answer := get(t, page, path)
	if status == http.StatusUnauthorized {
		signedIn.Delete(page)
		_, answer = get(t, page, path)
	}
	return answer
}

// get requests a resource once.
func get(t *testing.T, page, path string) (status int, answer map[string]any) {
	t.Helper()
	client, base := signIn(t, page)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"api/v1"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

func count(t *testing.T, url, path string) int {
	t.Helper()
	items, ok := read(t, url, path)["items"].([]any)
	if !ok {
		t.Fatalf("%s has no items", path)
	}
	return len(items)
}

func firing(t *testing.T, url string) int {
	t.Helper()
	// Absent, and so 0, while Postgres is down.
	number, _ := read(t, url, "/alerts/counts")["firing"].(float64)
	return int(number)
}

// pressInSlack acknowledges, assigns and snoozes from a message of the demo's bot in the Slack
// look-alike, as soon as there is one.
func pressInSlack(t *testing.T, d *devstack, page string) {
	t.Helper()
	_, rest, _ := strings.Cut(d.stderr.text(), "Slack look-alike on ")
	address, _, _ := strings.Cut(rest, "\n")
	ask := func(method, path, body string) (int, []byte) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, content
	}
	var list struct {
		Messages []struct {
			ID   int64  `json:"id"`
			Body string `json:"body"`
		} `json:"messages"`
	}
	var alert string
	eventually(t, "the bot posts a message", func() bool {
		_, content := ask(http.MethodGet, "/api/messages?hook=api/C0ORDERS&accepted=true", "")
		if json.Unmarshal(content, &list) != nil {
			return false
		}
		// On a busy machine, the first message may be a digest.
		for len(list.Messages) > 0 && !strings.Contains(list.Messages[0].Body, `"tocsin_acknowledge"`) {
			list.Messages = list.Messages[1:]
		}
		if len(list.Messages) == 0 {
			return false
		}
		_, rest, _ := strings.Cut(list.Messages[0].Body, `"value":"`)
		alert, _, _ = strings.Cut(rest, `"`)
		return alert != ""
	})
	press := func(user, action, value string) string {
		body := fmt.Sprintf(`{"message":%d,"action":%q,"value":%q,"user":%q}`, list.Messages[0].ID, action, value, user)
		status, content := ask(http.MethodPost, "/control/press", body)
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", action, status, content)
		}
		return string(content)
	}
	for _, pressed := range []struct{ user, action, value, shown string }{
		{"", "tocsin_acknowledge", "", ""},
		{"", "tocsin_assign", "", ""},
		{"", "tocsin_snooze", alert + " 1h", ""},
		{"U0ANN", "tocsin_assign", "", "Tocsin has no user with your e-mail address, ann@tocsin.localhost"},
		{"U0ANN", "tocsin_acknowledge", "", "The alert was already acknowledged by demo@tocsin.localhost."},
	} {
		if shown := press(pressed.user, pressed.action, pressed.value); !strings.Contains(shown, pressed.shown) || pressed.shown == "" && shown != "{\"ephemerals\":[]}\n" {
			t.Errorf("%s by %q is answered %s", pressed.action, pressed.user, shown)
		}
	}
	is := read(t, page, "/alerts/"+alert)
	if is["acknowledgedBy"] != "demo@tocsin.localhost" || is["assignee"] != "demo@tocsin.localhost" || is["snoozedUntil"] == nil {
		t.Errorf("the alert is %v", is)
	}
}

// testMail makes the demo's webhook for e-mails send a test message, and checks that the mailbox
// shows it.
func testMail(t *testing.T, d *devstack, page string) {
	t.Helper()
	id := ""
	items, _ := read(t, page, "/webhooks")["items"].([]any)
	for _, item := range items {
		if w, _ := item.(map[string]any); w["preset"] != nil {
			id, _ = w["id"].(string)
		}
	}
	client, base := signIn(t, page)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"api/v1/webhooks/"+id+"/test", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || !strings.Contains(string(content), "DELIVERED") {
		t.Fatalf("the test message: %s, %v", content, err)
	}
	_, rest, _ := strings.Cut(d.stderr.text(), "mailbox on ")
	address, _, _ := strings.Cut(rest, "\n")
	request, err = http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err = http.DefaultClient.Do(request); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if content, err = io.ReadAll(response.Body); err != nil || !strings.Contains(string(content), "kim.berg@example.com") {
		t.Errorf("the mailbox shows %s, %v", content, err)
	}
}

// pids are the processes that belong to a running up: Postgres, tocsin, and ClickHouse.
func pids(t *testing.T, d *devstack, dir string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for name, file := range map[string]string{
		"postgres": filepath.Join(dir, "postgres", "postmaster.pid"), "tocsin": filepath.Join(dir, "tocsin.pid"),
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(content), "\n")
		if found[name], err = strconv.Atoi(first); err != nil {
			t.Fatal(err)
		}
	}
	if children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", d.cmd.Process.Pid)); err == nil {
		for _, file := range children {
			content, _ := os.ReadFile(file)
			for each := range strings.FieldsSeq(string(content)) {
				line, _ := os.ReadFile("/proc/" + each + "/cmdline")
				if strings.Contains(string(line), "\x00clickhouse\x00") {
					found["clickhouse"], _ = strconv.Atoi(each)
				}
			}
		}
	}
	return found
}

// TestUp goes through the life of a data directory: first start, a second devstack on it, an
// orderly stop, a start that keeps everything, a kill, a start after the kill, and a reset.
func TestUp(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(passable(t), "data")
	d, url := up(t, dir)
	if lines := strings.Count(d.stdout.text(), "\n"); lines != 0 {
		t.Errorf("standard output has %d lines, want the address alone:\n%s", lines+1, d.stdout.text())
	}
	if strings.Contains(d.stderr.text(), "://") {
		t.Errorf("more addresses than one:\n%s", d.stderr.text())
	}
	rules, webhooks := count(t, url, "/rules"), count(t, url, "/webhooks")
	if rules == 0 || webhooks == 0 {
		t.Fatalf("seeded %d rules and %d webhooks", rules, webhooks)
	}
	eventually(t, "a failure of the demo traffic fires", func() bool { return firing(t, url) > 0 })
	pressInSlack(t, d, url)
	eventually(t, "what was pressed in the Slack look-alike is acknowledged", func() bool {
		return count(t, url, "/alerts?state=ACKNOWLEDGED") == 1
	})
	testMail(t, d, url)
	if info, err := os.Stat(filepath.Join(dir, "encryption.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("encryption key: %v, %v", info, err)
	}

	second := run(t, filepath.Dir(dir), "up", "--data", dir)
	if second.exit(t) == 0 {
		t.Error("two ran on one directory")
	}
	want := fmt.Sprintf("is in use by another devstack, process %d:", d.cmd.Process.Pid)
	if said := second.stderr.text(); !strings.Contains(said, want) || strings.Contains(said, "\n") {
		t.Errorf("the second said %q, want one line with %q", said, want)
	}

	before := firing(t, url)
	processes := pids(t, d, dir)
	d.signal(t, syscall.SIGINT)
	if code := d.exit(t); code != 0 {
		t.Errorf("exit code %d at SIGINT", code)
	}
	for name, pid := range processes {
		if !gone(pid) {
			t.Errorf("%s still runs", name)
		}
	}

	d, again := up(t, dir, "--no-traffic")
	if again != url {
		t.Errorf("the address %s became %s", url, again)
	}
	if r, w := count(t, url, "/rules"), count(t, url, "/webhooks"); r != rules || w != webhooks {
		t.Errorf("%d rules and %d webhooks became %d and %d", rules, webhooks, r, w)
	}
	if after := firing(t, url); after < before {
		t.Errorf("%d alerts became %d", before, after)
	}

	processes = pids(t, d, dir)
	d.signal(t, syscall.SIGKILL)
	d.exit(t)
	// A ClickHouse that takes long to stop: up waits for it.
	ending, err := filelock.Wait(t.Context(), filepath.Join(dir, "clickhouse", chdb.LockFile), func(*filelock.HeldError) {})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Second, func() { _ = ending.Release() })
	d, again = up(t, dir, "--no-traffic")
	if again != url {
		t.Errorf("the address %s became %s", url, again)
	}
	for name, pid := range processes {
		eventually(t, name+" of the killed devstack has ended", func() bool { return gone(pid) })
	}
	if after := firing(t, url); after < before {
		t.Errorf("%d alerts became %d", before, after)
	}
	d.signal(t, syscall.SIGTERM)
	if code := d.exit(t); code != 0 {
		t.Errorf("exit code %d at SIGTERM", code)
	}

	_, url = up(t, dir, "--no-traffic", "--reset")
	if after := firing(t, url); after != 0 {
		t.Errorf("%d alerts outlived the reset", after)
	}
}

// TestUpStartsAgainWhatDies kills one process after the other.
func TestUpStartsAgainWhatDies(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(passable(t), "data")
	d, url := up(t, dir)
	eventually(t, "a failure of the demo traffic fires", func() bool { return firing(t, url) > 0 })
	for name, shown := range map[string]string{"tocsin": "tocsin", "clickhouse": "ClickHouse", "postgres": "Postgres"} {
		pid, found := pids(t, d, dir)[name]
		if !found {
			// Only Linux lists the children of a process.
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("kill %s: %v", name, err)
		}
		d.stderr.await(t, shown+" ended (signal: killed), starting it again")
		d.stderr.await(t, shown+" runs again")
	}
	before := 0
	eventually(t, "the alerts of before are there", func() bool {
		before = firing(t, url)
		return before > 0
	})
	eventually(t, "failures fire again", func() bool { return firing(t, url) > before })
}

func TestUpKillsAtTheSecondSignal(t *testing.T) {
	t.Parallel()
	base := passable(t)
	stubborn := filepath.Join(base, "tocsin")
	script := fmt.Sprintf("#!/bin/sh\n[ $1 = serve ] || exec %[1]s \"$@\"\ntrap '' TERM\n%[1]s \"$@\" &\n"+
		"while :; do sleep 1000 & wait $!; done\n", build(t).tocsin)
	if err := os.WriteFile(stubborn, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "data")
	d := run(t, base, "up", "--data", dir, "--tocsin", stubborn, "--no-traffic")
	d.stdout.await(t, "http://")
	processes := pids(t, d, dir)
	d.signal(t, syscall.SIGINT)
	d.stderr.await(t, "stopping; press Ctrl-C again to kill")
	d.signal(t, syscall.SIGINT)
	d.exit(t)
	for name, pid := range processes {
		if !gone(pid) {
			t.Errorf("%s still runs", name)
		}
	}
}

// TestUpSaysWhatToDo expects a single line with the remedy, and no process left running.
func TestUpSaysWhatToDo(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	taken := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	foreign := passable(t)
	if err := os.WriteFile(filepath.Join(foreign, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kept := passable(t)
	for _, name := range []string{"devstack.lock", "slack.journal"} {
		if err := os.WriteFile(filepath.Join(kept, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, path := range []string{filepath.Join(foreign, "thesis.tex"), filepath.Join(kept, "slack.journal")} {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("what an up that failed should not touch: %v", err)
			}
		}
	})
	for name, each := range map[string]struct {
		args []string
		want string
	}{
		"port taken":         {[]string{"--port", taken}, "port " + taken + " is taken: name another one with --port"},
		"port taken, reset":  {[]string{"--port", taken, "--data", kept, "--reset"}, "port " + taken + " is taken"},
		"others' directory":  {[]string{"--data", foreign, "--reset"}, "contains files that are not devstack's"},
		"no such tocsin":     {[]string{"--tocsin", "/does/not/exist"}, "name its program with --tocsin"},
		"no place for data":  {[]string{"--data", "/dev/null/data"}, "name another one with --data"},
		"no number for port": {[]string{"--port", "http"}, "--port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := passable(t)
			d := run(t, base, append([]string{"up", "--data", filepath.Join(base, "data")}, each.args...)...)
			if d.exit(t) == 0 {
				t.Error("exit code 0")
			}
			lines := strings.Split(d.stderr.text(), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, each.want) {
				t.Errorf("said at last %q, want %q", last, each.want)
			}
		})
	}
}

func TestUpShowsWhyTocsinDied(t *testing.T) {
	t.Parallel()
	base := passable(t)
	broken := filepath.Join(base, "tocsin")
	script := fmt.Sprintf("#!/bin/sh\n[ $1 = serve ] || exec %s \"$@\"\necho 'the reason for it' >&2\nexit 3\n", build(t).tocsin)
	if err := os.WriteFile(broken, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	d := run(t, base, "up", "--data", filepath.Join(base, "data"), "--tocsin", broken)
	if d.exit(t) == 0 {
		t.Error("exit code 0")
	}
	d.stderr.await(t, "the process ended before it was ready (exit status 3)")
	d.stderr.await(t, "the reason for it")
}
