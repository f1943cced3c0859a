package slack_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/slack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func usual() slack.Alert {
	return slack.Alert{
		ID: "0199a1b2-0000-7000-8000-000000000001", Severity: "CRITICAL",
		Title: "orders · order-to-erp: FAILED", Message: "java.net.SocketTimeoutException: Read timed out <after> 1000 ms",
		URL: "https://tocsin.example/inbox/0199a1b2-0000-7000-8000-000000000001", Rule: "Failed orders & returns",
		Application: "orders", Route: "order-to-erp", Environment: "production",
		StartTimeNS: 1_795_244_520_123_456_789, Start: "2026-11-21T07:02:00.123456789Z", Duration: "1.234 s",
		ErrorType: "java.net.SocketTimeoutException", ErrorMessage: "Read timed out <after> 1000 ms",
		StackTop:    "at com.example.orders.ErpClient.post(ErpClient.java:57)",
		ExecutionID: "ID-orders-1795244520-0-42", CorrelationID: "c-4711",
	}
}

// explained is an alert whose rule says what to do.
func explained() slack.Alert {
	a := usual()
	a.Owner, a.Labels = "Integration & ERP", map[string]string{"team": "integration", "service": "orders"}
	a.RunbookURL, a.Note = "https://wiki.example/orders?a=1&b=2", "Ask ERP first: https://erp.example/status\nThen call <Ada>."
	return a
}

func counting() slack.Alert {
	a := usual()
	a.Title = "order-to-erp: 7 exchanges within 10 min"
	a.Message = "At least 5 match. The newest: orders · order-to-erp: Read timed out <after> 1000 ms"
	a.Count = &slack.Count{Observed: 7, Threshold: 5, Window: "10 min", GroupBy: "Route", Group: "order-to-erp"}
	return a
}

func TestMessageGolden(t *testing.T) {
	completed := usual()
	completed.Severity, completed.Title = "WARNING", "orders · order-to-erp: COMPLETED"
	completed.Message, completed.ErrorType, completed.ErrorMessage, completed.StackTop = "COMPLETED after 12.34 s", "", "", ""
	completed.URL, completed.CorrelationID, completed.Duration = "", "", "12.34 s"
	own := usual()
	own.Severity, own.Message = "INFO", "ERP is down again.\nCall *Anna* <!channel>, see (https://wiki.example/erp?a=1&b=2),\nhttps:// or <https://wiki.example/2>."
	own.ErrorMessage = "```\n`rm`\r\n\x1b[31mred"
	counted := counting()
	reminder, resolved, again := counted, counted, usual()
	reminder.Reason, reminder.Message = notify.ReasonReminder, "Call Anna."
	resolved.Reason, resolved.Count = notify.ReasonResolved, &slack.Count{Observed: 2, Threshold: 5, Window: "10 min", GroupBy: "Route", Group: "order-to-erp"}
	alone := slack.Alert{ID: counted.ID, Severity: "WARNING", Title: "7 exchanges within 10 min", Message: "At least 5 match.", Rule: counted.Rule, Count: &slack.Count{Observed: 7, Threshold: 5, Window: "10 min"}}
	ratio, slow := counted, counted
	ratio.Title, ratio.Message = "order-to-erp: 25% of 120 exchanges match within 10 min", "At least 10% match. The newest: orders · order-to-erp: Read timed out"
	ratio.Count = &slack.Count{Window: "10 min", GroupBy: "Route", Group: "order-to-erp", Name: "Ratio", Value: "25% (30 of 120)", Bound: "10%"}
	slow.Title, slow.Message = "p95 is 2.412 s over 120 exchanges within 10 min", "The threshold is 2 s."
	slow.Count = &slack.Count{Window: "10 min", Name: "p95", Value: "2.412 s over 120 exchanges", Bound: "2 s"}
	again.Reason = notify.ReasonReminder
	buttons, acknowledged, over := usual(), usual(), usual()
	for _, a := range []*slack.Alert{&buttons, &acknowledged, &over} {
		a.Buttons = true
	}
	acknowledged.State, acknowledged.ChangedBy, acknowledged.ChangedAt = alerts.Acknowledged, "slack:ann <!here>", time.Unix(1_795_244_600, 0)
	over.State, over.ChangedAt = alerts.Resolved, time.Unix(1_795_244_700, 0)
	taken, ended, reopened := acknowledged, over, acknowledged
	taken.Reason, ended.Reason, ended.ChangedBy = notify.ReasonAcknowledged, notify.ReasonResolved, "ann"
	reopened.Reason, reopened.State = notify.ReasonReopened, alerts.Firing
	for name, a := range map[string]slack.Alert{
		"event-acknowledged": taken, "event-resolved": ended, "event-reopened": reopened,
		"failed": usual(), "completed": completed, "own-message": own, "nothing": {}, "reminder": again,
		"count": counted, "count-reminder": reminder, "count-resolved": resolved, "count-alone": alone,
		"ratio": ratio, "slow": slow,
		"buttons": buttons, "acknowledged": acknowledged, "over": over, "explained": explained(),
	} {
		t.Run(name, func(t *testing.T) {
			body, err := slack.Message(&a)
			if err != nil {
				t.Fatal(err)
			}
			if err := slack.Valid(body); err != nil {
				t.Error(err)
			}
			golden(t, name+".json", body)
		})
	}
}

