package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/internal/access"
	"tocsin/rules"
)

// files is a folder of rules, and a server to which they are applied.
type files struct {
	*world
	base, token, dir string
	admin            *caller
}

func newFiles(t *testing.T) *files {
	t.Helper()
	w := newWorld(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	return &files{world: w, base: base, token: admin.withToken("ci", access.Editor).token, dir: t.TempDir(), admin: admin}
}

// rules runs a command on rules.
func (f *files) rules(command string, args ...string) (output string, code int) {
	f.t.Helper()
	return f.command(append([]string{"rules", command, "--url", f.base, "--token", f.token}, args...)...)
}

func (f *files) write(name, content string) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// want runs a command and checks its exit code, and parts of its output.
func (f *files) want(code int, parts []string, command string, args ...string) string {
	f.t.Helper()
	out, got := f.rules(command, args...)
	if got != code {
		f.t.Errorf("rules %s %v: exit %d, want %d: %s", command, args, got, code, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			f.t.Errorf("rules %s does not say %q:\n%s", command, part, out)
		}
	}
	return out
}

const (
	twoRules = `
rules:
  - name: Orders failed
    severity: CRITICAL
    fireMode: PER_EXCHANGE
    scope: { applications: [orders], routes: ["order-*"] }
    filter: { errorMessageContains: "yes: no" }
    messageTemplate: |
      {{exchange.errorType}}
        said in two lines
    webhooks: [ops, second]
  - name: Many failed
    severity: WARNING
    fireMode: COUNT_IN_WINDOW
    threshold: 5
    windowSeconds: 600
    groupBy: ROUTE
`
	ruleRows = `select name || ' v' || version || ' ' || cursor_or || ' ' || armed from (
	select r.name, r.version, coalesce(p.cursor, 'none') cursor_or, p.armed_since_ns armed from rule r join rule_progress p using (rule_id)
	where deleted_at is null order by name collate "C") x`
	auditTail = `select operation || ' ' || action || ' ' || coalesce(object_name, '') from audit where audit_id > $1::text::bigint order by audit_id`
)

func (f *files) lastAudit() string {
	return f.column(`select coalesce(max(audit_id), 0)::text from audit`)[0]
}

func TestRulesAsFiles(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.webhook("ops")
	f.webhook("second")
	path := f.write("rules.yaml", twoRules)

	before := f.lastAudit()
	f.want(1, []string{"+ rule Orders failed", "+ rule Many failed", "would be 2 created"}, "diff", "-f", path)
	f.want(0, []string{"would be 2 created"}, "apply", "--dry-run", "-f", path)
	if audited := f.column(auditTail, before); len(audited) > 0 {
		t.Errorf("a dry run prints %q", audited)
	}
	f.wantColumn("after a dry run", ruleRows)
	f.want(0, []string{"+ rule Orders failed", "2 created, 0 updated, 0 deleted; 0 unchanged, 0 not in the files"}, "apply", "-f", path)
	if audited := f.column(auditTail, before); !slices.Contains(audited, "applyRules created Orders failed") && !slices.Contains(audited, "applyRules create Orders failed") {
		t.Errorf("the audit log contains %q", audited)
	}
	f.fail(f.ch.Now(t), "a")
	f.until("the rules are evaluated", func() bool {
		f.tick()
		return !slices.ContainsFunc(f.column(ruleRows), func(row string) bool { return strings.Contains(row, " none ") })
	})

	versions := `select name || ' v' || version from rule where deleted_at is null order by name collate "C"`
	f.want(0, []string{"0 created, 0 updated, 0 deleted; 2 unchanged"}, "apply", "-f", path)
	f.want(0, []string{"2 unchanged"}, "diff", "-f", path)
	f.wantColumn("applied twice", versions, "Many failed v1", "Orders failed v1")

	armed := `select armed_since_ns::text from rule_state s join rule r using (rule_id) where r.name = 'Orders failed'`
	since := f.column(armed)
	f.write("rules.yaml", strings.NewReplacer("said in two lines", "said in\n        three lines", "CRITICAL", "INFO", "[ops, second]", "[second]").Replace(twoRules))
	f.want(1, []string{
		"~ rule Orders failed", "severity: CRITICAL → INFO", "messageTemplate:\n      -   said in two lines\n      +   said in\n      +   three lines",
		`webhooks: ["ops","second"] → ["second"]`, "would be 0 created, 1 updated",
	}, "diff", "-f", path)
	f.want(0, []string{"0 created, 1 updated, 0 deleted; 1 unchanged"}, "apply", "-f", path)
	f.wantColumn("one edited", versions, "Many failed v1", "Orders failed v2")
	if got := f.column(armed); !slices.Equal(got, since) {
		t.Errorf("another text arms again: %v, was %v", got, since)
	}
	f.wantColumn("the cursor", `select (p.cursor is not null)::text from rule_progress p join rule r using (rule_id) where r.name = 'Orders failed'`, "true")

	// The plan says how an edit affects what a rule has evaluated.
	for _, edit := range []struct{ from, to, says string }{
		{"CRITICAL", "INFO", "~ rule Orders failed\n"},
		{"applications: [orders]", "applications: [billing]", "~ rule Orders failed: the new condition applies to exchanges that end from then on\n"},
		{"yes: no", "no", "~ rule Orders failed: the new condition applies to exchanges that end from then on\n"},
		{"fireMode: COUNT_IN_WINDOW\n    threshold: 5", "fireMode: ABSENT_IN_WINDOW\n    threshold: 5\n    learnDays: 1", "~ rule Many failed: evaluates only exchanges that end from then on\n"},
		{"severity: CRITICAL", "severity: CRITICAL\n    enabled: false", "~ rule Orders failed: is disabled; once enabled again, it evaluates only exchanges that end from then on\n"},
	} {
		f.write("rules.yaml", strings.Replace(twoRules, edit.from, edit.to, 1))
		f.want(1, []string{edit.says}, "diff", "-f", path)
	}

	// A renamed rule is another rule; the former one is kept, or deleted with --prune.
	f.write("rules.yaml", strings.Replace(twoRules, "name: Many failed", "name: Many", 1))
	f.want(0, []string{"+ rule Many: does not exist yet\n", "1 not in the files"}, "apply", "-f", path)
	f.want(0, []string{"- rule Many failed: not in the files\n", "1 deleted"}, "apply", "--prune", "-f", path)
	f.wantColumn("pruned", versions, "Many v1", "Orders failed v3")

	f.want(0, []string{"would be 0 created, 0 updated, 2 deleted"}, "apply", "--prune", "--dry-run", "-f", f.write("none.yaml", "rules: []\n"))
	f.wantColumn("still there", versions, "Many v1", "Orders failed v3")
}

func TestFilesThatAreWrongChangeNothing(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	for content, want := range map[string]string{
		"rules:\n  - name: a\n    severity: INFO\n    fireMode: PER_EXCHANGE\n  - name: b\n    severity: INFO\n    fireMode: PER_EXCHANGE\n    filtre: {}\n": `:8:5: rule "b": filtre: Unknown field`,
		"rules:\n  - name: a\n    severity: INFO\n    fireMode: PER_EXCHANGE\n    filter:\n      statuses: [GONE]\n":                                         `:6:18: rule "a": filter.statuses[0]: Must be one of`,
		"rules:\n  - { name: a, severity: INFO, fireMode: PER_EXCHANGE }\n  - { name: a, severity: INFO, fireMode: PER_EXCHANGE }\n":                         `:3:7: rule "a": name: rules[0] has the same name`,
		"rules:\n  - { name: a, severity: INFO, fireMode: PER_EXCHANGE, webhooks: [gone] }\n":                                                                `There is no webhook named "gone"`,
		"rules:\n  - name: a\n    name: b\n":                                   ":3:5: name is given twice",
		"rules:\n  - { name: true, severity: INFO, fireMode: PER_EXCHANGE }\n": ":2:7: name: Must be a string",
	} {
		path := f.write("wrong.yaml", content)
		f.want(1, []string{path + want[:max(0, strings.Index(want, "There"))], want}, "apply", "-f", path)
		f.want(2, nil, "diff", "-f", path)
	}
	f.want(1, []string{"no such file"}, "apply", "-f", filepath.Join(f.dir, "gone"))
	f.want(2, []string{"cannot be reached", "TOCSIN_URL"}, "diff", "--url", "http://127.0.0.1:1", "-f", f.write("ok.yaml", "rules: []"))
	f.token = f.admin.withToken("reader", access.Viewer).token
	f.want(2, []string{"403", "needs the role editor"}, "diff", "-f", f.write("ok.yaml", "rules: []"))
	f.want(0, []string{"rules: []"}, "export")
	f.wantColumn("rules", ruleRows)
}

func TestAnExportGoesElsewhere(t *testing.T) {
	t.Parallel()
	here, there := newFiles(t), newFiles(t)
	for _, f := range []*files{there, here} { // so that ids differ
		f.webhook("second")
		f.webhook("ops")
	}
	here.want(0, nil, "apply", "-f", here.write("rules.yaml", twoRules))
	path := filepath.Join(here.dir, "out.yaml")
	here.want(0, nil, "export", "-f", path)
	here.want(0, []string{"2 unchanged"}, "diff", "-f", path)
	there.want(0, []string{"2 created"}, "apply", "-f", path)
	one, _ := here.rules("export")
	other, _ := there.rules("export")
	strip := func(text string) string { _, rest, _ := strings.Cut(text, "\n"); return rest }
	if strip(one) != strip(other) || !strings.HasPrefix(one, "# yaml-language-server: $schema="+here.base+"/api/rules.schema.json\nrules:\n  - name: Many failed\n") {
		t.Errorf("here:\n%s\nthere:\n%s", one, other)
	}
	if part, _ := here.rules("export", "--name", "Orders*"); !strings.Contains(part, "Orders failed") || strings.Contains(part, "Many failed") {
		t.Errorf("a part:\n%s", part)
	}
	if schema, code := here.command("rules", "schema"); code != 0 || !strings.Contains(schema, "2020-12") {
		t.Errorf("schema: %d %s", code, schema)
	}
}

// TestApplyIsAllOrNothing lets the last rule of a document refer to a webhook that is deleted while
// the document is applied: the edits before it are rolled back.
func TestApplyIsAllOrNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := w.webhook("hook")
	rule := w.ruleOf(rules.Definition{Name: "a"})
	changed := rule.Definition
	changed.Severity = rules.Info
	fresh := changed
	fresh.Name, fresh.WebhookIDs = "z", append(fresh.WebhookIDs, hook)
	if err := w.db.Webhooks().Delete(t.Context(), tenant, hook); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.Rules().Apply(t.Context(), tenant, api.RuleSet{Definitions: []rules.Definition{changed, fresh}}); err == nil {
		t.Fatal("a webhook that is gone is bound")
	}
	w.wantColumn("rules", `select name || ' v' || version || ' ' || severity from rule order by name`, "a v1 CRITICAL")
}

