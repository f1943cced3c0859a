package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tocsin/internal/access"
)

const silencesInFile = `
rules:
  - name: Orders failed
    severity: CRITICAL
    fireMode: PER_EXCHANGE
silences:
  - name: Nightly batch
    reason: Re-indexing
    match:
      rules: [Orders failed]
      labels: [{key: tier, not: true, op: EQUALS, value: "1"}]
      scope: {applications: [orders]}
    recurrence: {timeZone: Europe/Berlin, weekdays: [MONDAY, tue], from: "22:00", durationMinutes: 480}
  - name: Long ago
    match: {severities: [INFO]}
    endsAt: "2020-01-01T00:00:00Z"
  - name: Last season
    match: {severities: [INFO]}
    recurrence: {timeZone: Europe/Berlin, weekdays: [sun], from: "22:00", durationMinutes: 60}
    endsAt: "2020-01-01T00:00:00Z"
`

// TestSilencesInFilesAndByCommand applies silences, and creates and ends one from the command line.
func TestSilencesInFilesAndByCommand(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	f.token = f.admin.withToken("editor", access.Editor).token
	path := f.write("silences.yaml", silencesInFile)
	rows := `select name || ' v' || version || case when ended_at is null then '' else ' ended by ' || ended_by end from silence order by name`
	f.does(1, []string{"+ rule Orders failed", "+ silence Nightly batch", "would be 2 created, 0 updated, 0 deleted; 2 unchanged"}, "diff", "-f", path)
	f.does(0, []string{"! silence Long ago: endsAt: This is in the past", "2 created"}, "apply", "-f", path)
	f.wantColumn("silences", rows, "Nightly batch v1")
	f.does(0, []string{"0 created, 0 updated, 0 deleted; 4 unchanged, 0 not in the files"}, "apply", "-f", path)

	out := filepath.Join(f.dir, "out.yaml")
	f.does(0, nil, "export", "--kind", "silences", "-f", out)
	exported, err := os.ReadFile(out)
	for _, part := range []string{"name: Nightly batch", "[Orders failed]", "weekdays: [MON, TUE]", "from: 22:00", "durationMinutes: 480"} {
		if err != nil || !strings.Contains(strings.ReplaceAll(string(exported), `"`, ""), part) {
			t.Errorf("exported %s, %v; want %q in it", exported, err, part)
		}
	}
	f.does(0, []string{"1 unchanged, 0 not in the files"}, "diff", "-f", out)
	if strings.Contains(string(exported), "startsAt") {
		t.Errorf("exported with a start that is past: %s", exported)
	}
	f.exec(`update silence set starts_at = starts_at + interval '40 days'`)
	f.does(0, nil, "export", "--kind", "silences", "-f", out)
	if exported, err = os.ReadFile(out); err != nil || !strings.Contains(string(exported), "startsAt: ") {
		t.Errorf("exported without the start that is to come: %s, %v", exported, err)
	}
	f.does(0, []string{"1 unchanged, 0 not in the files"}, "diff", "-f", out)
	f.exec(`update silence set starts_at = starts_at - interval '40 days'`)

	f.write("silences.yaml", strings.NewReplacer("480", "60", "Re-indexing", "Vacuum").Replace(silencesInFile))
	f.does(0, []string{"~ silence Nightly batch", "reason: Re-indexing → Vacuum", "recurrence: ", "1 updated"}, "apply", "-f", path)
	f.wantColumn("edited", rows, "Nightly batch v2")
	f.startsOfSilences(path)
	f.write("silences.yaml", strings.Replace(silencesInFile, "rules: [Orders failed]", "rules: [Nobody]", 1))
	f.does(2, []string{"silences.yaml:", `silence "Nightly batch"`, "There is no rule with this name"}, "diff", "-f", path)

	// A rule that was deleted is named by its id.
	f.exec(`update rule set deleted_at = now()`)
	f.does(0, nil, "export", "--kind", "silences", "-f", out)
	f.does(0, []string{"1 unchanged, 0 not in the files"}, "diff", "-f", out)
	f.exec(`update silence set reason = 'Other' where name = 'Nightly batch'`)
	f.does(0, []string{"reason: Other → Vacuum", "1 updated"}, "apply", "-f", out)
	f.exec(`update rule set deleted_at = null`)

	silence := func(code int, parts []string, command string, args ...string) {
		t.Helper()
		out, got := f.command(append([]string{"silence", command, "--url", f.base, "--token", f.token}, args...)...)
		if got != code {
			t.Errorf("silence %s %v: exit %d, want %d: %s", command, args, got, code, out)
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("silence %s %v does not say %q:\n%s", command, args, part, out)
			}
		}
	}
	// By command; silences that do not recur are not pruned.
	f.token = f.admin.withToken("operator", access.Operator).token
	silence(0, []string{"would have suppressed 0 of 0 messages about new alerts, for 0 of 0 alerts"}, "add", "Deployment", "--for", "30m", "--application", "orders", "--preview")
	silence(0, []string{"Deployment: active until "}, "add", "Deployment", "--for", "30m", "--reason", "v2", "--rule", "Orders failed", "--severity", "critical", "--label", "team=a")
	f.wantColumn("match", `select (match->'severities')::text || (match->'labels')::text from silence where name = 'Deployment'`, `["CRITICAL"][{"op": "EQUALS", "key": "team", "value": "a"}]`)
	silence(0, []string{"ID", "Deployment", "active until", "token operator"}, "list")
	silence(1, []string{"the duration is missing"}, "add", "For ever", "--application", "orders")
	f.refusedSilences(silence)
	silence(0, []string{"Weekend: "}, "add", "Weekend", "--application", "orders", "--weekdays", "sat,sun", "--at", "00:00", "--window", "24h", "--time-zone", "UTC")
	in := func(days int) time.Time { return time.Now().UTC().AddDate(0, 0, days) }
	silence(0, []string{"Between: no further window before its end at "}, "add", "Between", "--application", "orders", "--weekdays", in(3).Weekday().String(), "--at", "00:00", "--window", "1h",
		"--time-zone", "UTC", "--until", in(1).Format(time.RFC3339))
	silence(0, []string{"Between has ended"}, "end", "Between")
	silence(0, []string{"Between", "past"}, "list", "--past")
	f.token = f.admin.withToken("again", access.Editor).token
	f.write("silences.yaml", "silences: []\n")
	f.does(0, []string{"- silence Weekend", "- silence Nightly batch", "2 deleted; 0 unchanged, 1 not in the files"}, "apply", "--prune", "-f", path)
	silence(0, []string{"Deployment has ended"}, "end", "Deployment")
	silence(1, []string{"no active or upcoming silence"}, "end", "Deployment")
	f.wantColumn("at the end", rows, "Between v2 ended by token operator", "Deployment v2 ended by token again", "Move v5 ended by token editor", "Nightly batch v4 ended by token again", "Weekend v2 ended by token again")
}