// golden compares a body with a golden file; go test -update writes the file.
func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	var pretty bytes.Buffer
	encoder := json.NewEncoder(&pretty)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
		t.Errorf("%s differs; go test -update writes it again (-want +got):\n%s", path, diff)
	}
}

var _ = flag.Bool("update", false, "write golden files")

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Just(""),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 60), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{"<!channel>", "<@U1|x>", "```", "`", "&amp;", "\x00", " \n ", "\u2028", "https://evil.example/<x>"}),
		rapid.Custom(func(t *rapid.T) string {
			piece := rapid.SampledFrom([]string{"<&>", "😀", "\x00", "\xff", "a b ", "`", "\"\\\n", "&"}).Draw(t, "piece")
			return strings.Repeat(piece, rapid.SampledFrom([]int{30, 150, 3000, 60_000}).Draw(t, "times"))
		}),
	)
}

func anyAlert() *rapid.Generator[slack.Alert] {
	return rapid.Custom(func(t *rapid.T) slack.Alert {
		text := func(name string) string { return anyText().Draw(t, name) }
		var count *slack.Count
		if rapid.Bool().Draw(t, "counts") {
			count = &slack.Count{
				Observed: rapid.Int64().Draw(t, "observed"), Threshold: rapid.Int().Draw(t, "threshold"),
				Window: text("window"), GroupBy: text("group by"), Group: text("group"),
			}
		}
		return slack.Alert{
			Reason: rapid.SampledFrom([]notify.Reason{"", notify.ReasonFired, notify.ReasonReminder, notify.ReasonResolved}).Draw(t, "reason"), Count: count,
			ID: text("id"), Severity: text("severity"), Title: text("title"), Message: text("message"), URL: text("url"), Rule: text("rule"),
			Application: text("application"), Route: text("route"), Environment: text("environment"),
			StartTimeNS: rapid.Int64().Draw(t, "start"), Start: text("start text"), Duration: text("duration"), ErrorType: text("type"),
			ErrorMessage: text("error"), StackTop: text("stack"), ExecutionID: text("execution"), CorrelationID: text("correlation"),
			Owner: text("owner"), Note: text("note"), Labels: map[string]string{text("label"): text("value"), "b": text("b")},
			RunbookURL: rapid.SampledFrom([]string{"", "https://wiki.example/x", text("runbook")}).Draw(t, "runbook"),
		}
	})
}

func TestMessageIsValidWhateverAnAlertHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyAlert().Draw(t, "alert")
		for name, write := range map[string]func(*slack.Alert) ([]byte, error){"Message": slack.Message, "PlainMessage": slack.PlainMessage} {
			body, err := write(&a)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := slack.Valid(body); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, body)
			}
			holdsNoMarkup(t, body)
		}
	})
}

