package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tocsin/api"
	"tocsin/internal/access"
	"tocsin/notify"
)

// does runs a command on files, and checks its exit code and parts of its output in order.
func (f *files) does(code int, parts []string, command string, args ...string) {
	f.t.Helper()
	out, got := f.command(append([]string{command, "--url", f.base, "--token", f.token}, args...)...)
	if got != code {
		f.t.Errorf("%s %v: exit %d, want %d: %s", command, args, got, code, out)
	}
	rest := out
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			f.t.Errorf("%s does not say %q, or too early:\n%s", command, part, out)
			continue
		}
		rest = after
	}
}

// allKinds is a file with objects of all kinds. Its secrets are in files next to it.
const allKinds = `
webhooks:
  - name: ops
    kind: generic
    url: {file: URL}
    headers: {X-Team: orders, X-Key: {file: KEY}}
    signingSecret: {file: SIGNING}
    ratePerSecond: 5
  - name: bot
    kind: slack
    slack: {channel: C0123456789, botToken: {file: BOT}}
users:
  - email: bob@example.com
    name: Bob
    role: editor
rules:
  - name: Orders failed
    severity: CRITICAL
    fireMode: PER_EXCHANGE
    webhooks: [ops, bot]
`

// withSecrets writes files with secrets, and returns a document that refers to them.
func (f *files) withSecrets(content string) string {
	f.t.Helper()
	for name, secret := range map[string]string{
		"URL": "https://hooks.example.com/SECRET-url\n", "KEY": "SECRET-key", "SIGNING": "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmU=", "BOT": "xoxb-123456789012-123456789012-SECRETbot",
	} {
		content = strings.ReplaceAll(content, "{file: "+name+"}", "{file: "+f.write(name, secret)+"}")
	}
	return content
}

func TestOneFileHasEverything(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.token = f.admin.withToken("everything", access.Admin).token
	hooks := `select name || ' v' || version from webhook where deleted_at is null order by name collate "C"`
	people := `select email || ' ' || role || case when disabled then ' disabled' else '' end from account order by email`
	before := f.column(people)
	content := f.withSecrets(allKinds)
	path := f.write("all.yaml", content)

	plan := []string{"+ webhook ops", "+ webhook bot", "+ user bob@example.com", "password: none yet", "+ rule Orders failed", `webhooks: also ["ops" "bot"]`}
	f.does(1, append(plan, "would be 4 created, 0 updated, 0 deleted; 0 unchanged, 1 not in the files"), "diff", "-f", path)
	f.does(0, append(plan, "would be 4 created"), "apply", "--dry-run", "-f", path)
	f.wantColumn("webhooks after a dry run", hooks)
	f.wantColumn("users after a dry run", people, before...)
	f.does(0, append(plan, "\n4 created, 0 updated"), "apply", "-f", path)
	f.wantColumn("webhooks", hooks, "bot v1", "ops v1")
	f.wantColumn("bindings", `select w.name from rule_webhook join webhook w using (webhook_id) order by w.name`, "bot", "ops")
	f.wantColumn("users", people, slices.Sorted(slices.Values(append([]string{"bob@example.com editor"}, before...)))...)

	f.does(0, []string{"0 created, 0 updated, 0 deleted; 4 unchanged, 1 not in the files"}, "apply", "-f", path)
	f.does(0, []string{"4 unchanged"}, "diff", "-f", path)
	f.wantColumn("webhooks applied twice", hooks, "bot v1", "ops v1")

	// What is exported changes nothing when applied, and contains no secret.
	out := filepath.Join(f.dir, "out.yaml")
	f.does(0, nil, "export", "--kind", "webhooks,users,rules", "-f", out)
	exported, err := os.ReadFile(out)
	if err != nil || strings.Contains(string(exported), "SECRET") || !strings.Contains(string(exported), "ratePerSecond: 5") || !strings.Contains(string(exported), "email: bob@example.com") {
		t.Errorf("exported %s, %v", exported, err)
	}
	f.does(0, []string{"0 created, 0 updated, 0 deleted; 5 unchanged, 0 not in the files"}, "apply", "--prune", "-f", out)

	// Each edit lists its reasons; changes that users have made to a webhook's state are kept.
	if _, err := f.db.Webhooks().SetEnabled(t.Context(), tenant, f.hook("ops").ID, false); err != nil {
		t.Fatal(err)
	}
	f.write("URL", "https://other.example.com/SECRET-url")
	edited := strings.NewReplacer("ratePerSecond: 5", "timeoutSeconds: 20", "role: editor", "role: viewer", "C0123456789", "C9876543210", "X-Team", "X-Group").Replace(content)
	f.write("all.yaml", edited)
	f.does(0, []string{
		"~ webhook ops", "timeoutSeconds: 10 → 20", "ratePerSecond: 5 → 0", "url: another host: hooks.example.com → other.example.com", "headers: other names: [X-Key X-Team] → [X-Group X-Key]",
		"~ webhook bot", "slack.channel: C0123456789 → C9876543210", "~ user bob@example.com", "role: editor → viewer", "0 created, 3 updated, 0 deleted; 1 unchanged",
	}, "apply", "-f", path)
	if ops := f.hook("ops"); ops.Enabled || ops.URL != "https://other.example.com/SECRET-url" || ops.Headers["X-Group"] != "orders" || ops.Headers["X-Key"] != "SECRET-key" || ops.SigningSecret == "" {
		t.Errorf("the webhook is %+v", ops)
	}
	if bot := f.hook("bot"); bot.Slack.BotToken != "xoxb-123456789012-123456789012-SECRETbot" {
		t.Errorf("an edit of the channel lost the token: %+v", bot)
	}

	// A changed secret cannot be detected: --secrets writes it.
	f.write("KEY", "SECRET-other")
	f.does(0, []string{"4 unchanged"}, "apply", "-f", path)
	f.does(0, []string{"~ webhook ops", "url: written again", "headers: written again", "signingSecret: written again", "~ webhook bot", "slack.botToken: written again"}, "apply", "--secrets", "-f", path)
	if key := f.hook("ops").Headers["X-Key"]; key != "SECRET-other" {
		t.Errorf("the header is %q", key)
	}
}

