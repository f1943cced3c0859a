//go:build podman

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// podman runs containers with a store of its own.
type podman struct {
	t    *testing.T
	args []string
	env  []string
}

func newPodman(t *testing.T) *podman {
	t.Helper()
	dir := t.TempDir()
	config := "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n"
	if _, err := exec.LookPath("runc"); err == nil {
		config += "runtime = \"runc\"\n"
	}
	if _, err := os.Stat("/usr/lib/podman/netavark"); err == nil {
		config += "[network]\nnetwork_backend = \"netavark\"\n"
	}
	// Machines that are containers themselves allow no more.
	config += "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n"
	file := filepath.Join(dir, "containers.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	// A container's files may belong to users of its own: podman removes them, not the test.
	store, err := os.MkdirTemp("", "tocsin-podman")
	if err != nil {
		t.Fatal(err)
	}
	p := &podman{
		t: t, env: append(os.Environ(), "CONTAINERS_CONF="+file),
		args: []string{"--root=" + store + "/root", "--runroot=" + store + "/run", "--storage-driver=vfs"},
	}
	t.Cleanup(func() { _ = os.RemoveAll(store) })
	return p
}

func (p *podman) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "podman", append(p.args, args...)...)
	cmd.Env = p.env
	return cmd
}

// do returns the output of podman.
func (p *podman) do(args ...string) string {
	p.t.Helper()
	cmd := p.command(context.Background(), args...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("podman %s: %v: %s%s", strings.Join(args, " "), err, out, complaints.String())
	}
	return strings.TrimSpace(string(out))
}

// TestTheImageRuns starts the image as it is meant to be run: without root, without capabilities,
// on a read-only file system, with little memory, on real databases.
func TestTheImageRuns(t *testing.T) {
	postgres, clickhouse := os.Getenv("TOCSIN_TEST_POSTGRES_URL"), os.Getenv("TOCSIN_TEST_CLICKHOUSE_URL")
	if postgres == "" || clickhouse == "" {
		t.Fatal("there are no databases: run the tests with make test-image")
	}
	p := newPodman(t)
	layouts := filepath.Join(released(t), "image")
	archives, err := filepath.Glob(filepath.Join(released(t), "*_"+runtime.GOARCH+".image.tar"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("archives: %v, %v", archives, err)
	}
	loaded := p.do("load", "--quiet", "--input", archives[0])
	image := p.do("pull", "--quiet", "oci:"+layouts)
	if _, name, _ := strings.Cut(loaded, ": "); p.do("inspect", "--type=image", "--format={{.Id}}", name) != image {
		t.Errorf("loaded from the archive is %q, from the layout %s", loaded, image)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	common := []string{
		"--network=host", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--memory=256m",
		"--env=TOCSIN_POSTGRES_URL=" + postgres, "--env=TOCSIN_CLICKHOUSE_URL=" + clickhouse, "--env=TOCSIN_LISTEN=" + address,
		"--env=TOCSIN_ACCESS=open",
		"--env=TOCSIN_ENCRYPTION_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", image,
	}
	run := func(args ...string) string {
		t.Helper()
		return p.do(append(append([]string{"run", "--rm"}, common...), args...)...)
	}
	if said := run("version"); !strings.Contains(said, "schema") || strings.Contains(said, "tocsin dev") {
		t.Errorf("version says %q", said)
	}
	run("migrate")
	run("config", "check")
	p.do(append([]string{"run", "--detach", "--name=tocsin"}, common...)...)
	t.Cleanup(func() { _ = p.command(context.Background(), "rm", "--force", "--time=0", "tocsin").Run() })
	p.untilReady()
	if id := p.do("exec", "tocsin", "/usr/bin/tocsin", "healthcheck", "--live"); id != "ok" {
		t.Errorf("healthcheck --live says %q", id)
	}
	if user := p.do("inspect", "--format={{.Config.User}}", "tocsin"); user != "65532:65532" {
		t.Errorf("it runs as %s", user)
	}
	// The calendar of a rule and the window of a silence depend on the time zone database, which an
	// image from scratch does not have.
	for zone, want := range map[string]int{"Europe/Berlin": http.StatusCreated, "Europe/Nowhere": http.StatusBadRequest} {
		body := fmt.Sprintf(`{"name": "By night %s", "match": {"severities": ["INFO"]},
			"recurrence": {"timeZone": %q, "weekdays": ["MONDAY"], "from": "22:00", "durationMinutes": 480}}`, address, zone)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/api/v1/silences", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != want {
			t.Errorf("a window in the zone %s is answered by %d, want %d: %s, %v", zone, response.StatusCode, want, said, err)
		}
	}
	p.do("stop", "--time=40", "tocsin")
	if code := p.do("inspect", "--format={{.State.ExitCode}}", "tocsin"); code != "0" {
		t.Errorf("after SIGTERM it ended with %s:\n%s", code, p.do("logs", "tocsin"))
	}
}

func (p *podman) untilReady() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var said string
	for {
		out, err := p.command(ctx, "exec", "tocsin", "/usr/bin/tocsin", "healthcheck").CombinedOutput()
		if err == nil {
			return
		}
		said = fmt.Sprintf("%v: %s", err, out)
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("not ready: %s\n%s", said, p.do("logs", "tocsin"))
		}
	}
}

// TestTheOtherArchitectureRuns migrates a database and serves with the binary of the image for
// arm64, run by qemu.
func TestTheOtherArchitectureRuns(t *testing.T) {
	postgres, clickhouse := os.Getenv("TOCSIN_TEST_POSTGRES_URL"), os.Getenv("TOCSIN_TEST_CLICKHOUSE_URL")
	if postgres == "" || clickhouse == "" {
		t.Fatal("there are no databases: run the tests with make test-image")
	}
	files, _ := filesOf(t, loaded(t, "arm64"))
	binary := filepath.Join(t.TempDir(), "tocsin")
	if err := os.WriteFile(binary, files["usr/bin/tocsin"], 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command("qemu-aarch64", append([]string{binary}, args...)...) //nolint:noctx // ends by itself, or is ended
		cmd.Env = append(os.Environ(), "TOCSIN_POSTGRES_URL="+postgres, "TOCSIN_CLICKHOUSE_URL="+clickhouse, "TOCSIN_LISTEN="+address,
			"TOCSIN_ENCRYPTION_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
		return cmd
	}
	for _, args := range [][]string{{"version"}, {"migrate"}} {
		if out, err := command(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s (qemu is needed here: apt-get install qemu-user)", args, err, out)
		}
	}
	server := command("serve")
	var log strings.Builder
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill() })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for command("healthcheck").Run() != nil {
		if ctx.Err() != nil {
			t.Fatalf("not ready:\n%s", log.String())
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("after SIGTERM it ended with %v:\n%s", err, log.String())
	}
}