// holdsNoMarkup decodes the body with independent types and searches for anything in angle brackets
// that this package did not write.
func holdsNoMarkup(t *rapid.T, body []byte) {
	var m slackgo.WebhookMessage
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("the body is not a webhook message: %v", err)
	}
	texts := []string{m.Text}
	if m.Blocks != nil {
		for _, b := range m.Blocks.BlockSet {
			switch b := b.(type) {
			case *slackgo.SectionBlock:
				if b.Text != nil {
					texts = append(texts, b.Text.Text)
				}
				for _, f := range b.Fields {
					if !f.Verbatim {
						t.Fatalf("a field is not verbatim: %q", f.Text)
					}
					texts = append(texts, f.Text)
				}
			case *slackgo.ContextBlock:
				for _, e := range b.ContextElements.Elements {
					texts = append(texts, e.(*slackgo.TextBlockObject).Text)
				}
			case *slackgo.HeaderBlock, *slackgo.ActionBlock:
			default:
				t.Fatalf("unexpected block %T", b)
			}
		}
	}
	for _, text := range texts {
		for rest := text; ; {
			i := strings.IndexByte(rest, '<')
			if i < 0 {
				break
			}
			rest = rest[i:]
			if !strings.HasPrefix(rest, "<!date^") && !strings.HasPrefix(rest, "<https://") {
				t.Fatalf("markup in %q", text)
			}
			rest = rest[1:]
		}
		if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			t.Fatalf("odd bytes in %q", text)
		}
	}
}

func TestEscape(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"entities":          {`<!channel> & "x"`, 100, `&lt;!channel&gt; &amp; "x"`},
		"exact":             {"12345", 5, "12345"},
		"longer":            {"123456", 5, "1234…"},
		"entity fits":       {"a<", 5, "a&lt;"},
		"entity too long":   {"a<<", 8, "a&lt;…"},
		"entity at the end": {"<<", 7, "&lt;…"},
		"two units":         {"😀😀", 4, "😀😀"},
		"between units":     {"😀😀", 3, "😀…"},
		"control":           {"a\x00b\x1bc\r\nd\te", 100, "a\uFFFDb\uFFFDc\nd\te"},
		"odd bytes":         {"a\xffb", 100, "a\uFFFDb"},
		"blank before …":    {"ab  cdef", 5, "ab…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := slack.Escape(c.text, c.limit); got != c.want {
				t.Errorf("Escape(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
			}
		})
	}
}

func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, limit := anyText().Draw(t, "text"), rapid.IntRange(1, 4000).Draw(t, "limit")
		for name, f := range map[string]func(string, int) string{"Escape": slack.Escape, "Plain": slack.Plain, "Code": slack.Code} {
			got := f(text, limit)
			if slack.Length(got) > limit || !utf8.ValidString(got) {
				t.Fatalf("%s: %d units, want at most %d: %q", name, slack.Length(got), limit, got)
			}
			if name != "Plain" && strings.ContainsAny(got, "<>") || name == "Code" && strings.Contains(got, "`") {
				t.Fatalf("%s: %q", name, got)
			}
		}
	})
}

func TestJudge(t *testing.T) {
	for word, want := range map[string]notify.Verdict{
		"invalid_payload": notify.VerdictRefused, "invalid_blocks": notify.VerdictRefused, "no_text": notify.VerdictRefused,
		"too_many_attachments": notify.VerdictRefused, "user_not_found": notify.VerdictRefused,
		"no_service": notify.VerdictGone, "no_active_hooks": notify.VerdictGone, "no_team": notify.VerdictGone,
		"team_disabled": notify.VerdictGone, "invalid_token": notify.VerdictGone, "channel_not_found": notify.VerdictGone,
		"channel_is_archived": notify.VerdictGone, "action_prohibited": notify.VerdictGone, "posting_to_general_channel_denied": notify.VerdictGone,
		"restricted_action_thread_only_channel": notify.VerdictGone, "access_denied": notify.VerdictGone, "enterprise_is_restricted": notify.VerdictGone,
		"two_factor_setup_required": notify.VerdictGone, "messages_tab_disabled": notify.VerdictGone,
		"rollup_error": notify.VerdictRetry, "rate_limited": notify.VerdictThrottled,
	} {
		if got, known := slack.Judge(word); got != want || !known {
			t.Errorf("Judge(%q) = %v, %t; want %v", word, got, known, want)
		}
	}
	if got, known := slack.Judge("something_new"); known {
		t.Errorf("Judge of an unknown word = %v", got)
	}
}

