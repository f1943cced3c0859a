package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

const composeFile = "../../deploy/compose.yaml"

func compose(t *testing.T, environment ...string) (*types.Project, error) {
	t.Helper()
	return composeOf(t, composeFile, environment...)
}

func composeOf(t *testing.T, file string, environment ...string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(environment))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

// settings returns the names of all settings, as the reference lists them.
func settings(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `(TOCSIN_[A-Z_]+)`").FindAllStringSubmatch(string(text), -1) {
		known[match[1]] = true
	}
	if len(known) < 30 {
		t.Fatalf("the reference lists %d settings", len(known))
	}
	return known
}

func TestTheComposeFileStartsEverythingInOrder(t *testing.T) {
	project, err := compose(t, "TOCSIN_IMAGE=tocsin:1.0.0", "POSTGRES_PASSWORD=pg", "CLICKHOUSE_PASSWORD=ch", "TOCSIN_ENCRYPTION_KEY=key")
	if err != nil {
		t.Fatal(err)
	}
	tocsin, migrate := project.Services["tocsin"], project.Services["migrate"]
	for on, condition := range map[string]string{
		"postgres": types.ServiceConditionHealthy, "clickhouse": types.ServiceConditionHealthy, "migrate": types.ServiceConditionCompletedSuccessfully,
	} {
		if tocsin.DependsOn[on].Condition != condition {
			t.Errorf("tocsin depends on %s by %q, want %q", on, tocsin.DependsOn[on].Condition, condition)
		}
	}
	if tocsin.Scale == nil && (tocsin.Deploy == nil || *tocsin.Deploy.Replicas != 2) || !tocsin.ReadOnly || len(tocsin.CapDrop) == 0 || strings.Join(migrate.Command, " ") != "migrate" {
		t.Errorf("tocsin is %+v", tocsin)
	}
	known := settings(t)
	for _, service := range []types.ServiceConfig{tocsin, migrate} {
		for name, value := range service.Environment {
			if !known[name] {
				t.Errorf("%s of %s is not a setting", name, service.Name)
			}
			if value != nil && strings.Contains(*value, "$") {
				t.Errorf("%s is %q: something is not filled in", name, *value)
			}
		}
		if service.Environment["TOCSIN_POSTGRES_URL"] == nil || *service.Environment["TOCSIN_POSTGRES_URL"] != "postgres://tocsin:pg@postgres:5432/tocsin" {
			t.Errorf("%s reaches Postgres at %v", service.Name, service.Environment["TOCSIN_POSTGRES_URL"])
		}
	}
}

func TestTheComposeFileAsksForWhatItNeeds(t *testing.T) {
	all := []string{"TOCSIN_IMAGE=tocsin:1.0.0", "POSTGRES_PASSWORD=pg", "CLICKHOUSE_PASSWORD=ch", "TOCSIN_ENCRYPTION_KEY=key"}
	for i, entry := range all {
		name, _, _ := strings.Cut(entry, "=")
		rest := append(append([]string{}, all[:i]...), all[i+1:]...)
		if _, err := compose(t, rest...); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestTheComposeFileTakesMoreSettings gives the replicas and the migration additional settings from
// an override file, and checks that the program accepts all of them.
func TestTheComposeFileTakesMoreSettings(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"compose.yaml", "collector.yaml", "source.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../deploy", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	err := os.WriteFile(filepath.Join(dir, "tocsin.env"), []byte("# More\nTOCSIN_TRUSTED_PROXIES=172.16.0.0/12\nTOCSIN_PUBLIC_URL=http://ignored\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	const key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	project, err := composeOf(t, filepath.Join(dir, "compose.yaml"), "TOCSIN_IMAGE=tocsin:1.0.0", "POSTGRES_PASSWORD=pg", "CLICKHOUSE_PASSWORD=ch", "TOCSIN_ENCRYPTION_KEY="+key)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tocsin", "migrate"} {
		environment := project.Services[name].Environment
		if got := environment["TOCSIN_TRUSTED_PROXIES"]; got == nil || *got != "172.16.0.0/12" || *environment["TOCSIN_PUBLIC_URL"] != "http://localhost:8080" {
			t.Errorf("%s has the settings %v", name, environment)
		}
	}
	service := project.Services["tocsin"]
	mapping := project.Configs[service.Configs[0].Source].File
	if *service.Environment["TOCSIN_SOURCE_FILE"] != service.Configs[0].Target {
		t.Errorf("Tocsin reads %s, and has %v", *service.Environment["TOCSIN_SOURCE_FILE"], service.Configs)
	}
	text, err := os.ReadFile(mapping)
	if err != nil {
		t.Fatal(err)
	}
	// As shipped, and with the line that the page suggests.
	for _, text := range []string{string(text), strings.Replace(string(text), "# terminal:", "terminal:", 1)} {
		if err := os.WriteFile(mapping, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		check := exec.CommandContext(t.Context(), binary, "config", "check")
		for name, value := range service.Environment {
			if name == "TOCSIN_SOURCE_FILE" {
				value = &mapping
			}
			check.Env = append(check.Env, name+"="+*value)
		}
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("config check: %v\n%s", err, out)
		}
	}
	if !strings.Contains(string(text), "\n# terminal: ") {
		t.Errorf("the mapping proposes nothing:\n%s", text)
	}
}

// TestTheCollectorWritesWhereTocsinReads compares both settings.
func TestTheCollectorWritesWhereTocsinReads(t *testing.T) {
	text, err := os.ReadFile("../../deploy/collector.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var collector struct {
		Exporters map[string]struct {
			Endpoint string `yaml:"endpoint"`
			Database string `yaml:"database"`
			Username string `yaml:"username"`
		} `yaml:"exporters"`
		Service struct {
			Pipelines map[string]struct {
				Exporters []string `yaml:"exporters"`
			} `yaml:"pipelines"`
		} `yaml:"service"`
	}
	if err := yaml.Unmarshal(text, &collector); err != nil {
		t.Fatal(err)
	}
	out := collector.Exporters["clickhouse"]
	project, err := compose(t, "TOCSIN_IMAGE=tocsin:1.0.0", "POSTGRES_PASSWORD=pg", "CLICKHOUSE_PASSWORD=ch", "TOCSIN_ENCRYPTION_KEY=key")
	if err != nil {
		t.Fatal(err)
	}
	want := "clickhouse://" + out.Username + ":ch@" + strings.TrimPrefix(out.Endpoint, "tcp://") + "/" + out.Database
	if got := *project.Services["tocsin"].Environment["TOCSIN_CLICKHOUSE_URL"]; got != want || len(collector.Service.Pipelines["traces"].Exporters) != 1 {
		t.Errorf("Tocsin reads %s, the Collector writes %s", got, want)
	}
}
