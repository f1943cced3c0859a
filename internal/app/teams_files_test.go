package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tocsin/internal/access"
)

const teamsInFile = `
webhooks:
  - name: pager
    kind: generic
    url: https://pager.example/hook
teams:
  - name: integration
    members: [ada@example.com]
    webhooks: [pager]
  - name: platform
    groups: [sre]
    webhooks: [pager]
routes:
  - name: All
    escalation:
      - {afterMinutes: 10, teams: [integration]}
      - {afterMinutes: 20, webhooks: [pager], teams: [platform]}
`

// TestTeamsInFiles applies teams, exports them, and deletes one.
func TestTeamsInFiles(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.token = f.admin.withToken("admin", access.Admin).token
	path := f.write("teams.yaml", teamsInFile)
	stored := `select l.version || ' ' || string_agg(t->>'name', ',' order by n) from team_list l, jsonb_array_elements(l.teams->'teams') with ordinality t (t, n) group by l.version`
	f.does(1, []string{"+ team integration", "+ team platform", "~ routing policy", "would be 3 created, 1 updated"}, "diff", "-f", path)
	f.does(0, []string{"3 created, 1 updated"}, "apply", "-f", path)
	f.wantColumn("teams", stored, "2 integration,platform")
	f.does(0, []string{"0 created, 0 updated, 0 deleted; 4 unchanged"}, "apply", "-f", path)

	out := filepath.Join(f.dir, "out.yaml")
	f.does(0, nil, "export", "--kind", "teams,routes", "-f", out)
	exported, err := os.ReadFile(out)
	for _, part := range []string{"name: integration", "members: [ada@example.com]", "groups: [sre]", "webhooks: [pager]", "afterMinutes: 20", "teams: [platform]"} {
		if err != nil || !strings.Contains(string(exported), part) {
			t.Errorf("exported %s, %v; want %q in it", exported, err, part)
		}
	}
	f.does(0, []string{"3 unchanged"}, "diff", "-f", out)
	if printed, code := f.command("route", "test", "--url", f.base, "--token", f.token); code != 0 || !strings.Contains(printed, "→ after 20 min without acknowledgement: pager, team platform") {
		t.Errorf("exit %d: %s", code, printed)
	}
	f.does(1, []string{"is used by"}, "apply", "-f", f.write("few.yaml", "teams: [{name: platform, groups: [sre]}]"), "--prune")
	f.does(0, []string{"routes:"}, "apply", "-f", f.write("none.yaml", "routes: []"))

	// What is not in the files is kept, except with --prune.
	f.write("teams.yaml", "teams: [{name: platform, members: [bo@example.com]}]")
	f.does(0, []string{"~ team platform", "members:", `groups: ["sre"] → (default)`, "0 created, 1 updated, 0 deleted; 0 unchanged, 1 not in the files"}, "apply", "-f", path)
	f.wantColumn("an edit", stored, "3 platform,integration")
	f.does(0, []string{"- team integration: not in the files", "1 deleted"}, "apply", "-f", path, "--prune")
	f.wantColumn("a deletion", stored, "4 platform")

	for what, text := range map[string]string{
		"A team needs a name":              `teams: [{members: [a@b]}]`,
		"Another team has the same name":   `teams: [{name: a}, {name: a}]`,
		"teams.yaml:":                      `teams: [{name: a, member: [a@b]}]`,
		`teams.yaml:1:40: team "b": membe`: `teams: [{name: a}, {name: b, members: [""]}]`,
	} {
		f.write("teams.yaml", text)
		f.does(1, []string{what}, "apply", "-f", path)
	}
	f.wantColumn("after what was refused", stored, "4 platform")
}
