package preset_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/preset"
	"tocsin/notify/template"
	"tocsin/rules"
)

// mails returns the program's preset for e-mail.
func mails(t *testing.T) *preset.Preset {
	t.Helper()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	return set.Get("email")
}

// TestMail checks where messages are sent.
func TestMail(t *testing.T) {
	t.Parallel()
	p := mails(t)
	got, err := p.Mail(map[string]string{
		"host": "smtp.example.com", "from": "Tocsin <alerts@example.com>", "to": "a@example.com, Kim Berg <kim@example.com>", "user": "u", "password": "long enough",
	})
	if err != nil || got.Address() != "smtp.example.com:587" || got.Security != preset.SecurityStartTLS || len(got.To) != 2 || got.To[1].Name != "Kim Berg" {
		t.Errorf("%+v, %v", got, err)
	}
	to, err := p.Target(preset.Fired, preset.About{}, p.Examples())
	if err != nil || to.URL.String() != "smtp://smtp.example.com:587" || to.Method != preset.MethodMail {
		t.Errorf("%+v, %v", to, err)
	}
}

// TestMailInputs checks that wrong inputs are rejected one by one, and never repeated.
func TestMailInputs(t *testing.T) {
	t.Parallel()
	p := mails(t)
	many := strings.Repeat("a@example.com, ", 50) + "b@example.com"
	for _, test := range []struct{ field, value, want string }{
		{"host", "", "preset.inputs.host"},
		{"host", "smtp.example.com:25", "preset.inputs.host"},
		{"host", "-x", "preset.inputs.host"},
		{"host", "2001:db8::1", ""},
		{"port", "0", "preset.inputs.port"},
		{"port", "70000", "preset.inputs.port"},
		{"port", "465", ""},
		{"security", "ssl", "preset.inputs.security"},
		{"security", "none", ""},
		{"user", "kim", "preset.inputs.password"},
		{"password", "long enough", "preset.inputs.user"},
		{"from", "no address", "preset.inputs.from"},
		{"from", "a@example.com, b@example.com", "preset.inputs.from"},
		{"from", "a@bücher.example", "preset.inputs.from"},
		{"from", "a@example.com\r\nBcc: b@example.com", "preset.inputs.from"},
		{"to", "", "preset.inputs.to"},
		{"to", "a@example.com; b@example.com", "preset.inputs.to"},
		{"to", "a@example.com, A@Example.com", "preset.inputs.to"},
		{"to", `"a b"@example.com`, "preset.inputs.to"},
		{"to", "a@example.com> SIZE=1", "preset.inputs.to"},
		{"to", many, "preset.inputs.to"},
	} {
		inputs := map[string]string{"host": "smtp.example.com", "from": "alerts@example.com", "to": "a@example.com"}
		if test.value == "" {
			delete(inputs, test.field)
		} else {
			inputs[test.field] = test.value
		}
		fields := p.CheckInputs(inputs)
		switch {
		case test.want == "" && len(fields) > 0, test.want != "" && (len(fields) != 1 || fields[0].Field != test.want):
			t.Errorf("%s %q: %v", test.field, test.value, fields)
		case test.want != "" && test.value != "" && strings.Contains(fields[0].Message, test.value):
			t.Errorf("%s is repeated: %s", test.field, fields[0].Message)
		}
	}
	if fields := p.CheckInputs(map[string]string{
		"host": "smtp.example.com", "from": "alerts@example.com", "to": "a@example.com", "security": "none", "user": "kim", "password": "long enough",
	}); len(fields) != 1 || fields[0].Field != "preset.inputs.user" {
		t.Errorf("a password in the clear: %v", fields)
	}
}

// TestMailBodies checks that values are escaped in HTML, and not in the text.
func TestMailBodies(t *testing.T) {
	t.Parallel()
	a := template.Samples()[0]
	a.Title, a.Message, a.Severity = `<img src=x onerror="alert(1)">`, "one\n</td><script>two", rules.Critical
	d := &notify.Delivery{NotificationID: uuid.UUID{1}, Reason: notify.ReasonFired, Alert: a}
	body, _, err := mails(t).Body(preset.MessageOf(d, "https://tocsin.example.com/inbox/1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var mail struct{ Subject, Text, HTML string }
	if err := json.Unmarshal(body.Content, &mail); err != nil {
		t.Fatal(err)
	}
	if mail.Subject != "[CRITICAL] "+a.Title || !strings.HasPrefix(mail.Text, "Fired: "+a.Title+"\nCRITICAL") || !strings.Contains(mail.Text, "\n"+a.Message+"\n") {
		t.Errorf("%s\n%s", mail.Subject, mail.Text)
	}
	for _, want := range []string{"&lt;img src=x onerror=&#34;alert(1)&#34;&gt;", "one<br>&lt;/td&gt;&lt;script&gt;two", `href="https://tocsin.example.com/inbox/1"`, "border-left:4px solid #c92a2a"} {
		if !strings.Contains(mail.HTML, want) {
			t.Errorf("%q is not in %s", want, mail.HTML)
		}
	}
	if strings.Contains(mail.HTML, "<img") || strings.Contains(mail.HTML, "<script") {
		t.Errorf("markup of an exchange: %s", mail.HTML)
	}
}

// TestMistakesInMail has settings that an e-mail cannot have.
func TestMistakesInMail(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("receivers/email.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p := parse(t, string(text)); !p.Mails() || !p.Sends(preset.Digest) {
		t.Errorf("%+v", p)
	}
	for _, test := range []struct{ from, to, want string }{
		{"encoding: email\n", "encoding: email\nurl: https://example.com\n", "encoding email has no url"},
		{"encoding: email\n", "encoding: email\nheaders: {X: y}\n", "encoding email has no headers"},
		{"encoding: email\n", "encoding: email\nverdicts: [{status: 550, verdict: GONE, remedy: x}]\n", "encoding email has no verdicts"},
		{"encoding: email\n", "encoding: email\nkeyed: true\n", "keyed"},
		{"  - name: host\n", "  - name: server\n", "host is missing"},
		{"    secret: true\n    optional: true\n", "    optional: true\n", "password must be secret"},
		{"{value: tls,", "{value: ssl,", `not "ssl"`},
		{"      subject: ", "      topic: ", "has the members subject, text and html"},
		{"encoding: email", "encoding: mail", "encoding must be json, form or email"},
	} {
		changed := strings.Replace(string(text), test.from, test.to, 1)
		_, err := preset.Parse("own.yaml", []byte(changed))
		if problem, ok := errors.AsType[*preset.Error](err); !ok || !strings.Contains(problem.Message, test.want) {
			t.Errorf("%q instead of %q: %v, want %s", test.to, test.from, err, test.want)
		}
	}
}

// TestATextOfEllipsesIsCut checks that it is not mistaken for the rest of another text that was
// cut: without a title receivers would reject the message.
func TestATextOfEllipsesIsCut(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{strings.Repeat("…", 300), strings.Repeat("…", 300) + "a", strings.Repeat("\u200b ", 300) + "a"} {
		a := template.Samples()[0]
		a.Title = title
		body, _, err := set.Get("incident-io").Body(preset.MessageOf(&notify.Delivery{Reason: notify.ReasonFired, Alert: a}, ""), set.Get("incident-io").Examples())
		if err != nil || !strings.Contains(string(body.Content), `"title":"`) {
			t.Errorf("%q: %v, %s", title[:10], err, body.Content)
		}
	}
}
