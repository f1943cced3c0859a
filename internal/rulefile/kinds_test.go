package rulefile_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"tocsin/internal/rulefile"
)

// TestFilesHoldEverythingThatIsMadeByTheAPI holds that each kind of object which can be made and deleted by the API is a section of the
// files that tocsin apply takes, but for tokens, whose secret is shown once, when they are made.
func TestFilesHoldEverythingThatIsMadeByTheAPI(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made, deleted := map[string]bool{}, map[string]bool{}
	for _, path := range regexp.MustCompile(`(?m)^  /(\w+)(/\{id\})?:\n((?:    .*\n|\n)+)`).FindAllStringSubmatch(string(text), -1) {
		if path[2] == "" && regexp.MustCompile(`(?m)^    post:`).MatchString(path[3]) {
			made[path[1]] = true
		}
		if path[2] != "" && regexp.MustCompile(`(?m)^    delete:`).MatchString(path[3]) {
			deleted[path[1]] = true
		}
	}
	maps.DeleteFunc(made, func(kind string, _ bool) bool { return !deleted[kind] })
	want := []string{"tokens", rulefile.Rules, rulefile.Users, rulefile.Webhooks}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(made)); !slices.Equal(got, want) {
		t.Errorf("the API makes and deletes %v; files and this test know %v", got, want)
	}
}
