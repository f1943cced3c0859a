package main

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
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

// TestEverySecretIsMarked holds that whoever adds a setting that is a secret gives it the
// placeholder by which it is hidden.
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
	for _, text := range []string{"✗ TOCSIN_LISTN is not a setting; TOCSIN_LISTEN is one", "✗ TOCSIN_ENCRYPTION_KEY", "✗ TOCSIN_RETRY_SCHEDULE", "✗ TOCSIN_LEASE", "✗ TOCSIN_BUS_URL"} {
		if !strings.Contains(out, text) {
			t.Errorf("%q is not in:\n%s", text, out)
		}
	}
	if strings.Contains(out, "s3cret") {
		t.Errorf("a secret is shown:\n%s", out)
	}
}

// TestConfigCheckRefusesWhatServeWouldRefuse holds that what can be known of a setting without a database is known before there is one.
func TestConfigCheckRefusesWhatServeWouldRefuse(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own.yaml")
	if err := os.WriteFile(own, []byte("id: own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	valid := strings.Replace(minimal, "encryption-key: s3cret", "encryption-key: "+key, 1)
	for settings, want := range map[string][]string{
		"public-url: tocsin.example.com\n":                            {"TOCSIN_PUBLIC_URL"},
		"exchange-url: https://x/{trace}\n":                           {"TOCSIN_EXCHANGE_URL"},
		"outgoing-proxy: socks5://proxy:1080\n":                       {"TOCSIN_OUTGOING_PROXY"},
		"slack-api-url: slack\n":                                      {"TOCSIN_SLACK_API_URL"},
		"receivers: [" + own + "]\n":                                  {"TOCSIN_RECEIVERS", own},
		"listen: \"8080\"\n":                                          {"TOCSIN_LISTEN"},
		"listen: 127.0.0.1:web\n":                                     {"TOCSIN_LISTEN"},
		"access: open\nlisten: 0.0.0.0:8080\n":                        {"TOCSIN_ACCESS"},
		"access: open\nlisten: :8080\n":                               {"TOCSIN_ACCESS"},
		"bus: redis\nbus-url: nats://127.0.0.1:4222\n":                {"TOCSIN_BUS_URL"},
		"bus: nats\nbus-url: redis://127.0.0.1:6379\n":                {"TOCSIN_BUS_URL"},
		"oidc-issuer: https://login.example.com\noidc-client-id: x\n": {"TOCSIN_PUBLIC_URL"},
		"public-url: x\nslack-api-url: y\noutgoing-proxy: z\n":        {"TOCSIN_PUBLIC_URL", "TOCSIN_SLACK_API_URL"},
	} {
		out, err := checked(t, valid+settings)
		if done, ok := errors.AsType[exitError](err); !ok || done.code != 1 {
			t.Errorf("%s: %v, want exit code 1:\n%s", settings, err, out)
		}
		for _, text := range want {
			if !regexp.MustCompile(`✗ .*` + regexp.QuoteMeta(text)).MatchString(out) {
				t.Errorf("%s: %q is not said in:\n%s", settings, text, out)
			}
		}
	}
	for _, settings := range []string{
		"listen: localhost:0\naccess: open\n", "listen: \"[::1]:http\"\naccess: open\n", "bus: nats\nbus-url: nats-a:4222,nats-b:4222\n",
		// Without the role api nobody comes in, and nobody signs in.
		"roles: [dispatch]\naccess: open\nlisten: 0.0.0.0:8080\noidc-issuer: https://login.example.com\n",
	} {
		if out, err := checked(t, valid+settings); err != nil {
			t.Errorf("%s is refused: %v\n%s", settings, err, out)
		}
	}
}
