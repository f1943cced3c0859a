package deploy

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAnotherProgramUsesTheClient builds the client's example as a module of its own, which
// requires the client as docs/api.md describes, and runs it against a replica.
func TestAnotherProgramUsesTheClient(t *testing.T) {
	postgres, clickhouse := servers(t)
	makeTable(t)
	says(t, true, "", tocsin(t, postgres.String(), nil, "migrate"))
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(docs), "```\nrequire tocsin ")
	required, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("docs/api.md does not say how to require the client")
	}
	source, err := os.ReadFile("../../client/example/main.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	module := "module example\n\ngo 1.26\n\nrequire tocsin " + strings.ReplaceAll(required, "../tocsin", root)
	for name, text := range map[string]string{"go.mod": module, "main.go": string(source)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-o", "example", "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v: %s\n%s", args, err, out, module)
		}
	}

	r := startReplica(t)
	example := func(ctx context.Context, what string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(dir, "example"), what)
		cmd.Env = append(os.Environ(), "TOCSIN_URL=http://"+r.address)
		return cmd
	}
	says(t, true, "Orders refused created", example(t.Context(), "apply"))
	says(t, true, "Orders refused unchanged", example(t.Context(), "apply"))
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	watching := example(ctx, "watch")
	output, err := watching.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watching.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	hears := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Errorf("the stream ended before %s: %v", text, lines.Err())
	}
	hears("intervalSeconds")

	name := "orders " + freeAddress(t)
	rule, err := post(t.Context(), "http://"+r.address+"/api/v1/rules", fmt.Appendf(nil, `{"name": %q, "fireMode": "PER_EXCHANGE", "severity": "INFO", "scope": {"applications": [%q]}, "titleTemplate": %q}`, name, name, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := insertFailure(t.Context(), clickhouse, name); err != nil {
		t.Fatal(err)
	}
	until(t, "the alert in the list", func(ctx context.Context) error {
		out, err := example(ctx, "alerts").CombinedOutput()
		if err == nil && !strings.Contains(string(out), name) {
			err = fmt.Errorf("rule %v: listed are %q", rule["id"], out)
		}
		return err
	})
	// The watching client is notified of the alert.
	hears(`"changed"`)
	stop()
	_ = watching.Wait()
}
