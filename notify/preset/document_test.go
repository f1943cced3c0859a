package preset_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/rules"
)

const minimal = `id: own
name: Own
about: Gets a text.
inputs:
  - {name: key, label: Key, secret: true, example: abcdefgh}
  - {name: server, label: Server, type: url, example: "https://own.example.com"}
  - {name: room, label: Room, optional: true}
severity: {CRITICAL: 3, WARNING: 2, INFO: 1}
url: "{{input.server}}/rooms/{{input.room}}/messages?about={{event.key}}"
headers: {X-Key: "{{input.key}}"}
events:
  fired:
    body:
      text: "{{alert.title}}"
      level: {$severity: true}
      key: "{{input.key}}"
      room: {$number: "{{input.room}}"}
      inner: {$json: {route: "{{exchange.route}}", empty: "{{exchange.stackTop}}"}}
      link: {$url: "{{rule.runbookUrl}}"}
      facts:
        - {$needs: [value], name: Route, value: "{{exchange.route}}"}
        - {$needs: [value], name: Owner, value: "{{rule.owner}}"}
  resolved: same
limits:
  - {pointer: /text, max: 20, unit: utf16, oneLine: true}
`

func parse(t *testing.T, text string) *preset.Preset {
	t.Helper()
	p, err := preset.Parse("own.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBodies checks the bodies that a tree produces for an alert.
func TestBodies(t *testing.T) {
	t.Parallel()
	p := parse(t, minimal)
	a := alerts.Instance{
		ID: uuid.UUID{15: 7}, Title: "😀😀😀😀😀😀😀😀😀😀😀😀", Severity: rules.Critical, About: rules.About{RunbookURL: "javascript:alert(1)"},
		Exchange: rules.Exchange{Route: `a "b"`, ExecutionID: "1"},
	}
	d := &notify.Delivery{Reason: notify.ReasonFired, Alert: a}
	inputs := map[string]string{"key": "secret-key", "server": "https://own.example.com/base/", "room": "42"}
	body, cuts, err := p.Body(preset.MessageOf(d, ""), inputs)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"facts":[{"name":"Route","value":"a \"b\""}],"inner":"{\"route\":\"a \\\"b\\\"\"}","key":"[redacted]","level":3,"room":42,"text":"😀😀😀😀😀😀😀😀😀…"}`
	if string(body.Content) != want {
		t.Errorf("got  %s\nwant %s", body.Content, want)
	}
	if len(cuts) != 1 || cuts[0].String() != "/text: 24 utf16 cut to 20" {
		t.Errorf("cut: %v", cuts)
	}
	inputs["room"] = "not a number/.."
	body, _, err = p.Body(preset.MessageOf(d, ""), inputs)
	if err != nil || strings.Contains(string(body.Content), "room") {
		t.Errorf("a room that is no number: %s, %v", body.Content, err)
	}
	to, err := p.Target(preset.Resolved, preset.AboutOf(d), inputs)
	if err != nil {
		t.Fatal(err)
	}
	if got := to.URL.String(); got != "https://own.example.com/base/rooms/not%20a%20number%2F../messages?about="+a.ID.String() {
		t.Error(got)
	}
	if to.Header.Get("X-Key") != "secret-key" {
		t.Error(to.Header)
	}
}

// TestReceiversNameWhatIsThere: an id from a response is used in later messages to refer to the
// existing object, and only a text that can be an id is one.
func TestReceiversNameWhatIsThere(t *testing.T) {
	t.Parallel()
	p := parse(t, strings.Replace(minimal, "about: Gets a text.", "about: Gets a text.\ncapture: /message/id\nupdate: {method: PUT, url: \"{{input.server}}/messages/{{event.reference}}\"}\n"+
		"schedule: [10s, 1m]\nmaxAge: 2h", 1))
	if !slices.Equal(p.Schedule.Pauses, []time.Duration{10 * time.Second, time.Minute}) || p.Schedule.MaxAge != 2*time.Hour {
		t.Errorf("schedule %+v", p.Schedule)
	}
	inputs := map[string]string{"key": "secret-key", "server": "https://own.example.com", "room": "42"}
	for _, test := range []struct {
		event     preset.Event
		reference string
		want      string
	}{
		{preset.Resolved, "", "POST /rooms/42/messages"}, {preset.Resolved, "a1", "PUT /messages/a1"}, {preset.Fired, "a1", "POST /rooms/42/messages"},
	} {
		to, err := p.Target(test.event, preset.About{Key: "k", Reference: test.reference}, inputs)
		if err != nil {
			t.Fatal(err)
		}
		if got := to.Method + " " + to.URL.Path; got != test.want {
			t.Errorf("%s with %q: %s, want %s", test.event, test.reference, got, test.want)
		}
	}
	for answer, want := range map[string]string{
		`{"message":{"id":"OPS-1"}}`: "OPS-1", `{"message":{"id":12345678901234567890}}`: "12345678901234567890", `{"message":{"id":"../../admin"}}`: "",
		`{"message":{"id":".."}}`: "", `{"message":{"id":""}}`: "", `{"message":{}}`: "", `no JSON`: "", `{"message":{"id":"` + strings.Repeat("x", 201) + `"}}`: "",
	} {
		j := p.Judge(200, http.Header{}, []byte(answer), preset.Judgement{Verdict: notify.VerdictDelivered}, time.Now())
		if got := j.Reference; (got == nil) != (want == "") || got != nil && *got != want {
			t.Errorf("%s: %v, want %q", answer, got, want)
		}
		if j := p.Judge(500, http.Header{}, []byte(answer), preset.Judgement{Verdict: notify.VerdictRetry}, time.Now()); j.Reference != nil {
			t.Errorf("%s names something in a failure", answer)
		}
	}
}

// TestWhatNobodyEndsIsOverByItself: at Alertmanager an alert is open until it is resolved; the
// operators' alert about an undelivered message ends after a day.
func TestWhatNobodyEndsIsOverByItself(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	p := set.Get("alertmanager")
	at := time.Date(2026, 11, 24, 1, 2, 3, 0, time.UTC)
	a := alerts.Instance{ID: uuid.UUID{15: 1}, Title: "t", Severity: rules.Critical, FiredAt: at.Add(-50 * time.Hour)}
	for reason, want := range map[notify.Reason]string{
		notify.ReasonFired: "2199-01-01T00:00:00Z", notify.ReasonRuleFailing: "2199-01-01T00:00:00Z", notify.ReasonUndelivered: "2026-11-25T01:02:03Z",
	} {
		body, _, err := p.Body(preset.MessageOf(&notify.Delivery{Reason: reason, Alert: a, At: at}, ""), p.Examples())
		if err != nil {
			t.Fatal(err)
		}
		var sent []struct{ EndsAt string }
		if err := json.Unmarshal(body.Content, &sent); err != nil || len(sent) != 1 || sent[0].EndsAt != want {
			t.Errorf("%s ends at %+v, %v, want %s", reason, sent, err, want)
		}
	}
}

// TestHealthAlertsTellNoExchange checks that they contain no exchange, as they have none.
func TestHealthAlertsTellNoExchange(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	a := alerts.Instance{ID: uuid.UUID{15: 1}, Title: "The rule cannot be evaluated", Severity: rules.Critical, Health: true}
	for _, p := range set.All() {
		body, _, err := p.Body(preset.MessageOf(&notify.Delivery{Reason: notify.ReasonRuleFailing, Alert: a}, ""), p.Examples())
		if err != nil || strings.Contains(string(body.Content), "1970-01-01T00:00:00.000000000Z") {
			t.Errorf("%s: %v: %s", p.ID, err, body.Content)
		}
	}
}

// TestMistakes checks that errors contain file, line and remedy.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ from, to, want string }{
		{"id: own", "id: Own Preset", "own.yaml:1: id must be"},
		{"about: Gets a text.", "abuot: Gets a text.", "own.yaml:3: unknown field abuot"},
		{`text: "{{alert.title}}"`, `text: "{{alert.titel}}"`, `own.yaml:14: Unknown variable "alert.titel"; did you mean "alert.title"?`},
		{`text: "{{alert.title}}"`, `text: "{{input.kee}}"`, `own.yaml:14: unknown input "kee"; add it`},
		{`text: "{{alert.title}}"`, `text: "Key {{input.key}}"`, "own.yaml:14: the secret \"key\" must be the whole value"},
		{`value: "{{rule.owner}}"`, `value: "{{input.key}}"`, "own.yaml:22: a secret cannot be in a list"},
		{"$severity", "$weight", "own.yaml:15: unknown operator $weight"},
		{"$needs: [value], name: Owner", "$needs: [worth], name: Owner", "own.yaml:22: $needs names \"worth\""},
		{"pointer: /text", "pointer: /txt", "own.yaml:25: /txt: no body has a text there"},
		{"unit: utf16", "unit: letters", "own.yaml:25: /text: max must be"},
		{"  resolved: same\n", "", "own.yaml:11: the event resolved is missing"},
		{"resolved: same", "resolved: skip", "own.yaml:23: resolved cannot be skipped"},
		{"resolved: same", "resolved: same\n  closed: same", "own.yaml:24: unknown event \"closed\""},
		{`url: "{{input.server}}`, `url: "http://example.com`, "own.yaml:9: a URL must begin with https://"},
		{`url: "{{input.server}}`, `url: "{{input.key}}`, "own.yaml:9: a URL must begin with https:// or with an input of type url"},
		{"about={{event.key}}", "about={{alert.title}}", "own.yaml:9: URLs and headers may contain inputs, event.key and event.reference, but not alert.title"},
		{"about: Gets a text.", "about: Gets a text.\nschedule: [30s, soon]", "own.yaml:4: each pause of schedule must be a duration such as 30s"},
		{"about: Gets a text.", "about: Gets a text.\nmaxAge: 5s", "own.yaml:4: maxAge must be a duration such as 6h"},
		{"about: Gets a text.", "about: Gets a text.\ncapture: id", "own.yaml:4: capture is a pointer into the response"},
		{"about: Gets a text.", "about: Gets a text.\nupdate: {url: \"{{input.server}}/x\"}", "own.yaml:4: update and forget need capture"},
		{"about: Gets a text.", "about: Gets a text.\ncapture: /id\nupdate: {url: \"{{input.key}}/x\"}", "own.yaml:5: a URL must begin with https:// or with an input of type url"},
		{"about: Gets a text.", "about: Gets a text.\ncapture: /id\nupdate: {url: \"{{input.server}}/x\", method: DELETE}", "own.yaml:5: update: method must be POST, PUT or PATCH"},
		{"example: abcdefgh", "example: abcdefgh, link: javascript:alert(1)", "own.yaml:4: input \"key\" has a link that is neither"},
		{"example: abcdefgh", "example: abcdefgh, link: \"{{input.room}}/keys\"", "own.yaml:4: input \"key\" has a link that is neither"},
		{"example: abcdefgh", "example: abc", "own.yaml:4: input \"key\" has an example"},
	} {
		text := strings.Replace(minimal, test.from, test.to, 1)
		_, err := preset.Parse("own.yaml", []byte(text))
		if problem, ok := errors.AsType[*preset.Error](err); !ok || !strings.HasPrefix(problem.Error(), test.want) {
			t.Errorf("%s instead of %s: %v, want %s", test.to, test.from, err, test.want)
		}
	}
}