// refusedSilences checks that what is wrong is named by its flag, with what to write instead.
func (f *files) refusedSilences(silence func(code int, parts []string, command string, args ...string)) {
	f.t.Helper()
	const misused = 80
	for _, c := range []struct {
		code int
		args string
		want []string
	}{
		{1, "--for 1h", []string{"Give at least one", "--severity critical,warning,info"}},
		{1, "--for 1h --until 2026-12-01T00:00:00Z", []string{"either --for or --until"}},
		{1, "--for 0m", []string{"--for: must be longer than 0"}},
		{misused, "--for", []string{"--for: the value is missing"}},
		{misused, "--for 30", []string{`--for: "30" is not a duration`, "36h"}},
		{misused, "--until tomorrow", []string{`--until: "tomorrow" is not a time`, "2026-12-01T18:00:00Z"}},
		{1, "--application a --until 2020-01-01T00:00:00Z", []string{"--until: Must be after the start"}},
		{1, "--application a --for 400d", []string{"--for: Must be at most 366 days"}},
		{1, "--for 1h --severity high", []string{"--severity: Must be one of"}},
		{1, "--for 1h --label =x", []string{"--label: Must not be empty"}},
		{1, "--for 1h --rule Nobody", []string{"--rule: there is no rule named", "tocsin export"}},
		{1, "--application a --weekdays mon", []string{"also needs --at, --window, --time-zone"}},
		{1, "--application a --weekdays workday --at 22:00 --window 8h --time-zone UTC", []string{"--weekdays:", "write mon,"}},
		{1, "--application a --weekdays mon,Monday --at 22:00 --window 8h --time-zone UTC", []string{"--weekdays: Must not contain the same entry twice"}},
		{1, "--application a --weekdays mon --at 22:00 --window 90s --time-zone UTC", []string{"--window: must be whole minutes"}},
		{1, "--application a --weekdays mon --at 9pm --window 9d --time-zone Berlin", []string{"--window: Must be a duration from 1m to 7d", "--time-zone: Must be a time zone such as", "--at: Must be a time of day such as"}},
	} {
		silence(c.code, c.want, "add", append([]string{"Wrong"}, strings.Fields(c.args)...)...)
	}
}

