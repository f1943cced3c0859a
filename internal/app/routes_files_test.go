package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tocsin/internal/access"
)

const routesInFile = `
webhooks:
  - name: erp
    kind: generic
    url: https://erp.example/hook
  - name: rest
    kind: generic
    url: https://rest.example/hook
routes:
  - name: Orders
    match:
      rules: [Orders failed]
      scope: {applications: [orders]}
    webhooks: [erp]
    continue: true
  - name: Noise
    match: {severities: [INFO]}
  - default: true
    webhooks: [rest]
rules:
  - name: Orders failed
    severity: CRITICAL
    fireMode: PER_EXCHANGE
    useRoutingPolicy: true
`

// testsPlanned tests a policy whose webhooks, rule and team are only in the files, as a pipeline does before it applies them.
func (f *files) testsPlanned(path string) {
	f.t.Helper()
	f.write("more.yaml", strings.Replace(routesInFile, "    webhooks: [rest]\n", "    webhooks: [rest]\n    escalation: [{afterMinutes: 5, webhooks: [erp], teams: [night]}]\n", 1)+"teams: [{name: night, webhooks: [rest]}]\n")
	test := func(code int, want, file string, args ...string) {
		f.t.Helper()
		if out, got := f.command(append([]string{"route", "test", "--url", f.base, "--token", f.token, "-f", file}, args...)...); got != code || !strings.Contains(out, want) {
			f.t.Errorf("route test of what is planned: exit %d, want %d and %q: %s", got, code, want, out)
		}
	}
	test(0, "→ rest\n", path, "--severity", "warning", "--expect", "rest")
	test(0, "→ after 5 min without acknowledgement: erp, team night", filepath.Join(f.dir, "more.yaml"), "--severity", "warning", "--expect", "rest")
	test(1, "only a file has", path, "--rule", "Orders failed")
	f.write("more.yaml", strings.Replace(routesInFile, "webhooks: [rest]", "webhooks: [nobody]", 1))
	test(1, `there is no webhook named "nobody"`, filepath.Join(f.dir, "more.yaml"), "--severity", "warning")
	f.wantColumn("what a test stores", `select count(*)::text from webhook where name in ('erp', 'rest')`, "0")
}

// TestRoutesInFilesAndByCommand applies a routing policy, and tests it from the command line.
func TestRoutesInFilesAndByCommand(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.token = f.admin.withToken("editor", access.Editor).token
	path := f.write("routes.yaml", routesInFile)
	stored := `select version || ' ' || (policy->'routes'->0->>'name') || ' ' || jsonb_array_length(policy->'routes') || ' ' || jsonb_array_length(policy->'defaultWebhookIds') from routing_policy`
	f.does(1, []string{"+ webhook erp", "+ rule Orders failed", "~ routing policy", "routes: ", "would be 3 created, 1 updated, 0 deleted; 0 unchanged"}, "diff", "-f", path)
	f.testsPlanned(path)
	f.does(0, []string{"3 created, 1 updated"}, "apply", "-f", path)
	f.wantColumn("policy", stored, "2 Orders 2 1")
	f.wantColumn("rule", `select use_routing_policy::text from rule`, "true")
	f.does(0, []string{"0 created, 0 updated, 0 deleted; 4 unchanged"}, "apply", "-f", path)

	out := filepath.Join(f.dir, "out.yaml")
	f.does(0, nil, "export", "--kind", "routes,rules", "-f", out)
	exported, err := os.ReadFile(out)
	for _, part := range []string{"name: Orders", "rules: [Orders failed]", "webhooks: [erp]", "continue: true", "default: true", "useRoutingPolicy: true"} {
		if err != nil || !strings.Contains(string(exported), part) {
			t.Errorf("exported %s, %v; want %q in it", exported, err, part)
		}
	}
	f.does(0, []string{"2 unchanged"}, "diff", "-f", out)

	for what, edit := range map[string][2]string{
		"There is no webhook with this name": {"webhooks: [rest]", "webhooks: [nobody]"},
		"There is no rule with this name":    {"rules: [Orders failed]", "rules: [Nobody]"},
		"The default must be last":           {"  - name: Noise\n    match: {severities: [INFO]}", "  - default: true\n    webhooks: [erp]"},
		"The default can have only webhooks": {"default: true", "default: true\n    continue: true"},
		"A route needs a name":               {"name: Noise\n    match", "match"},
		"routes.yaml:":                       {"continue: true", "goesOn: true"},
		"Another route has the same nam":     {"name: Noise", "name: Orders"},
	} {
		f.write("routes.yaml", strings.Replace(routesInFile, edit[0], edit[1], 1))
		f.does(1, []string{what}, "apply", "-f", path)
	}
	f.wantColumn("after what was refused", stored, "2 Orders 2 1")

	test := func(code int, parts []string, args ...string) {
		t.Helper()
		out, got := f.command(append([]string{"route", "test", "--url", f.base, "--token", f.token}, args...)...)
		if got != code {
			t.Errorf("route test %v: exit %d, want %d: %s", args, got, code, out)
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("route test %v does not say %q:\n%s", args, part, out)
			}
		}
	}
	f.token = f.admin.withToken("viewer", access.Viewer).token
	test(0, []string{"Orders", "TAKEN", "NOT_MATCHED", "Not met: severities", "→ erp by Orders"}, "--rule", "Orders failed", "--application", "orders", "--expect", "erp")
	test(0, []string{"goes to the default", "→ rest"}, "--severity", "warning", "--expect", "rest")
	test(0, []string{"Nobody is notified"}, "--severity", "info", "--expect", "none")
	test(1, []string{"are notified", "→ rest"}, "--severity", "warning", "--expect", "erp")
	f.write("routes.yaml", "routes: []\n")
	test(0, []string{"there is no default", "Nobody is notified"}, "-f", path)
	test(1, []string{"there is no rule named"}, "--rule", "Nobody")
	test(1, []string{"--alert"}, "--alert", "x")
	f.admin.must(http.StatusCreated, http.MethodPost, "/silences", map[string]any{
		"name": "Everything", "match": map[string]any{"severities": []string{"INFO", "WARNING", "CRITICAL"}}, "endsAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
	test(0, []string{"→ rest", "At present the silence Everything, created by " + adminEmail + ", suppresses the messages."}, "--severity", "warning")
	if out, code := f.command("route", "test", "--url", f.base, "--token", f.token, "--severity", "info"); code != 0 || strings.Contains(out, "silence") {
		t.Errorf("exit %d, and it names a silence, although nobody is notified:\n%s", code, out)
	}
	f.token = f.admin.withToken("again", access.Editor).token
	f.does(0, []string{"~ routing policy", "1 updated"}, "apply", "-f", path)
	f.wantColumn("at the end", `select version || ' ' || jsonb_array_length(policy->'routes') from routing_policy`, "3 0")
}
