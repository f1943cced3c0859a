package main

import (
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// unset removes environment variables for the duration of a test.
func unset(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAMissingFlagIsNamedWithItsVariable(t *testing.T) {
	unset(t, "TOCSIN_POSTGRES_URL", "TOCSIN_CLICKHOUSE_URL", "TOCSIN_ENCRYPTION_KEY")
	parser := newParser(&cli{})
	_, err := parser.Parse([]string{"serve", "--clickhouse-url", "http://127.0.0.1:8123"})
	err = naming(err)
	const want = "missing flags: --encryption-key=KEY or TOCSIN_ENCRYPTION_KEY, --postgres-url=URL or TOCSIN_POSTGRES_URL"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := parser.Parse([]string{"users", "list", "--nonsense"}); err == nil || !strings.Contains(naming(err).Error(), "--nonsense") {
		t.Errorf("an unknown flag: %v", err)
	}
}

// TestAZeroIsNotTakenForTheDefault sets each number and each duration of serve to 0, except those
// whose default is 0 or for which 0 has a documented meaning.
func TestAZeroIsNotTakenForTheDefault(t *testing.T) {
	means := map[string]bool{"TOCSIN_SETTLE": true, "TOCSIN_COHORT_LEAST": true, "TOCSIN_SHUTDOWN_DELAY": true, "TOCSIN_AUDIT_RETENTION": true}
	for _, required := range []string{"TOCSIN_POSTGRES_URL", "TOCSIN_CLICKHOUSE_URL", "TOCSIN_ENCRYPTION_KEY"} {
		t.Setenv(required, "nonsense")
	}
	run := func(t *testing.T) (*kong.Context, error) {
		t.Helper()
		var c cli
		k, err := kong.New(&c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := k.Parse([]string{"serve"})
		if err != nil {
			t.Fatal(err)
		}
		return ctx, c.Serve.Run(t.Context(), slog.New(slog.DiscardHandler))
	}
	ctx, err := run(t)
	if err == nil || strings.Contains(err.Error(), "must not be 0") {
		t.Errorf("with the defaults: %v, want nothing but the URLs refused", err)
	}
	for _, flag := range ctx.Selected().Flags {
		kind := flag.Target.Type()
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Int && kind.Kind() != reflect.Int64 {
			continue
		}
		name := flag.Envs[0]
		t.Run(name, func(t *testing.T) {
			zero := "0s"
			if kind.Kind() == reflect.Int {
				zero = "0"
			}
			t.Setenv(name, zero)
			if _, err := run(t); strings.Contains(err.Error(), name+" must not be 0") == means[name] {
				t.Errorf("Run = %v", err)
			}
		})
	}
}

// TestCommandsAgreeOnTheDefaultOfASetting compares the flags of all commands that read the same
// variable: source check would otherwise measure another settle time than that of serve.
func TestCommandsAgreeOnTheDefaultOfASetting(t *testing.T) {
	defaults := map[string]string{}
	var visit func(*kong.Node)
	visit = func(node *kong.Node) {
		for _, flag := range node.Flags {
			for _, name := range flag.Envs {
				if before, there := defaults[name]; there && before != flag.Default {
					t.Errorf("%s: the default of %s is %q, elsewhere it is %q", node.FullPath(), name, flag.Default, before)
				}
				defaults[name] = flag.Default
			}
		}
		for _, child := range node.Children {
			visit(child)
		}
	}
	visit(newParser(&cli{}).Model.Node)
	if len(defaults) < 10 {
		t.Errorf("only %d settings are compared", len(defaults))
	}
}