// hook returns a webhook by its name.
func (f *files) hook(name string) notify.Webhook {
	f.t.Helper()
	page, err := f.db.Webhooks().List(f.t.Context(), tenant, api.NamePage{Limit: 100})
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range page {
		if page[i].Name == name {
			return page[i]
		}
	}
	f.t.Fatalf("there is no webhook %s", name)
	return notify.Webhook{}
}

func TestPruningKeepsWhatTheFilesDoNotOwn(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.token = f.admin.withToken("everything", access.Admin).token
	rule := func(name, hook string) string {
		return "  - { name: " + name + ", severity: INFO, fireMode: PER_EXCHANGE, webhooks: [" + hook + "] }\n"
	}
	hook := func(name string) string {
		return "  - { name: " + name + ", kind: generic, url: 'http://127.0.0.1/' }\n"
	}
	f.does(0, []string{"6 created"}, "apply", "-f", f.write("a.yaml", "webhooks:\n"+hook("orders/a")+hook("orders/b")+hook("billing")+
		"rules:\n"+rule("orders/one", "orders/a")+rule("orders/two", "orders/b")+rule("billing", "billing")))
	less := f.write("b.yaml", "webhooks:\n"+hook("orders/a")+"rules:\n"+rule("orders/one", "orders/a"))
	f.does(0, []string{"0 deleted; 2 unchanged, 4 not in the files"}, "apply", "-f", less)
	// Rules go before the webhooks to which they are bound.
	f.does(0, []string{"- rule orders/two: not in the files, --prune-name orders/*\n", "- webhook orders/b: not in the files, --prune-name orders/*\n", "2 deleted; 2 unchanged, 2 not in the files"}, "apply", "--prune", "--prune-name", "orders/*", "-f", less)
	f.wantColumn("rules", `select name from rule where deleted_at is null order by name`, "billing", "orders/one")
	// A kind that the files have no list of is left alone.
	f.does(0, []string{"- rule billing", "1 deleted; 1 unchanged, 0 not in the files"}, "apply", "--prune", "-f", f.write("c.yaml", "rules:\n"+rule("orders/one", "orders/a")))
	f.wantColumn("webhooks", `select name from webhook where deleted_at is null order by name`, "billing", "orders/a")
	f.does(1, []string{"need --prune"}, "apply", "--prune-name", "x", "-f", less)
	// By a label, rules that have it go, and webhooks, which have none, stay.
	labelled := "rules:\n  - { name: mine, severity: INFO, fireMode: PER_EXCHANGE, labels: { team: orders } }\n  - { name: theirs, severity: INFO, fireMode: PER_EXCHANGE, labels: { team: billing } }\n"
	f.does(0, []string{"2 created"}, "apply", "-f", f.write("e.yaml", labelled))
	f.does(0, []string{"- rule mine: not in the files, --prune-label team=orders\n", "1 deleted; 0 unchanged, 4 not in the files"}, "apply", "--prune", "--prune-label", "team=orders", "-f", f.write("f.yaml", "webhooks: []\nrules: []\n"))
	// The last administrator stays, whatever a file says.
	f.does(1, []string{"- user " + adminEmail + ": not in the files\n", "409"}, "apply", "--prune", "-f", f.write("d.yaml", "users: []\n"))
}

