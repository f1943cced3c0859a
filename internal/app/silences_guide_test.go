package app_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"tocsin/internal/access"
)

// run executes the commands of a code block; those of other programs are left out.
func (f *files) run(block string) (ran int) {
	f.t.Helper()
	block = strings.ReplaceAll(block, "\\\n", " ")
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, " #")
		args := words(strings.TrimSpace(line))
		if len(args) < 3 || args[0] != "tocsin" {
			continue
		}
		args = append(args[1:3:3], append([]string{"--url", f.base, "--token", f.token}, args[3:]...)...)
		out, code := f.command(args...)
		if code != 0 {
			f.t.Errorf("%s: exit %d\n%s", line, code, out)
		}
		ran++
	}
	return ran
}

// TestTheGuideToSilencesHolds runs the commands of the guide, and sends its request.
func TestTheGuideToSilencesHolds(t *testing.T) {
	t.Parallel()
	const silences = "../../docs/silences.md"
	w := newWorld(t)
	base, _ := w.guarded()
	f := &files{world: w, base: base, dir: t.TempDir(), admin: newCaller(t, base).signIn(adminEmail, adminPassword)}
	f.token = f.admin.withToken("guides", access.Admin).token
	r := newDigestReceiver(t)
	f.armed(f.rule(r.webhook(f.world)), f.ch.Now(t)-int64(time.Minute))
	ran := 0
	for _, block := range fences(t, silences, "sh") {
		_, body, isRequest := strings.Cut(block, "-d '")
		if !isRequest {
			ran += f.run(block)
			if strings.Contains(block, "--digest") {
				f.raise("one", "two")
			}
			if strings.Contains(block, `end "ERP 9.1"`) {
				r.wantGuided(f.world, fences(t, silences, "json")[0])
			}
			continue
		}
		body = regexp.MustCompile(`'\$\(.*\)'`).ReplaceAllString(strings.TrimSuffix(strings.TrimSpace(body), "'"), time.Now().UTC().AddDate(0, 0, 7).Format(time.RFC3339))
		f.admin.must(http.StatusCreated, http.MethodPost, "/silences", json.RawMessage(body))
	}
	if ran != 6 {
		t.Errorf("the guide to silences has %d commands, want 6", ran)
	}
	f.wantColumn("silences", `select name from silence order by name`, "Customer 42 is blocked", "Deploy orders 4.2", "ERP 9.1", "Nightly batch")
}
