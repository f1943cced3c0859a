package app_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"tocsin/internal/access"
	"tocsin/internal/app"
)

// fences returns the code blocks of a page that are marked with a language.
func fences(t *testing.T, path, language string) []string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for rest := string(page); ; {
		_, after, found := strings.Cut(rest, "```"+language+"\n")
		if !found {
			return blocks
		}
		block, next, _ := strings.Cut(after, "```")
		blocks, rest = append(blocks, block), next
	}
}

// words splits a command as a shell does, but knows only double quotes.
func words(line string) []string {
	var list []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			list = append(list, part)
			continue
		}
		list = append(list, strings.Fields(part)...)
	}
	return list
}

// TestTheGuideFromAlertmanagerHolds applies the file of the guide, runs its commands, and lets ERP
// fail.
func TestTheGuideFromAlertmanagerHolds(t *testing.T) {
	t.Parallel()
	const guide = "../../docs/alertmanager.md"
	w := newWorld(t)
	base, _ := w.guarded(func(o *app.Options) { o.Roles, o.PollInterval = app.Roles(), 50*time.Millisecond })
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	f := &files{world: w, base: base, token: admin.withToken("guide", access.Admin).token, dir: t.TempDir(), admin: admin}

	examples := fences(t, guide, "yaml")
	if len(examples) != 2 {
		t.Fatalf("the guide has %d files, want 2", len(examples))
	}
	for _, host := range []string{"integration", "pager", "erp"} {
		examples[0] = strings.Replace(examples[0], "https://"+host+".example/hook", w.receiver.url, 1)
	}
	f.does(0, []string{"5 created, 1 updated"}, "apply", "-f", f.write("tocsin.yaml", examples[0]))

	ran := 0
	for _, block := range fences(t, guide, "sh example") {
		for line := range strings.Lines(block) {
			args := words(strings.TrimSpace(line))
			if len(args) < 3 || args[0] != "tocsin" {
				t.Errorf("this is no command of Tocsin's: %q", line)
				continue
			}
			args = append(args[1:3:3], append([]string{"--url", base, "--token", f.token}, args[3:]...)...)
			if out, code := f.command(args...); code != 0 {
				t.Errorf("%s: exit %d\n%s", line, code, out)
			}
			ran++
		}
	}
	if ran != 11 {
		t.Errorf("the guide has %d commands, want 11", ran)
	}

	// Three orders fail because ERP is unreachable: each has an alert, and one message reports the
	// cause. Meanwhile another error notifies the team.
	const notified = `select r.name || ' ' || n.reason || ' ' || coalesce(w.name, 'nobody') || ' ' || count(*)
		from alert a join rule r using (rule_id) left join notification n using (alert_id) left join webhook w on w.webhook_id = n.webhook_id
		group by r.name, n.reason, w.name order by r.name, n.reason nulls first, w.name`
	w.fail(w.ch.Now(t), "a", "b", "c")
	w.until("the cause is an alert", func() bool {
		return len(w.column(`select alert_id::text from alert join rule using (rule_id) where name = 'ERP unreachable'`)) == 1
	})
	refused := w.ch.Now(t)
	w.incomplete(refused, "d")
	w.until("all orders have alerts", func() bool {
		return len(w.column(`select alert_id::text from alert join rule using (rule_id) where name = 'Order failed'`)) == 4
	})
	w.wantColumn("who was notified", strings.Replace(notified, "n.reason", "coalesce(n.reason, '-')", 1),
		"ERP unreachable FIRED erp-team 1", "ERP unreachable FIRED pager 1", "Order failed - nobody 3", "Order failed FIRED erp-team 1")

	// The variation raises no alerts for the symptom.
	f.does(0, []string{"0 created, 1 updated"}, "apply", "-f", f.write("variation.yaml", examples[1]))
	w.fail(w.ch.Now(t), "e")
	w.incomplete(w.ch.Now(t), "f")
	w.until("the other error has an alert", func() bool { return len(w.column(`select alert_id::text from alert where execution_id = 'f'`)) == 1 })
	w.wantColumn("alert of the symptom", `select alert_id::text from alert where execution_id = 'e'`)
}
