package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// parsed returns the command line as it is parsed together with a settings file.
func parsed(t *testing.T, document string, args ...string) (*cli, *kong.Context, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tocsin.yaml")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOCSIN_CONFIG", file)
	var c cli
	k, err := newParser(&c).Parse(args)
	return &c, k, err
}

const minimal = `
postgres-url: postgres://tocsin:s3cret@db:5432/tocsin
clickhouse-url: http://clickhouse:8123/?password=s3cret
encryption-key: s3cret
`

func TestAFlagWinsOverAVariableAndThatOverTheFile(t *testing.T) {
	unset(t, "TOCSIN_POSTGRES_URL", "TOCSIN_CLICKHOUSE_URL", "TOCSIN_ENCRYPTION_KEY", "TOCSIN_LISTEN", "TOCSIN_TICK_INTERVAL", "TOCSIN_SETTLE", "TOCSIN_PAGE_SIZE")
	t.Setenv("TOCSIN_TICK_INTERVAL", "2s")
	t.Setenv("TOCSIN_SETTLE", "2s")
	c, k, err := parsed(t, minimal+`
log-level: debug
listen: 0.0.0.0:1
tick-interval: 1m
settle: 1m
retry-schedule: [1m, 90s]
outgoing-allow: [10.1.0.0/16, "fd00::/8"]
oidc-role-map: {ops: operator, "a=b": admin}
roles: api
page-size: 5
`, "serve", "--settle=3s")
	if err != nil {
		t.Fatal(err)
	}
	s := c.Serve
	if c.LogLevel != "debug" || s.Listen != "0.0.0.0:1" || s.TickInterval != 2*time.Second || s.Settle != 3*time.Second || s.PageSize != 5 ||
		!slices.Equal(s.RetrySchedule, []time.Duration{time.Minute, 90 * time.Second}) || len(s.OutgoingAllow) != 2 || s.OIDC.RoleMap["ops"] != "operator" ||
		len(s.Roles) != 1 || s.Lease != 30*time.Second {
		t.Errorf("serve is %+v", s)
	}
	for name, want := range map[string]string{"listen": "file", "tick-interval": "environment", "settle": "flag", "lease": "", "config": "environment"} {
		flags := k.Flags()
		f := flags[slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name })]
		if got := originOf(k, f); got != want {
			t.Errorf("%s is from %q, want %q", name, got, want)
		}
	}
}

// TestOneFileServesEveryCommand checks that a command ignores the settings that only others have.
func TestOneFileServesEveryCommand(t *testing.T) {
	unset(t, "TOCSIN_POSTGRES_URL")
	c, _, err := parsed(t, minimal+"listen: 0.0.0.0:1\n", "migrate")
	if err != nil || c.Migrate.PostgresURL == "" {
		t.Errorf("migrate is %+v, %v", c.Migrate, err)
	}
}

func TestAWrongSettingsFileIsExplained(t *testing.T) {
	for document, want := range map[string]string{
		"clickhouse_url: x":           "line 1: unknown setting clickhouse_url; clickhouse-url is one",
		"TOCSIN_LISTEN: x":            "line 1: unknown setting TOCSIN_LISTEN; listen is one",
		"tick-intervall: 1s":          "unknown setting tick-intervall; tick-interval is one",
		"colour: red":                 "unknown setting colour; docs/settings.md lists them",
		"config: other.yaml":          "unknown setting config",
		"\nlisten:":                   "line 2: listen has no value",
		"listen: [a]":                 "line 1: listen takes a single value",
		"retry-schedule: {a: b}":      "retry-schedule takes a list",
		"retry-schedule: [[1m]]":      "takes a list of single values",
		"oidc-role-map: [a]":          "oidc-role-map takes a mapping",
		"listen: a\nlisten: b":        "line 2: listen is set twice; remove one of the lines",
		"- listen":                    "must be one mapping",
		"listen: a\n---\nlease: 1m":   "line 2: the file contains several documents",
		"listen: a\n---\n{s3cret: a":  "not YAML",
		"encryption-key: {s3cret: a":  "not YAML",
		"encryption-key: *s3cret":     "not YAML",
		"tick-interval: sometimes":    "tick-interval",
		"log-level: loud":             "log-level",
		"page-size: 1\nlease: [1, 2]": "line 2: lease takes a single value",
	} {
		_, _, err := parsed(t, document, "version")
		// Settings of serve are read only by serve.
		if err == nil {
			unset(t, "TOCSIN_TICK_INTERVAL", "TOCSIN_LOG_LEVEL")
			_, _, err = parsed(t, minimal+document, "serve")
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v, want %q", document, err, want)
		}
	}
	t.Setenv("TOCSIN_CONFIG", filepath.Join(t.TempDir(), "none.yaml"))
	if _, err := newParser(&cli{}).Parse([]string{"version"}); err == nil || !strings.Contains(err.Error(), "--config or TOCSIN_CONFIG") {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, _, err := parsed(t, "", "version"); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}
