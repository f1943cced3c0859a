package rulefile_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"tocsin/internal/rulefile"
)

// TestFilesHoldEverythingThatIsMadeByTheAPI checks that each kind of object that can be created or
// set as a whole by the API is a section of the files that tocsin apply accepts. Exceptions are
// tokens, whose secret is shown once, when they are created, and signing in and the first
// administrator, which are no objects.
func TestFilesHoldEverythingThatIsMadeByTheAPI(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, path := range regexp.MustCompile(`(?m)^  /([\w-]+):\n((?:    .*\n|\n)+)`).FindAllStringSubmatch(string(text), -1) {
		if regexp.MustCompile(`(?m)^    (?:post|put):`).MatchString(path[2]) {
			made = append(made, path[1])
		}
	}
	slices.Sort(made)
	// The routing policy is a list of routes.
	want := []string{"routing", "session", "setup", "tokens", rulefile.Rules, rulefile.Silences, rulefile.Teams, rulefile.Users, rulefile.Views, rulefile.Webhooks}
	slices.Sort(want)
	if !slices.Equal(made, want) {
		t.Errorf("the API makes %v; files and this test know %v", made, want)
	}
}
