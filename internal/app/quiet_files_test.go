package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tocsin/internal/access"
)

const quietInFile = `
webhooks:
  - name: team
    kind: generic
    url: https://team.example/hook
    quietHours:
      - {timeZone: Europe/Berlin, weekdays: [MON, TUE, WED, THU], from: "18:00", to: "08:00"}
      - {timeZone: Europe/Berlin, weekdays: [Saturday, SUNDAY], from: "00:00", to: "24:00"}
`

// TestQuietHoursInFiles applies quiet hours, exports them, edits and deletes them.
func TestQuietHoursInFiles(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.token = f.admin.withToken("admin", access.Admin).token
	path := f.write("quiet.yaml", quietInFile)
	stored := `select coalesce((select string_agg(h->>'timeZone' || ' ' || jsonb_array_length(h->'weekdays') || ' ' || (h->>'from') || '-' || (h->>'to'), ', ' order by n)
		from jsonb_array_elements(quiet_hours) with ordinality t (h, n)), 'none') || ' v' || version from webhook where name = 'team'`
	f.does(0, []string{"+ webhook team", "1 created"}, "apply", "-f", path)
	f.wantColumn("quiet hours", stored, "Europe/Berlin 4 18:00-08:00, Europe/Berlin 2 00:00-24:00 v1")
	f.does(0, []string{"0 created, 0 updated"}, "apply", "-f", path)

	out := filepath.Join(f.dir, "out.yaml")
	f.does(0, nil, "export", "--kind", "webhooks", "-f", out)
	exported, err := os.ReadFile(out)
	for _, part := range []string{"quietHours:", "timeZone: Europe/Berlin", "from: 18:00", "to: 24:00", "[MON, TUE, WED, THU]", "[SAT, SUN]"} {
		if err != nil || !strings.Contains(strings.ReplaceAll(string(exported), `"`, ""), part) {
			t.Errorf("exported %s, %v; want %q in it", exported, err, part)
		}
	}
	f.does(0, []string{"0 created, 0 updated, 0 deleted; 1 unchanged"}, "apply", "-f", out)
	f.wantColumn("quiet hours that were exported", stored, "Europe/Berlin 4 18:00-08:00, Europe/Berlin 2 00:00-24:00 v1")

	f.write("quiet.yaml", strings.Replace(quietInFile, `"08:00"`, `"07:30"`, 1))
	f.does(1, []string{"~ webhook team", "quietHours: ", "1 updated"}, "diff", "-f", path)
	f.does(0, []string{"~ webhook team", "quietHours: ", "1 updated"}, "apply", "-f", path)
	f.wantColumn("edited", stored, "Europe/Berlin 4 18:00-07:30, Europe/Berlin 2 00:00-24:00 v2")
	f.write("quiet.yaml", strings.Replace(quietInFile, `"08:00"`, `"8"`, 1))
	f.does(1, []string{"quiet.yaml:", `webhook "team": quietHours: Cannot be used`, `"8" is not a time of day`, "nothing was changed"}, "apply", "-f", path)
	f.wantColumn("what is wrong changes nothing", stored, "Europe/Berlin 4 18:00-07:30, Europe/Berlin 2 00:00-24:00 v2")
	f.write("quiet.yaml", quietInFile[:strings.Index(quietInFile, "    quietHours")])
	f.does(0, []string{"~ webhook team", "quietHours: ", "1 updated"}, "apply", "-f", path)
	f.wantColumn("deleted", stored, "none v3")
}