// startsOfSilences checks that the beginning of a silence moves as long as it is in the future,
// stays if the file does not contain it, and cannot be changed once it is past.
func (f *files) startsOfSilences(path string) {
	f.t.Helper()
	day := func(days int) time.Time { return time.Now().UTC().Truncate(time.Hour).AddDate(0, 0, days) }
	first, second, end := day(2), day(3), day(9)
	file := func(starts, reason string) {
		f.write("silences.yaml", fmt.Sprintf(`silences: [{name: Move, reason: %s, match: {severities: [INFO]}, %s endsAt: %q}]`, reason, starts, end.Format(time.RFC3339)))
	}
	at := func(t time.Time) string { return fmt.Sprintf("startsAt: %q,", t.Format(time.RFC3339Nano)) }
	begins := func(want time.Time) {
		f.t.Helper()
		f.wantColumn("the start", `select to_char(starts_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') from silence where name = 'Move'`, want.Format(time.RFC3339))
	}
	file(at(first.Add(123456789)), "a")
	f.does(0, []string{"+ silence Move: does not exist yet\n"}, "apply", "-f", path)
	f.does(0, []string{"1 unchanged"}, "apply", "-f", path)
	file(at(second), "a")
	f.does(0, []string{"~ silence Move\n    startsAt: ", first.Format(time.DateOnly), "→", second.Format(time.DateOnly)}, "apply", "-f", path)
	begins(second)
	file("", "b")
	f.does(0, []string{"~ silence Move\n    reason: a → b\n0 created"}, "apply", "-f", path)
	begins(second)
	file(at(day(-9)), "b")
	f.does(0, []string{"~ silence Move\n    startsAt: "}, "apply", "-f", path)
	f.does(0, []string{"1 unchanged"}, "apply", "-f", path)
	file(at(second), "b")
	f.does(0, []string{"! silence Move: startsAt: It started at ", "1 unchanged"}, "diff", "-f", path)
	f.command("silence", "end", "--url", f.base, "--token", f.token, "Move")
	// More have ended since than one page of the API holds.
	f.exec(`insert into silence select (jsonb_populate_record(s, jsonb_build_object('silence_id', 'ffffffff-0000-7000-8000-' || lpad(n::text, 12, '0'), 'name', 'Old'))).*
		from silence s cross join generate_series(1, 201) n where s.name = 'Move'`)
	f.does(0, []string{"0 created", "1 unchanged"}, "apply", "-f", path)
	f.exec(`delete from silence where name = 'Old'`)

	// A file that still has it after its end is right.
	f.exec(`update silence set starts_at = '2019-12-01Z', ends_at = '2020-01-01Z', ended_at = '2019-12-24Z' where name = 'Move'`)
	f.write("silences.yaml", `silences: [{name: Move, match: {severities: [INFO]}, endsAt: "2020-01-01T00:00:00Z"}]`)
	if out, code := f.command("diff", "-f", path, "--url", f.base, "--token", f.token); code != 0 || strings.Contains(out, "!") {
		f.t.Errorf("diff of a silence that is over: exit %d: %s", code, out)
	}
}

// TestCommandsGoByTheServersClock has a server whose clock is two hours ahead of that of the commands, or behind it.
func TestCommandsGoByTheServersClock(t *testing.T) {
	t.Parallel()
	const off = 2 * time.Hour
	w := newWorld(t)
	base, _ := w.guarded()
	admin := newCaller(t, base).signIn(adminEmail, adminPassword)
	ahead, behind := shifted(t, base, off), shifted(t, base, -off)
	f := &files{world: w, base: ahead, token: admin.withToken("clock", access.Admin).token, dir: t.TempDir(), admin: admin}
	if out, code := f.command("silence", "add", "Deployment", "--for", "30m", "--application", "orders", "--url", ahead, "--token", f.token); code != 0 {
		t.Errorf("silence add: exit %d: %s", code, out)
	}
	f.wantColumn("silences that end in two hours and a half", `select name from silence where ends_at - clock_timestamp() between interval '2 hours 20 min' and interval '2 hours 30 min'`, "Deployment")

	// A silence that is over is not created.
	inAnHour := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	path := f.write("silences.yaml", fmt.Sprintf(`silences: [{name: Over, match: {severities: [INFO]}, endsAt: %q}]`, inAnHour))
	f.does(0, []string{"0 created"}, "apply", "-f", path)

	rule := f.rule(f.webhook("ops"))
	out, code := f.command("replay", rule.Name, "--last", "1h", "--dry-run", "--url", behind, "--token", f.token)
	_, from, _ := strings.Cut(out, "from ")
	from, _, _ = strings.Cut(from, " ")
	began, err := time.Parse(time.RFC3339, from)
	if since := time.Since(began); code != 0 || err != nil || since < off+time.Hour-time.Second || since > off+time.Hour+time.Minute {
		t.Errorf("a replay of the last hour: exit %d, %v: %s", code, err, out)
	}
}

// shifted returns the URL of a server that shows another clock.
func shifted(t *testing.T, base string, by time.Duration) string {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(answer *http.Response) error {
			if answer.Request.URL.Path != "/api/v1/status" {
				return nil
			}
			var status map[string]any
			if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
				return err
			}
			now, err := time.Parse(time.RFC3339, fmt.Sprint(status["now"]))
			if err != nil {
				return err
			}
			status["now"] = now.Add(by)
			body, err := json.Marshal(status)
			answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			answer.Header.Del("Content-Length")
			return err
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}
