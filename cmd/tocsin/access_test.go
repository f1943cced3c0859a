package main

import (
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
