package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestALinkWithoutAnAddressIsExplained checks that standard output contains only the link, for
// programs, and that the other output says what a browser needs in addition.
func TestALinkWithoutAnAddressIsExplained(t *testing.T) {
	for public, says := range map[string]string{"https://tocsin.example": "", "": "TOCSIN_PUBLIC_URL"} {
		var out, person strings.Builder
		if err := writeLink(&out, &person, public+"/sign-in#secret", public); err != nil {
			t.Fatal(err)
		}
		if want := public + "/sign-in#secret\n"; out.String() != want {
			t.Errorf("printed %q, want %q", out.String(), want)
		}
		if message := person.String(); (message == "") != (says == "") || !strings.Contains(message, says) || strings.Contains(message, "secret") {
			t.Errorf("%q: the message is %q, want %q", public, message, says)
		}
	}
}

// TestAnEmptyFileIsNoSecret checks that a file whose secret is missing is an error. As an empty secret, it would leave /metrics
// open.
func TestAnEmptyFileIsNoSecret(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]string{"secret\r\n": "secret", "": "", "\n": "", " \r\n": ""} {
		name := filepath.Join(dir, "token")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := (&accessFlags{MetricsTokenFile: name}).options()
		if want == "" && (err == nil || !strings.Contains(err.Error(), "--metrics-token-file: "+name+" is empty")) || want != "" && (err != nil || o.MetricsToken != want) {
			t.Errorf("%q: token %q, error %v", content, o.MetricsToken, err)
		}
	}
}