// TestApplicationsAtOnce applies several documents while the rules are edited and evaluated: the
// result is exactly one of the documents.
func TestApplicationsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const clients, count = 6, 20
	document := func(client int) api.RuleSet {
		set := api.RuleSet{Prune: true}
		for i := range count {
			set.Definitions = append(set.Definitions, rules.Definition{
				Name: fmt.Sprintf("rule %02d", (i+client)%count), Enabled: true, FireMode: rules.PerExchange, Severity: rules.Info, IntervalSeconds: 1,
				Filter: rules.Filter{ErrorMessageContains: fmt.Sprint("client ", client)}, LookBackSeconds: 60,
			})
		}
		return set
	}
	ticking, stop := context.WithCancel(t.Context())
	ticked := make(chan error, 1)
	go func() {
		for ticking.Err() == nil {
			// Rules that changed within a pass make it fail, and the next one reads them.
			if _, err := w.evaluator.Tick(ticking); err != nil && !errors.Is(err, evaluator.ErrStale) && ticking.Err() == nil {
				ticked <- err
				return
			}
		}
		ticked <- nil
	}()
	ended := make(chan error, clients)
	for client := range clients {
		go func() {
			var errs []error
			for range 5 {
				_, err := w.db.Rules().Apply(t.Context(), tenant, document(client))
				errs = append(errs, err)
			}
			ended <- errors.Join(errs...)
		}()
	}
	for range clients {
		if err := await(t, "it has ended", ended); err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := await(t, "the tick has ended", ticked); err != nil {
		t.Errorf("tick: %v", err)
	}
	if whose := w.column(`select distinct filter->>'errorMessageContains' from rule where deleted_at is null`); len(whose) != 1 {
		t.Errorf("the rules are of %q", whose)
	}
	w.wantColumn("rules", `select count(*)::text from rule where deleted_at is null`, fmt.Sprint(count))
}

// TestABodyMayBeLarge sends more than other bodies may have, and more than a document may.
func TestABodyMayBeLarge(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.admin.token = f.token
	rule := func(i, size int) map[string]any {
		return map[string]any{"name": fmt.Sprint(i), "fireMode": "PER_EXCHANGE", "severity": "INFO", "messageTemplate": strings.Repeat("x", size)}
	}
	var list []any
	for i := range 130 {
		list = append(list, rule(i, 9000))
	}
	done := f.admin.must(http.StatusOK, http.MethodPost, "/rules/apply", map[string]any{"rules": list})
	if reported, _ := done.body["rules"].([]any); len(reported) != len(list) {
		t.Errorf("%d rules of %d", len(reported), len(list))
	}
	for i := range 1800 {
		list = append(list, rule(1000+i, 9000))
	}
	f.admin.must(http.StatusRequestEntityTooLarge, http.MethodPost, "/rules/apply", map[string]any{"rules": list})
}
