package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestExportKeepsThePermissionsOfAFile(t *testing.T) {
	dir := t.TempDir()
	private := filepath.Join(dir, "private.yaml")
	if err := os.WriteFile(private, []byte("rules: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{private: 0o600, filepath.Join(dir, "new.yaml"): 0o644} {
		if err := replaceFile(path, []byte("users: []\n")); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil || string(content) != "users: []\n" {
			t.Errorf("%s contains %q, %v", path, content, err)
		}
		if is, err := os.Stat(path); err != nil || is.Mode() != want {
			t.Errorf("%s has the permissions %v, want %v; %v", path, is.Mode(), want, err)
		}
	}
}
