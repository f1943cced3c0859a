package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const binary = "../../bin/tocsin"

// servers returns the URLs of the temporary databases.
func servers(t *testing.T) (postgres *url.URL, clickhouse string) {
	t.Helper()
	address := os.Getenv("TOCSIN_TEST_POSTGRES_URL")
	clickhouse = os.Getenv("TOCSIN_TEST_CLICKHOUSE_URL")
	postgres, err := url.Parse(address)
	if err != nil || address == "" || clickhouse == "" {
		t.Fatal("there are no databases: run the tests with make test-deploy")
	}
	return postgres, clickhouse
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nobody connected
	return listener.Addr().String()
}

// pooler starts a PgBouncer in front of a database and returns the database's URL through it.
// Versions that can prepare statements in transaction mode keep as many as prepared says.
func pooler(t *testing.T, mode string, prepared int) string {
	t.Helper()
	const size = 20
	return poolerOf(t, mode, prepared, size)
}

// poolerOf is pooler with a number of connections to Postgres.
func poolerOf(t *testing.T, mode string, prepared, size int) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "pgbouncer", "--version").Output()
	if err != nil {
		t.Fatalf("pgbouncer: %v (apt-get install pgbouncer)", err)
	}
	postgres, _ := servers(t)
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "tocsin-pgbouncer") //nolint:usetesting // another user reads it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := fmt.Sprintf(`[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = %d
`, postgres.Hostname(), postgres.Port(), postgres.User.Username(), port, mode, size)
	if keeps(said) {
		config += "max_prepared_statements = " + strconv.Itoa(prepared) + "\n"
	}
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := errors.Join(os.WriteFile(file, []byte(config), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("pgbouncer", file) //nolint:noctx // ended below
	if os.Geteuid() == 0 {
		// It refuses to run as root.
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("PgBouncer said:\n%s", log.String())
		}
	})
	until(t, "PgBouncer", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	through := *postgres
	through.Host = address
	return through.String()
}

// keeps reports whether a version of PgBouncer, 1.21 or newer, keeps prepared statements.
func keeps(version []byte) bool {
	found := regexp.MustCompile(`PgBouncer (\d+)\.(\d+)`).FindSubmatch(version)
	if found == nil {
		return false
	}
	major, _ := strconv.Atoi(string(found[1]))
	minor, _ := strconv.Atoi(string(found[2]))
	return major*1000+minor >= 1021
}

// until waits for something that takes a moment.
func until(t *testing.T, what string, done func(ctx context.Context) error) {
	t.Helper()
	untilWithin(t, 2*time.Minute, what, done)
}

func untilWithin(t *testing.T, bound time.Duration, what string, done func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := done(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// tocsin returns a command that runs the program with settings, as NAME=value.
func tocsin(t *testing.T, postgres string, settings []string, args ...string) *exec.Cmd {
	t.Helper()
	_, clickhouse := servers(t)
	path, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...) //nolint:noctx // ends by itself, or is ended
	cmd.Env = append([]string{
		"TOCSIN_POSTGRES_URL=" + postgres, "TOCSIN_CLICKHOUSE_URL=" + clickhouse, "TOCSIN_ENCRYPTION_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
	}, settings...)
	return cmd
}

// says runs the program to its end, at most two minutes, and checks its output and whether it
// succeeds.
func says(t *testing.T, succeeds bool, text string, cmd *exec.Cmd) {
	t.Helper()
	const bound = 2 * time.Minute
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Start()
	if err == nil {
		late := time.AfterFunc(bound, func() { _ = cmd.Process.Kill() })
		err = cmd.Wait()
		late.Stop()
	}
	if (err == nil) != succeeds || !strings.Contains(out.String(), text) {
		t.Errorf("%s: %v, want %q:\n%s", strings.Join(cmd.Args[1:], " "), err, text, out.String())
	}
}

// makeTable creates the table of exchanges as the documentation describes.
func makeTable(t *testing.T) {
	t.Helper()
	postgres, clickhouse := servers(t)
	statement, err := tocsin(t, postgres.String(), nil, "source", "ddl").Output()
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(clickhouse, "/default"), bytes.NewReader(statement))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read as far as it matters
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("make the table: %s: %s, %v", answer.Status, text, err)
	}
}

// serves starts the server, waits until it is ready, follows a failing exchange to its message, and
// stops the server in an orderly way.
func serves(t *testing.T, postgres string, settings ...string) {
	t.Helper()
	address := freeAddress(t)
	settings = append(settings, "TOCSIN_LISTEN="+address, "TOCSIN_ACCESS=open", "TOCSIN_OUTGOING_ALLOW=127.0.0.0/8")
	cmd := tocsin(t, postgres, settings, "serve")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Logf("tocsin serve said:\n%s", log.String())
		}
	}()
	until(t, "tocsin serve", func(context.Context) error { return tocsin(t, postgres, settings, "healthcheck").Run() })
	delivers(t, "http://"+address+"/api/v1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v:\n%s", err, log.String())
	}
	if strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log has errors:\n%s", log.String())
	}
}

// delivers makes the server behind an API raise an alert and send its message.
func delivers(t *testing.T, api string) {
	t.Helper()
	_, clickhouse := servers(t)
	got := &messages{ids: map[string][]string{}}
	receiver := httptest.NewServer(got)
	t.Cleanup(receiver.Close)
	name := "delivered " + freeAddress(t)
	hook, err := post(t.Context(), api+"/webhooks", fmt.Appendf(nil, `{"name": %q, "kind": "generic", "url": %q}`, name, receiver.URL))
	if err != nil {
		t.Fatal(err)
	}
	rule := fmt.Appendf(nil, `{"name": %q, "fireMode": "PER_EXCHANGE", "severity": "INFO", "scope": {"applications": [%q]}, "webhookIds": [%q]}`, name, name, hook["id"])
	if _, err := post(t.Context(), api+"/rules", rule); err != nil {
		t.Fatal(err)
	}
	if err := insertFailure(t.Context(), clickhouse, name); err != nil {
		t.Fatal(err)
	}
	until(t, "the message", func(context.Context) error {
		if got.exchanges() == 0 {
			return errors.New("the receiver has none")
		}
		return nil
	})
}

func TestAPoolerInTransactionModeIsRefusedOrWorks(t *testing.T) {
	direct, _ := servers(t)
	makeTable(t)
	says(t, true, "", tocsin(t, direct.String(), nil, "migrate"))
	through := pooler(t, "transaction", 0)
	describe := through + "&default_query_exec_mode=cache_describe"

	says(t, false, "run tocsin migrate with a TOCSIN_POSTGRES_URL that leads to Postgres itself", tocsin(t, through, nil, "migrate"))
	says(t, false, "add default_query_exec_mode=cache_describe to TOCSIN_POSTGRES_URL", tocsin(t, through, nil, "serve"))
	says(t, false, "set TOCSIN_BUS_URL", tocsin(t, describe, nil, "serve"))
	says(t, false, "set TOCSIN_BUS_URL", tocsin(t, direct.String(), []string{"TOCSIN_BUS_URL=" + through}, "serve"))
	says(t, false, "✗ pooler", tocsin(t, through, nil, "doctor"))
	says(t, true, "in transaction mode, which suits tocsin serve", tocsin(t, describe, []string{"TOCSIN_BUS_URL=" + direct.String()}, "doctor"))
	serves(t, describe, "TOCSIN_BUS_URL="+direct.String())

	version, err := exec.CommandContext(t.Context(), "pgbouncer", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !keeps(version) {
		// make test-deploy says that this was not tested.
		return
	}
	serves(t, pooler(t, "transaction", 200), "TOCSIN_BUS_URL="+direct.String())
}

// TestABusyPoolerIsRecognised has so many other clients of a pooler that hardly any client gets the
// same connection twice in a row, as when a replica is added to others.
func TestABusyPoolerIsRecognised(t *testing.T) {
	direct, _ := servers(t)
	makeTable(t)
	says(t, true, "", tocsin(t, direct.String(), nil, "migrate"))
	through := pooler(t, "transaction", 0) + "&default_query_exec_mode=cache_describe"
	busy, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	const clients = 30
	for range clients {
		others.Go(func() {
			conn, err := pgx.Connect(busy, through)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close(context.WithoutCancel(busy)) //nolint:errcheck // nothing is pending on it
			for busy.Err() == nil {
				if _, err := conn.Exec(busy, "begin; select pg_sleep(0.01); commit"); err != nil && busy.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	const tries = 5
	for range tries {
		says(t, false, "LISTEN receives nothing through a pooler in transaction mode; set TOCSIN_BUS_URL", tocsin(t, through, nil, "serve"))
	}
}

// TestAPoolerThatIsTooSmallIsRefused has a pooler with a single connection, which every client
// gets.
func TestAPoolerThatIsTooSmallIsRefused(t *testing.T) {
	direct, _ := servers(t)
	says(t, true, "", tocsin(t, direct.String(), nil, "migrate"))
	through := poolerOf(t, "session", 0, 1)
	says(t, false, "the pooler provides no second connection", tocsin(t, through, nil, "serve"))
}

func TestAPoolerInSessionModeWorks(t *testing.T) {
	makeTable(t)
	through := pooler(t, "session", 0)
	says(t, true, "", tocsin(t, through, nil, "migrate"))
	says(t, true, "in session mode", tocsin(t, through, nil, "doctor"))
	serves(t, through)
}

func TestModesThatGuessTypesAreRefused(t *testing.T) {
	direct, _ := servers(t)
	for _, mode := range []string{"exec", "simple_protocol"} {
		through := direct.String() + "&default_query_exec_mode=" + mode
		says(t, false, "default_query_exec_mode="+mode+", which Tocsin does not support", tocsin(t, through, nil, "serve"))
		says(t, false, "default_query_exec_mode="+mode, tocsin(t, through, nil, "config", "check"))
	}
}

// TestTheFirstServerThatTakesWritesIsFound checks what docs/install.md says about a URL with
// several servers.
func TestTheFirstServerThatTakesWritesIsFound(t *testing.T) {
	direct, _ := servers(t)
	makeTable(t)
	several := *direct
	several.Host = freeAddress(t) + "," + direct.Host
	address := several.String() + "&target_session_attrs=read-write&connect_timeout=2"
	says(t, true, "", tocsin(t, address, nil, "migrate"))
	says(t, true, "OK", tocsin(t, address, nil, "doctor", "--json"))
	serves(t, address)
}
