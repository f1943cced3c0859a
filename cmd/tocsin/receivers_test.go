package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReceiversAreListedAndChecked(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := (&receiversList{}).Run(&out); err != nil || !strings.Contains(out.String(), "pagerduty") || !strings.Contains(out.String(), "Microsoft Teams") {
		t.Fatalf("%v: %s", err, &out)
	}
	own, err := os.ReadFile("../../notify/preset/receivers/pagerduty.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", strings.Replace(string(own), "id: pagerduty", "id: our-pagerduty", 1))
	out.Reset()
	if err := (&receiversCheck{Files: []string{good}}).Run(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PagerDuty, notified of fired, reminder, acknowledged, resolved, reopened", "! with the longest samples, fired: /payload/custom_details/message:", "cut to 8000"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("does not say %q: %s", want, &out)
		}
	}
	out.Reset()
	if err := (&receiversList{Receivers: []string{dir}}).Run(&out); err != nil || !strings.Contains(out.String(), "our-pagerduty") || !strings.Contains(out.String(), "(added)") {
		t.Errorf("%v: %s", err, &out)
	}
	misspelt := write("misspelt.yml", strings.Replace(string(own), "{{alert.title}}", "{{alert.titel}}", 1))
	err = (&receiversCheck{Files: []string{misspelt}}).Run(&out)
	if err == nil || !strings.Contains(err.Error(), `misspelt.yml:33: Unknown variable "alert.titel"; did you mean "alert.title"?`) {
		t.Error(err)
	}
	out.Reset()
	refused := write("refused.yml", strings.Replace(string(own), "event_action: trigger", "event_action: open", 1))
	if err := (&receiversCheck{Files: []string{refused}}).Run(&out); err == nil || !strings.Contains(out.String(), "✗ fired: the body does not match the receiver's schema") {
		t.Errorf("%v: %s", err, &out)
	}
	out.Reset()
	if err := (receiversSchema{}).Run(&out); err != nil || !json.Valid(out.Bytes()) {
		t.Errorf("%v: %s", err, &out)
	}
}
