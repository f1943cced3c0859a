package main

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTheReferenceIsUpToDate(t *testing.T) {
	want, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	if reference(newParser(&cli{}).Model.Node) != string(want) {
		t.Error("docs/settings.md is not what the settings say: run make generate and commit it")
	}
}

// TestEverySecretIsMarked checks that every setting that is a secret has the placeholder by which
// it is hidden.
func TestEverySecretIsMarked(t *testing.T) {
	name := regexp.MustCompile(`(key|password|secret|token)$`)
	for _, f := range settingsOf(newParser(&cli{}).Model.Node) {
		if name.MatchString(f.Name) != secret(f) {
			t.Errorf("--%s has the placeholder %s: want KEY, PASSWORD, SECRET or TOKEN of a secret, and of nothing else", f.Name, f.PlaceHolder)
		}
	}
}

// checked runs `tocsin config check` and returns what it prints.
func checked(t *testing.T, document string) (string, error) {
	t.Helper()
	unset(t, "TOCSIN_POSTGRES_URL", "TOCSIN_CLICKHOUSE_URL", "TOCSIN_ENCRYPTION_KEY")
	c, k, err := parsed(t, document, "config", "check")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = c.Config.Check.Run(t.Context(), &out, k)
	return out.String(), err
}

func TestConfigCheckShowsSettingsWithoutSecrets(t *testing.T) {
	t.Setenv("TOCSIN_TENANT", "acme")
	key := "c2VjcmV0IGtleSBvZiAzMiBieXRlcyBmb3IgdGVzdHM="
	out, err := checked(t, strings.Replace(minimal, "encryption-key: s3cret", "encryption-key: "+key, 1)+"metrics-token: s3cret\nretry-schedule: [1m, 2m]\n")
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	for _, line := range []string{
		`TOCSIN_POSTGRES_URL +postgres://db:5432/tocsin +file`, `TOCSIN_CLICKHOUSE_URL +http://clickhouse:8123/ +file`, `TOCSIN_ENCRYPTION_KEY +\(hidden\) +file`,
		`TOCSIN_TENANT +acme +environment`, `TOCSIN_METRICS_TOKEN +\(hidden\) +file`, `TOCSIN_RETRY_SCHEDULE +1m0s 2m0s +file`, `The settings are valid`,
	} {
		if !regexp.MustCompile(line).MatchString(out) {
			t.Errorf("%s is not in:\n%s", line, out)
		}
	}
	if strings.Contains(out, "s3cret") || strings.Contains(out, key) || strings.Contains(out, "TOCSIN_LEASE") {
		t.Errorf("a secret or a default is shown:\n%s", out)
	}
}

func TestConfigCheckNamesEverythingThatIsWrong(t *testing.T) {
	t.Setenv("TOCSIN_LISTN", "s3cret")
	out, err := checked(t, minimal+"retry-schedule: [0s]\nlease: 1ms\nbus: redis\n")
	if done, ok := errors.AsType[exitError](err); !ok || done.code != 1 {
		t.Errorf("%v, want exit code 1", err)
	}
	for _, text := range []string{"✗ TOCSIN_LISTN is no setting; TOCSIN_LISTEN is one", "✗ TOCSIN_ENCRYPTION_KEY", "✗ TOCSIN_RETRY_SCHEDULE", "✗ TOCSIN_LEASE", "✗ TOCSIN_BUS_URL"} {
		if !strings.Contains(out, text) {
			t.Errorf("%q is not in:\n%s", text, out)
		}
	}
	if strings.Contains(out, "s3cret") {
		t.Errorf("a secret is shown:\n%s", out)
	}
}
