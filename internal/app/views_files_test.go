package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tocsin/internal/access"
)

// TestViewsInFiles applies shared views, edits one, exports them and deletes one. Personal views
// are kept.
func TestViewsInFiles(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.token = f.admin.withToken("pipeline", access.Operator).token
	for _, v := range []map[string]any{{"name": "Of a person", "search": "", "shared": true}, {"name": "Orders", "search": "app=other", "shared": true}, {"name": "Private", "search": ""}} {
		f.admin.must(http.StatusOK, http.MethodPost, "/views", v)
	}
	path := f.write("views.yaml", "views: [{name: Orders, search: state=firing&app=orders}, {name: ' All ', search: ''}]")
	stored := `select string_agg(name || ' ' || search, ', ' order by name) from saved_view where shared and owner = 'token pipeline'`
	f.does(1, []string{"+ view Orders: does not exist yet, except for one that ada@example.com shares", "+ view All: does not exist yet", "would be 2 created, 0 updated, 0 deleted; 0 unchanged, 2 not in the files"}, "diff", "-f", path)
	f.does(0, []string{"2 created"}, "apply", "-f", path)
	f.wantColumn("views", stored, "All , Orders state=firing&app=orders")
	f.does(0, []string{"0 created, 0 updated, 0 deleted; 2 unchanged"}, "apply", "-f", path)

	out := filepath.Join(f.dir, "out.yaml")
	f.does(0, nil, "export", "--kind", "views", "-f", out)
	exported, err := os.ReadFile(out)
	if err != nil || strings.Count(string(exported), "name: Orders\n    search: state=firing&app=orders") != 1 || strings.Count(string(exported), "Orders") != 1 ||
		!strings.Contains(string(exported), "Of a person") || strings.Contains(string(exported), "Private") {
		t.Errorf("exported %s, %v", exported, err)
	}

	f.write("views.yaml", "views: [{name: Orders, search: app=orders}]")
	f.does(0, []string{"~ view Orders", "search: state=firing&app=orders → app=orders", "1 updated, 0 deleted; 0 unchanged, 3 not in the files"}, "apply", "-f", path)
	f.does(0, []string{"- view All: not in the files", "1 deleted"}, "apply", "-f", path, "--prune")
	f.wantColumn("own views", stored, "Orders app=orders")
	f.wantColumn("all views", `select count(*)::text from saved_view`, "4")

	for what, text := range map[string]string{
		"A view needs a name":             `views: [{search: app=a}]`,
		"Another view has the same name":  `views: [{name: a, search: ''}, {name: a, search: ''}]`,
		`view "a": shared: Unknown field`: `views: [{name: a, search: '', shared: false}]`,
		`views.yaml:1:19: view "a": sear`: `views: [{name: a, search: "?app=a"}]`,
	} {
		f.write("views.yaml", text)
		f.does(1, []string{what}, "apply", "-f", path)
	}
	f.wantColumn("after what was refused", stored, "Orders app=orders")
}