func TestWord(t *testing.T) {
	for body, want := range map[string]string{
		"ok": "", "": "", "no_service": "no_service", " invalid_token\n": "invalid_token",
		"<html>Bad gateway</html>": "", "No service": "", `{"ok":true}`: "", `{"ok":false,"error":"no_text"}`: "no_text",
		`{"ok":false}`: "unknown_error", `{"ok":false,"error":"<b>"}`: "unknown_error", `{"error":"x"}`: "", `{"ok":fal`: "",
		strings.Repeat("x", 61): "",
	} {
		if got := slack.Word(body); got != want {
			t.Errorf("Word(%q) = %q, want %q", body, got, want)
		}
	}
}

func TestValidRefuses(t *testing.T) {
	section := func(text string) string { return `{"type":"section","text":{"type":"mrkdwn","text":"` + text + `"}}` }
	repeated := func(part string, n int) string { return strings.TrimSuffix(strings.Repeat(part+",", n), ",") }
	for name, c := range map[string]struct{ body, want string }{
		"no JSON":            {`{`, "not a JSON object"},
		"not UTF-8":          {"{\"text\":\"\xff\"}", "UTF-8"},
		"nothing":            {`{}`, "neither text nor blocks"},
		"blank":              {`{"text":" \n"}`, "neither text nor blocks"},
		"long text":          {`{"text":"` + strings.Repeat("x", 40_001) + `"}`, "longer than 40000"},
		"many blocks":        {`{"blocks":[` + repeated(`{"type":"divider"}`, 51) + `]}`, "more than 50 blocks"},
		"many attachments":   {`{"attachments":[` + repeated(`{}`, 101) + `]}`, "more than 100 attachments"},
		"long section":       {`{"blocks":[` + section(strings.Repeat("x", 3001)) + `]}`, "more than 3000"},
		"empty section":      {`{"blocks":[{"type":"section"}]}`, "text or fields"},
		"empty text":         {`{"blocks":[` + section("") + `]}`, "text is empty"},
		"many fields":        {`{"blocks":[{"type":"section","fields":[` + repeated(`{"type":"mrkdwn","text":"x"}`, 11) + `]}]}`, "more than 10 fields"},
		"long field":         {`{"blocks":[{"type":"section","fields":[{"type":"mrkdwn","text":"` + strings.Repeat("x", 2001) + `"}]}]}`, "more than 2000"},
		"long header":        {`{"blocks":[{"type":"header","text":{"type":"plain_text","text":"` + strings.Repeat("x", 151) + `"}}]}`, "more than 150"},
		"marked-up header":   {`{"blocks":[{"type":"header","text":{"type":"mrkdwn","text":"x"}}]}`, "plain_text"},
		"many elements":      {`{"blocks":[{"type":"context","elements":[` + repeated(`{"type":"mrkdwn","text":"x"}`, 11) + `]}]}`, "1 to 10 elements"},
		"many buttons":       {`{"blocks":[{"type":"actions","elements":[` + repeated(`{"type":"button","text":{"type":"plain_text","text":"x"}}`, 26) + `]}]}`, "1 to 25 elements"},
		"long button":        {`{"blocks":[{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"` + strings.Repeat("x", 76) + `"}}]}]}`, "more than 75"},
		"long link":          {`{"blocks":[{"type":"actions","elements":[{"type":"button","url":"` + strings.Repeat("x", 3001) + `","text":{"type":"plain_text","text":"x"}}]}]}`, "url is longer"},
		"unknown block":      {`{"blocks":[{"type":"sektion"}]}`, "no such type of block"},
		"no type":            {`{"blocks":[{}]}`, "type is required"},
		"same id twice":      {`{"blocks":[` + repeated(`{"type":"divider","block_id":"a"}`, 2) + `]}`, "appears twice"},
		"too much in all":    {`{"blocks":[` + repeated(section(strings.Repeat("x", 2900)), 5) + `]}`, "the blocks have 14500"},
		"text of other form": {`{"blocks":[{"type":"section","text":"x"}]}`, "block 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := slack.Valid([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Valid: %v, want …%s…", err, c.want)
			}
		})
	}
}

