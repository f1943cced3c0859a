//go:build linux

package stack_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin/cmd/devstack/internal/netport"
)

// fence begins a block of shell commands in a page. A block marked "sh example" is not run: it
// refers to machines that do not exist here, takes too long, or is run by another test.
var fence = regexp.MustCompile("^( *)```sh( example)?$")

// commandsOf returns the commands that readers of a documentation page are to run, in order.
func commandsOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var commands strings.Builder
	in, skip, indent := false, false, ""
	for line := range strings.Lines(string(text)) {
		begins := fence.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case !in && begins != nil:
			in, indent, skip = true, begins[1], begins[2] != ""
		case in && strings.TrimRight(line, "\n") == indent+"```":
			in = false
		case in && !skip:
			commands.WriteString(strings.TrimPrefix(line, indent))
		case !in && strings.HasPrefix(strings.TrimSpace(line), "```sh"):
			t.Errorf("%s: %q is neither run nor marked as an example", file, strings.TrimSpace(line))
		}
	}
	return commands.String()
}

// create posts to the API of a running devstack, and returns a field of the response.
func create(t *testing.T, client *http.Client, base, path, body, field string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"api/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"` + field + `":"([^"]+)"`).FindSubmatch(content)
	if response.StatusCode >= 300 || found == nil {
		t.Fatalf("POST %s: %d %s", path, response.StatusCode, content)
	}
	return string(found[1])
}

// environmentOf returns the environment variables of a process.
func environmentOf(t *testing.T, pid int) []string {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(string(content), "\x00"), "\x00")
}

// shell runs commands in a folder of their own, and fails the test at the first command that fails.
func shell(t *testing.T, commands string, env []string) string {
	t.Helper()
	for _, program := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: install the package %s", err, program)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	// The command that fails is printed, so that it can be found.
	run := exec.CommandContext(ctx, "bash", "-c", "set -eEuo pipefail; trap 'echo \"failed: $BASH_COMMAND\" >&2' ERR\n"+commands)
	run.Dir, run.Env, run.WaitDelay = t.TempDir(), env, 5*time.Second
	if err := os.WriteFile(filepath.Join(run.Dir, "password.txt"), []byte("a password of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n--- the commands:\n%s", err, bytes.TrimSpace(said), commands)
	}
	return string(said)
}

// TestTheCommandsOfTheDocumentationWork runs the commands that the pages give readers, in a demo as
// make run starts it.
//
//nolint:tparallel // one demo for all pages, one after the other
func TestTheCommandsOfTheDocumentationWork(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(passable(t), "data")
	d, page := up(t, dir)
	eventually(t, "failures of the demo traffic fire", func() bool { return firing(t, page) > 3 })
	client, base := signIn(t, page)
	token := create(t, client, base, "/tokens", `{"name": "documentation", "role": "admin"}`, "secret")
	programs := build(t)
	env := append(environmentOf(t, pids(t, d, dir)["tocsin"]),
		"PATH="+filepath.Dir(programs.tocsin)+":"+os.Getenv("PATH"), "TOCSIN_URL="+strings.TrimSuffix(base, "/"), "TOCSIN_TOKEN="+token)
	shell(t, `for name in ada bo; do tocsin users add $name@example.com --role operator; done`, env)

	root := filepath.Join("..", "..", "..", "..")
	pages := map[string]bool{filepath.Join(root, "README.md"): true}
	for _, pattern := range []string{"*.md", "*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, "docs", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			pages[file] = true
		}
	}
	// Run by a test of its own, below.
	delete(pages, filepath.Join(root, "docs", "tutorials", "opentelemetry.md"))
	ran := 0
	// Values that readers replace: their own address, token and tenant. And an error response is a
	// failure.
	own := strings.NewReplacer(" acme", " default", "http://127.0.0.1:8080", strings.TrimSuffix(base, "/"), "tcn_…", token, "curl -s ", "curl -sS --fail-with-body ")
	for _, file := range slices.Sorted(maps.Keys(pages)) {
		commands := commandsOf(t, file)
		if commands == "" {
			continue
		}
		ran++
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			// The definitions in the README, to which other pages refer.
			definitions := "BASE=http://127.0.0.1:8080/api/v1 TOKEN=tcn_…\napi() { curl -s -H \"Authorization: Bearer $TOKEN\" \"$@\"; }\n"
			shell(t, own.Replace(definitions+commands), env)
		})
	}
	if ran < 5 {
		t.Errorf("only %d pages have commands", ran)
	}
}

// TestTheTutorialOfOpenTelemetryWorks runs its commands with temporary databases, from the table to
// the message.
func TestTheTutorialOfOpenTelemetryWorks(t *testing.T) {
	t.Parallel()
	programs := build(t)
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(root, "docs", "tutorials", "opentelemetry.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	source := regexp.MustCompile("(?s)```yaml\n# source.yaml\n(preset: otel_traces.*?)```").FindSubmatch(text)
	slack := regexp.MustCompile("(?s)```yaml\n(webhooks:.*?)```").FindSubmatch(text)
	consumers := regexp.MustCompile("(?s)```yaml\n# consumers.yaml\n(rules:.*?)```").FindSubmatch(text)
	if source == nil || slack == nil || consumers == nil {
		t.Fatalf("%s shows no source.yaml, no slack.yaml, or no consumers.yaml", page)
	}
	port, err := netport.Free(18080)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	commands := strings.NewReplacer(
		"http://127.0.0.1:8080", address,
		// Readers use a second shell for it. It ends with this one.
		"\ntocsin serve   # with the throw-away databases: tocsin serve > serve.log 2>&1 &\n", "\ntocsin serve >serve.log 2>&1 &\ntrap 'kill $!; cat serve.log' EXIT\nuntil curl -sf "+address+"/readyz; do sleep 0.1; done\n",
		"curl -s $BASE/alerts | jq", "until curl -s $BASE/alerts | grep -q declined; do sleep 0.1; done\ncurl -s $BASE/alerts | jq",
	).Replace(commandsOf(t, page))
	script := filepath.Join(t.TempDir(), "tutorial.sh")
	files := fmt.Sprintf("ln -s %s/internal internal\ncat > source.yaml <<'END'\n%sEND\ncat > slack.yaml <<'END'\n%sEND\ncat > consumers.yaml <<'END'\n%sEND\nexport TOCSIN_LISTEN=127.0.0.1:%d TOCSIN_URL=%s\n",
		root, source[1], slack[1], consumers[1], port, address)
	// The first failure was before there was a webhook. The second one has three spans, and one message.
	const message = "\nuntil [ \"$(curl -s $BASE/notifications | jq '[.items[] | select(.status == \"DELIVERED\")] | length')\" = 1 ]; do sleep 0.1; done\n" +
		"[ \"$(curl -s ${SLACK_URL%/services/*}/api/messages | jq '[.messages[] | select(.body | contains(\"payment declined\"))] | length')\" = 1 ]\n" +
		// Then there is a rule for consumer spans as well. Its message is about the one span of three.
		"fail\nuntil [ \"$(curl -s $BASE/notifications | jq '[.items[] | select(.status == \"DELIVERED\")] | length')\" = 3 ]; do sleep 0.1; done\n" +
		"[ \"$(curl -s ${SLACK_URL%/services/*}/api/messages | jq '[.messages[] | select(.body | contains(\"Consumer span failed\"))] | length')\" = 1 ]\n"
	if err := os.WriteFile(script, []byte("set -euo pipefail\n"+files+commands+message), 0o600); err != nil {
		t.Fatal(err)
	}
	said := shell(t, fmt.Sprintf("%s run -- bash %s", programs.devstack, script),
		append(os.Environ(), "TMPDIR="+passable(t), "PATH="+filepath.Dir(programs.tocsin)+":"+os.Getenv("PATH")))
	if want := "checkout · process order: FAILED"; !strings.Contains(said, want) {
		t.Errorf("the commands do not lead to the alert %q:\n%s", want, said)
	}
}
