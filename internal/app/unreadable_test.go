package app_test

import (
	"net/http"
	"strings"
	"testing"

	"tocsin/internal/app"
)

// TestARuleThatCannotBeReadHoldsUpNoOther corrupts one of two stored rules: the lists, the pages
// and the files of the other one work, the export names the broken one, and a file, an edit or a
// deletion repairs it.
func TestARuleThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.replica(func(o *app.Options) { o.Roles = []app.Role{app.RoleEvaluate} })
	f.webhook("ops")
	const document = `
rules:
  - name: Broken
    severity: CRITICAL
    fireMode: PER_EXCHANGE
    filter: { errorMessageContains: ERP }
    webhooks: [ops]
  - name: Fine
    severity: INFO
    fireMode: PER_EXCHANGE
    webhooks: [ops]
`
	path := f.write("rules.yaml", document)
	f.want(0, []string{"2 created"}, "apply", "-f", path)
	corrupt := func(column string) {
		t.Helper()
		f.exec(`update rule set ` + column + ` = '"nonsense"' where name = 'Broken'`)
	}
	// rule returns what the API returns for the broken one.
	rule := func() (id, unreadable, version string) {
		t.Helper()
		for _, item := range f.admin.must(http.StatusOK, http.MethodGet, "/rules", nil).body["items"].([]any) {
			r := item.(map[string]any)
			why, _ := r["unreadable"].(string)
			if r["name"] == "Fine" && why != "" {
				t.Errorf("the rule that can be read says %q", why)
			}
			if r["name"] == "Broken" {
				id, unreadable = r["id"].(string), why
			}
		}
		got := f.admin.must(http.StatusOK, http.MethodGet, "/rules/"+id, nil)
		if got.text("unreadable") != unreadable {
			t.Errorf("the list says %q of the rule, its page %q", unreadable, got.text("unreadable"))
		}
		return id, unreadable, got.header.Get("ETag")
	}

	for _, column := range []string{"scope", "filter", "targets", "about"} {
		corrupt(column)
		if _, why, _ := rule(); !strings.Contains(why, "cannot be read") {
			t.Errorf("with a %s that is nonsense the rule says %q", column, why)
		}
		f.want(0, []string{"~ rule Broken", "! rule Broken: definition: Cannot be read", "1 updated", "1 unchanged"}, "apply", "-f", path)
		if _, why, _ := rule(); why != "" {
			t.Errorf("after the file was applied the rule says %q", why)
		}
	}

	corrupt("filter")
	id, _, version := rule()
	f.want(1, []string{`rule "Broken" (` + id, "cannot be read"}, "export")
	for _, path := range []string{"/activity", "/history"} {
		f.admin.must(http.StatusOK, http.MethodGet, "/rules/"+id+path, nil)
	}
	// No action may use a rule that is only partly readable.
	for _, path := range []string{"/preview", "/duplicate", "/enable", "/reconcile"} {
		refused := f.admin.must(http.StatusConflict, http.MethodPost, "/rules/"+id+path, nil)
		if !strings.Contains(refused.text("detail"), `rule "Broken"`) {
			t.Errorf("%s says %v", path, refused.body)
		}
	}
	if out, code := f.command("reconcile", "--confirm", "0s"); code != 1 || !strings.Contains(out, "  Fine ") || !strings.Contains(out, `rule \"Broken\" (`+id) {
		t.Errorf("reconcile ends with %d and says %s", code, out)
	}
	// A document without it can be applied, and one that prunes by label does not touch it.
	other := f.write("other.yaml", "rules: [{name: Fine, severity: WARNING, fireMode: PER_EXCHANGE, webhooks: [ops]}]")
	f.want(0, []string{"~ rule Fine", "1 not in the files"}, "apply", "-f", other)
	f.want(0, []string{"1 not in the files"}, "apply", "-f", other, "--prune", "--prune-label", "team=orders")
	f.until("the other rule alerts", func() bool {
		f.fail(f.ch.Now(t), f.newID().String())
		return len(f.column(`select 'x' from alert a join rule r using (rule_id) where r.name = 'Fine'`)) > 0
	})

	// Unreadable labels keep no alert from the inbox.
	f.exec(`update rule set about = '{"labels": 7}'`)
	if alerts := f.admin.must(http.StatusOK, http.MethodGet, "/alerts", nil).body["items"].([]any); len(alerts) == 0 {
		t.Error("the inbox is empty")
	}
	f.exec(`update rule set about = '{}'`)

	armed := `select armed_since_ns::text from rule_state s join rule r using (rule_id) where r.name = 'Broken'`
	since := f.column(armed)[0]
	definition := map[string]any{"name": "Broken", "severity": "INFO", "fireMode": "PER_EXCHANGE", "filter": map[string]any{"errorMessageContains": "ERP"}}
	f.admin.must(http.StatusOK, http.MethodPut, "/rules/"+id, definition, "If-Match", version)
	if _, why, _ := rule(); why != "" || f.column(armed)[0] <= since {
		t.Errorf("after an edit the rule says %q and is armed since %s, before since %s", why, f.column(armed)[0], since)
	}

	corrupt("scope")
	if disabled := f.admin.must(http.StatusOK, http.MethodPost, "/rules/"+id+"/disable", nil); disabled.body["enabled"] != false || disabled.text("unreadable") == "" {
		t.Errorf("disabled, the rule is %v", disabled.body)
	}
	f.admin.must(http.StatusConflict, http.MethodPost, "/rules/"+id+"/enable", nil)
	f.admin.must(http.StatusNoContent, http.MethodDelete, "/rules/"+id, nil)
	f.want(0, []string{"Fine"}, "export")
}