func TestValidAccepts(t *testing.T) {
	for name, body := range map[string]string{
		"text":     `{"text":"x"}`,
		"ready":    `{"text":"x","blocks":[{"type":"divider"},{"type":"image","image_url":"https://x.example/a.png","alt_text":"a"}]}`,
		"others":   `{"blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[]}]},{"type":"markdown","text":"# x"}]}`,
		"greatest": `{"blocks":[{"type":"section","text":{"type":"plain_text","text":"` + strings.Repeat("x", 3000) + `"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := slack.Valid([]byte(body)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFit(t *testing.T) {
	long := strings.Repeat("x", 50_000)
	body := `{"text": "` + long + `", "n": 1.50, "blocks": [
		{"type": "header", "block_id": "` + long + `", "text": {"type": "plain_text", "text": "` + long + `"}},
		{"type": "section", "text": {"type": "mrkdwn", "text": ""}, "fields": [{"type": "mrkdwn", "text": "` + long + `"}]},
		{"type": "context", "elements": [{"type": "mrkdwn", "text": "` + long + `"}, {"type": "image", "image_url": "u", "alt_text": "a"}]},
		{"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "` + long + `"}}]}]}`
	if err := slack.Valid([]byte(body)); err == nil {
		t.Fatal("valid before it is fitted")
	}
	fitted, err := slack.Fit([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := slack.Valid(fitted); err != nil {
		t.Error(err)
	}
	if !bytes.Contains(fitted, []byte(`"n":1.50`)) {
		t.Error("a number changed")
	}
	if _, err := slack.Fit([]byte(`[]`)); err == nil {
		t.Error("an array was fitted")
	}
}

func TestFitCutsNoEntity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := slack.Escape(rapid.StringOfN(rapid.SampledFrom([]rune("a<&😀")), 100, 300, -1).Draw(t, "text"), 10_000)
		body, err := json.Marshal(map[string]any{"blocks": []any{map[string]any{"type": "header", "text": map[string]any{"type": "plain_text", "text": text}}}})
		if err != nil {
			t.Fatal(err)
		}
		fitted, err := slack.Fit(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := slack.Valid(fitted); err != nil {
			t.Fatal(err)
		}
		var m slackgo.WebhookMessage
		if err := json.Unmarshal(fitted, &m); err != nil {
			t.Fatal(err)
		}
		got := m.Blocks.BlockSet[0].(*slackgo.HeaderBlock).Text.Text
		rest := strings.NewReplacer("&lt;", "", "&amp;", "").Replace(got)
		if strings.Contains(rest, "&") {
			t.Fatalf("a broken entity in %q", got)
		}
	})
}

func anyDigest() *rapid.Generator[slack.Digest] {
	return rapid.Custom(func(t *rapid.T) slack.Digest {
		text := func(name string) string { return anyText().Draw(t, name) }
		number := func(name string) int { return rapid.IntRange(0, 1<<40).Draw(t, name) }
		entries := rapid.IntRange(0, 2*notify.DigestTop)
		d := slack.Digest{
			ID: "019a0000-0000-7000-8000-000000000001", Size: number("size"), AllRules: number("rules"), AllPlaces: number("places"), AllErrors: number("errors"),
			From: text("from"), To: text("to"), URL: text("url"), Reasons: map[notify.Reason]int{},
		}
		for _, reason := range []notify.Reason{notify.ReasonFired, notify.ReasonReminder, notify.ReasonResolved, notify.ReasonRuleFailing, notify.ReasonRuleRecovered} {
			d.Reasons[reason] = rapid.SampledFrom([]int{0, 1, 1234567}).Draw(t, "count")
		}
		for range entries.Draw(t, "n rules") {
			d.Rules = append(d.Rules, slack.DigestRule{Name: text("name"), Severity: text("severity"), Count: number("count")})
		}
		for range entries.Draw(t, "n places") {
			d.Places = append(d.Places, slack.DigestCount{What: text("place"), Count: number("count")})
		}
		for range entries.Draw(t, "n errors") {
			d.Errors = append(d.Errors, slack.DigestCount{What: text("error"), Count: number("count")})
		}
		for _, end := range []**slack.Alert{&d.First, &d.Last} {
			if rapid.Bool().Draw(t, "known") {
				a := anyAlert().Draw(t, "end")
				*end = &a
			}
		}
		return d
	})
}

func TestAnyDigestIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDigest().Draw(t, "digest")
		for _, render := range []func(*slack.Digest) ([]byte, error){slack.DigestMessage, slack.PlainDigest} {
			body, err := render(&d)
			if err != nil {
				t.Fatal(err)
			}
			if err := slack.Valid(body); err != nil {
				t.Fatalf("%v: %.3000s", err, body)
			}
			for _, shown := range mrkdwn(t, body) {
				shown = strings.ReplaceAll(shown, "<!date^", "")
				if strings.Contains(shown, "<!") || strings.Contains(shown, "<@") || strings.Contains(shown, "<#") {
					t.Fatalf("markup in %.3000s", shown)
				}
			}
		}
	})
}

// mrkdwn returns the texts of a message in which Slack interprets markup.
func mrkdwn(t *rapid.T, body []byte) []string {
	type object struct{ Type, Text string }
	var m struct {
		Text   string
		Blocks []struct {
			Text     object
			Fields   []object
			Elements []json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	texts := []string{m.Text}
	add := func(o object) {
		if o.Type == "mrkdwn" {
			texts = append(texts, o.Text)
		}
	}
	for _, b := range m.Blocks {
		add(b.Text)
		for _, f := range b.Fields {
			add(f)
		}
		for _, e := range b.Elements {
			var o object
			if json.Unmarshal(e, &o) == nil { // a button's text is an object, and plain
				add(o)
			}
		}
	}
	return texts
}

func TestDigestHeadline(t *testing.T) {
	rule := []slack.DigestRule{{Name: "Failed orders", Severity: "WARNING", Count: 250}}
	for want, d := range map[string]slack.Digest{
		"🟠 WARNING 250 alerts of rule Failed orders": {Reasons: map[notify.Reason]int{notify.ReasonFired: 250}, Rules: rule, AllRules: 1},
		"🟠 WARNING 1 alert, 2 reminders, 1,000 resolved": {
			Reasons: map[notify.Reason]int{notify.ReasonFired: 1, notify.ReasonReminder: 2, notify.ReasonResolved: 1000}, Rules: rule, AllRules: 3,
		},
		"🟠 WARNING 312 rules cannot be evaluated": {Reasons: map[notify.Reason]int{notify.ReasonRuleFailing: 312}, Rules: rule, AllRules: 312},
		"🟠 WARNING 21 webhooks are disabled":      {Reasons: map[notify.Reason]int{notify.ReasonWebhookOff: 21}, Rules: rule, AllRules: 1},
		"🟠 WARNING 20 webhooks are disabled, 3 resolved": {
			Reasons: map[notify.Reason]int{notify.ReasonWebhookOff: 20, notify.ReasonResolved: 3}, Rules: rule, AllRules: 1,
		},
		"🟠 WARNING 1 webhook is disabled, 20 alerts": {
			Reasons: map[notify.Reason]int{notify.ReasonWebhookOff: 1, notify.ReasonFired: 20}, Rules: rule, AllRules: 1,
		},
		"🟢 1 resolved, 311 rules recovered": {Reasons: map[notify.Reason]int{notify.ReasonRuleRecovered: 311, notify.ReasonResolved: 1}, Rules: rule, AllRules: 312},
	} {
		body, err := slack.DigestMessage(&d)
		if err != nil {
			t.Fatal(err)
		}
		var m struct{ Text string }
		if err := json.Unmarshal(body, &m); err != nil || m.Text != want {
			t.Errorf("%q, %v; want %q", m.Text, err, want)
		}
	}
}
