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

// TestFormerNamesOfSettings sets each renamed setting by its former name, and by both: the present one counts.
func TestFormerNamesOfSettings(t *testing.T) {
	unset(t, "TOCSIN_POSTGRES_URL", "TOCSIN_CLICKHOUSE_URL", "TOCSIN_ENCRYPTION_KEY")
	for name, c := range map[string]struct {
		former string
		of     func(s *serve) time.Duration
	}{
		"TOCSIN_PARTITION_LEASE":     {"TOCSIN_CLAIM_FOR", func(s *serve) time.Duration { return s.PartitionLease }},
		"TOCSIN_DEAD_CHECK_INTERVAL": {"TOCSIN_REAP_INTERVAL", func(s *serve) time.Duration { return s.DeadCheckInterval }},
		"TOCSIN_RETENTION_INTERVAL":  {"TOCSIN_SWEEP_INTERVAL", func(s *serve) time.Duration { return s.RetentionInterval }},
	} {
		t.Run(name, func(t *testing.T) {
			unset(t, name, c.former)
			key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(c.former, prefix)), "_", "-")
			expect := func(how string, want time.Duration, document string, args ...string) {
				t.Helper()
				if got, _, err := parsed(t, minimal+document, append([]string{"serve"}, args...)...); err != nil || c.of(&got.Serve) != want {
					t.Errorf("%s: %v, %v, want %v", how, c.of(&got.Serve), err, want)
				}
			}
			expect("by key", 7*time.Minute, key+": 7m\n")
			expect("by flag", 8*time.Minute, "", "--"+key+"=8m")
			t.Setenv(c.former, "9m")
			expect("by variable", 9*time.Minute, key+": 7m\n")
			t.Setenv(name, "10m")
			expect("by both variables", 10*time.Minute, "")
		})
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
		"clickhouse_url: x":                  "line 1: unknown setting clickhouse_url; clickhouse-url is one",
		"TOCSIN_LISTEN: x":                   "line 1: unknown setting TOCSIN_LISTEN; listen is one",
		"tick-intervall: 1s":                 "unknown setting tick-intervall; tick-interval is one",
		"colour: red":                        "unknown setting colour; docs/settings.md lists them",
		"config: other.yaml":                 "unknown setting config",
		"\nlisten:":                          "line 2: listen has no value",
		"listen: [a]":                        "line 1: listen takes a single value",
		"retry-schedule: {a: b}":             "retry-schedule takes a list",
		"retry-schedule: [[1m]]":             "takes a list of single values",
		"oidc-role-map: [a]":                 "oidc-role-map takes a mapping",
		"listen: a\nlisten: b":               "line 2: listen is set twice; remove one of the lines",
		"claim-for: 1m\npartition-lease: 1m": "line 2: partition-lease is set twice; remove one of the lines",
		"- listen":                           "must be one mapping",
		"listen: a\n---\nlease: 1m":          "line 2: the file contains several documents",
		"listen: a\n---\n{s3cret: a":         "not YAML",
		"encryption-key: {s3cret: a":         "not YAML",
		"encryption-key: *s3cret":            "not YAML",
		"tick-interval: sometimes":           "tick-interval",
		"log-level: loud":                    "log-level",
		"page-size: 1\nlease: [1, 2]":        "line 2: lease takes a single value",
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
