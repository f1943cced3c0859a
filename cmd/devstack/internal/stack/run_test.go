//go:build unix

package stack_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tocsin/cmd/devstack/internal/netport"
)

func TestRunPassesTheExitCodeOn(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		"kill -TERM $$": 143, "exit 125": 125,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			temp := passable(t)
			d := run(t, temp, "run", "--", "sh", "-c", "echo out; "+script)
			if got := d.exit(t); got != want {
				t.Errorf("exit code %d, want %d", got, want)
			}
			d.stdout.await(t, "out")
			if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestRunShowsSlackMessages posts a message to the look-alike of Slack, and finds it there.
func TestRunShowsSlackMessages(t *testing.T) {
	t.Parallel()
	temp := passable(t)
	d := run(t, temp, "run", "--", "sh", "-c", `hook=$TOCSIN_DEVSTACK_SLACK_URL
		curl -sS -H 'Content-Type: application/json' -d '{"text": "a failed order"}' "$hook"; echo
		curl -sS "${hook%/services/*}/api/messages"; echo`)
	d.stdout.await(t, "ok")
	d.stdout.await(t, "a failed order")
	if got := d.exit(t); got != 0 {
		t.Errorf("exit code %d", got)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRunWithoutSuchACommand(t *testing.T) {
	t.Parallel()
	for want, args := range map[int][]string{
		127: {"run", "--", "no-such-command-anywhere"},
		125: {"run", "--"},
	} {
		d := run(t, passable(t), args...)
		if got := d.exit(t); got != want {
			t.Errorf("%v: exit code %d, want %d", args, got, want)
		}
		if said := strings.TrimSpace(d.stderr.text()); strings.Count(said, "\n") != 0 || said == "" {
			t.Errorf("%v: said %q, want one line", args, said)
		}
	}
}

func TestRunForwardsSignals(t *testing.T) {
	t.Parallel()
	d := run(t, passable(t), "run", "--", "sh", "-c",
		`trap "echo asked; exit 3" TERM; echo ready; while :; do sleep 1000 & wait $!; done`)
	d.stdout.await(t, "ready")
	d.signal(t, syscall.SIGTERM)
	d.stdout.await(t, "asked")
	if got := d.exit(t); got != 3 {
		t.Errorf("exit code %d, want the command's 3", got)
	}
}

func TestRunKillsAtTheSecondSignal(t *testing.T) {
	t.Parallel()
	d := run(t, passable(t), "run", "--", "sh", "-c",
		`trap "echo asked" TERM; echo ready; while :; do sleep 1000 & wait $!; done`)
	d.stdout.await(t, "ready")
	d.signal(t, syscall.SIGTERM)
	d.stdout.await(t, "asked")
	d.signal(t, syscall.SIGTERM)
	if got := d.exit(t); got != 137 {
		t.Errorf("exit code %d, want 137", got)
	}
}

func TestKilledRunLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	temp := passable(t)
	d := run(t, temp, "run", "--", "sh", "-c",
		`echo "$TOCSIN_TEST_POSTGRES_URL"; echo "$TOCSIN_TEST_CLICKHOUSE_URL"; echo "command $$"; exec sleep 1000`)
	var ports []int
	for _, scheme := range []string{"postgres://", "http://"} {
		address, err := url.Parse(d.stdout.await(t, scheme))
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(address.Port())
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	command, err := strconv.Atoi(strings.TrimPrefix(d.stdout.await(t, "command "), "command "))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command has ended", func() bool { return gone(command) })
	for _, port := range ports {
		eventually(t, "nobody listens on the port", func() bool { return netport.Available(port) == nil })
	}

	left, _ := filepath.Glob(filepath.Join(temp, "*"))
	if len(left) != 1 {
		t.Fatalf("a killed run left %v, want its directory", left)
	}
	if got := run(t, temp, "run", "--", "true").exit(t); got != 0 {
		t.Errorf("the next run: exit code %d", got)
	}
	if _, err := os.Stat(left[0]); !os.IsNotExist(err) {
		t.Errorf("the next run left %s where it was: %v", left[0], err)
	}
}

func TestRunIsEndedWhileItStarts(t *testing.T) {
	t.Parallel()
	temp := passable(t)
	d := run(t, temp, "run", "--", "sh", "-c", "echo started; sleep 1000")
	eventually(t, "a directory for the databases", func() bool {
		made, _ := filepath.Glob(filepath.Join(temp, "*", "postgres*"))
		return len(made) > 0
	})
	d.signal(t, syscall.SIGINT)
	if got := d.exit(t); got != 130 {
		t.Errorf("exit code %d, want 130", got)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