func TestFilesOfWebhooksAndUsersThatAreWrongChangeNothing(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.token = f.admin.withToken("everything", access.Admin).token
	f.does(0, nil, "apply", "-f", f.write("ok.yaml", "webhooks:\n  - { name: ops, kind: generic, url: 'http://127.0.0.1/' }\n"))
	for content, want := range map[string]string{
		"webhooks:\n  - { name: a, kind: generic, url: {env: TOCSIN_TEST_NOT_SET} }\n":                              `:2:31: webhook "a": url: The environment variable TOCSIN_TEST_NOT_SET is not set`,
		"webhooks:\n  - { name: a, kind: generic, url: {envy: x} }\n":                                               `:2:31: webhook "a": url: Must be a string`,
		"webhooks:\n  - { name: a, kind: generic, url: {file: /gone} }\n":                                           "/gone",
		"webhooks:\n  - { name: a, kind: generic, uri: x }\n":                                                       `:2:31: webhook "a": uri: Unknown field`,
		"webhooks:\n  - { name: a, kind: generic, timeoutSeconds: soon }\n":                                         `:2:31: webhook "a": timeoutSeconds: Must be a number`,
		"webhooks:\n  - { name: a, kind: generic, quietHours: [{ form: \"22:00\" }] }\n":                            `webhook "a": quietHours[0].form: Unknown field`,
		"webhooks:\n  - { name: ops, kind: slack, url: 'http://127.0.0.1/' }\n":                                     "A webhook with this name has the kind generic, which cannot change",
		"webhooks:\n  - { name: a, kind: generic, url: x }\n  - { name: a, kind: generic, url: x }\n":               "Another webhook has the same name; choose another one",
		"users:\n  - { email: a@b.c, name: A }\n":                                                                   "A user needs an email, a name and a role",
		"users:\n  - { email: a@b.c, name: A, role: viewer }\nrules:\n  - { name: a, severity: INFO, fireMode: X }": `rule "a": fireMode: Must be one of`,
	} {
		f.does(1, []string{want}, "apply", "-f", f.write("wrong.yaml", content))
	}
	f.wantColumn("webhooks", `select name from webhook`, "ops")
	f.wantColumn("users", `select count(*)::text from account`, "1")
	// Errors that only the server finds come after the plan, and say what was done.
	f.does(1, []string{"+ webhook a", `webhook "a": url: `, "nothing was changed"}, "apply", "-f", f.write("late.yaml", "webhooks:\n  - { name: a, kind: generic, url: nonsense }\n"))
	f.token = f.admin.withToken("reader", access.Editor).token
	f.does(1, []string{"403", "needs the role admin"}, "apply", "-f", f.write("users.yaml", "users: []"))
}