// TestInputs checks that rejected inputs are not repeated.
func TestInputs(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	p := set.Get("pagerduty")
	fields := p.CheckInputs(map[string]string{"routingKey": "too-short-secret", "region": "https://evil.example.com", "other": "x"})
	if len(fields) != 3 {
		t.Fatal(fields)
	}
	for _, field := range fields {
		if strings.Contains(field.Message, "too-short-secret") || strings.Contains(field.Message, "evil") || !strings.HasPrefix(field.Field, "preset.inputs.") {
			t.Error(field)
		}
	}
	if fields := p.CheckInputs(map[string]string{"routingKey": strings.Repeat("a", 32)}); len(fields) > 0 {
		t.Error(fields)
	}
}

// TestOperatorsAddReceivers adds receivers by files; one of them replaces a receiver of the
// program.
func TestOperatorsAddReceivers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("own.yaml", minimal)
	write("ntfy.yml", strings.Replace(minimal, "id: own", "id: ntfy", 1))
	write("README", "not a receiver")
	set, err := preset.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if p := set.Get("own"); p == nil || !p.Own {
		t.Errorf("own: %+v", p)
	}
	if p := set.Get("ntfy"); p == nil || p.Name != "Own" {
		t.Errorf("ntfy: %+v", p)
	}
	if set.Get("pagerduty") == nil {
		t.Error("the program's are gone")
	}
	write("again.yaml", minimal)
	if _, err := preset.Load(dir); err == nil || !strings.Contains(err.Error(), "is also used by") {
		t.Errorf("twice the same id: %v", err)
	}
	write("again.yaml", strings.Replace(minimal, "id: own", "id: other", 1)+"schema: {required: [nothing]}\n")
	if _, err := preset.Load(dir); err == nil || !strings.Contains(err.Error(), "schema") {
		t.Errorf("bodies that its own schema refuses: %v", err)
	}
}

