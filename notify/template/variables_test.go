package template_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tocsin/notify/template"
)

// The browser completes these names; its table is compared with the same file.
func TestVariablesAreThoseOfTheSharedTable(t *testing.T) {
	content, err := os.ReadFile("../../testdata/template_variables.json")
	if err != nil {
		t.Fatal(err)
	}
	var want []template.Variable
	if err := json.Unmarshal(content, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, template.Variables()); diff != "" {
		t.Errorf("testdata/template_variables.json differs (-file +code):\n%s", diff)
	}
}
