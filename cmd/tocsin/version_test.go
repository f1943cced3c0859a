package main

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"tocsin/migrations"
)

func TestVersionNamesTheSchema(t *testing.T) {
	newest, err := newestMigration(migrations.Files)
	if err != nil || newest < 24 {
		t.Fatalf("the newest migration is %d, %v", newest, err)
	}
	var text, document strings.Builder
	if err := (version{}).Run(&text); err != nil {
		t.Fatal(err)
	}
	if err := (version{JSON: true}).Run(&document); err != nil {
		t.Fatal(err)
	}
	var b build
	if err := json.Unmarshal([]byte(document.String()), &b); err != nil || b.Schema != newest || b.Version == "" {
		t.Errorf("%+v, %v", b, err)
	}
	for _, line := range []string{"tocsin ", "\ncommit ", "\nschema   "} {
		if !strings.Contains("\n"+text.String(), line) {
			t.Errorf("%q is not in:\n%s", line, text.String())
		}
	}
	for _, broken := range []fstest.MapFS{{}, {"x_y.sql": nil}} {
		if _, err := newestMigration(broken); err == nil {
			t.Errorf("%v: no error", broken)
		}
	}
}
