package api_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestExamplesOfTheGuideAreRules checks that the API accepts the examples in the guide to writing
// rules.
func TestExamplesOfTheGuideAreRules(t *testing.T) {
	guide, err := os.ReadFile("../docs/writing-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	var modes []string
	for _, example := range regexp.MustCompile("(?ms)^```json\n(.*?)^```$").FindAllSubmatch(guide, -1) {
		var rule struct{ Name, FireMode string }
		if err := json.Unmarshal(example[1], &rule); err != nil {
			t.Errorf("%v in %s", err, example[1])
			continue
		}
		modes = append(modes, rule.FireMode)
		b.do("POST", "/api/v1/rules", string(example[1])).want(201)
	}
	for _, mode := range []string{"PER_EXCHANGE", "COUNT_IN_WINDOW", "RATIO_IN_WINDOW", "DURATION_IN_WINDOW", "ABSENT_IN_WINDOW"} {
		if !slices.Contains(modes, mode) {
			t.Errorf("The guide has no example of %s", mode)
		}
	}
}