// TestTheSchemaDescribesEveryFile validates the program's own files against the schema for editors.
func TestTheSchemaDescribesEveryFile(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(preset.Schema())))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:///receiver.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("mem:///receiver.json")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("receivers/*.yaml")
	if err != nil || len(files) < 16 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var content any
		if err := yaml.Unmarshal(text, &content); err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(value); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestEverySecretIsFoundByALink: each secret of a built-in receiver has a link to where it is found, except the password of a
// mail server, which may be anybody's.
func TestEverySecretIsFoundByALink(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.All() {
		for i := range p.Inputs {
			if in := &p.Inputs[i]; in.Secret && !p.Mails() && (in.Link == "" || in.Help == "") {
				t.Errorf("%s: nothing says where %s is found", p.ID, in.Name)
			}
		}
	}
}

// TestTheHandbookHasEveryReceiver, says which know keys, and its example works.
func TestTheHandbookHasEveryReceiver(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/receivers.md")
	if err != nil {
		t.Fatal(err)
	}
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.All() {
		_, row, found := strings.Cut(string(text), "| `"+p.ID+"` | ")
		if !found {
			t.Errorf("%s has no row", p.ID)
			continue
		}
		if strings.HasPrefix(row, "yes") != p.Keyed {
			t.Errorf("%s: the row does not say whether it knows keys", p.ID)
		}
		if set.Schedule(&notify.Webhook{Preset: p.ID}).KeepsState != p.Keyed {
			t.Errorf("%s: what it has opened is not closed however late", p.ID)
		}
		if page, err := os.ReadFile("../../docs/receivers/" + p.ID + ".md"); err != nil || !strings.HasPrefix(string(page), "# "+p.Name+"\n") {
			t.Errorf("%s has no page: %v", p.Name, err)
		}
	}
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	if report := parse(t, example).Check(); len(report.Problems) > 0 {
		t.Error(report.Problems)
	}
}
