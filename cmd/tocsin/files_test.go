package main

import (
	"os"
	"path/filepath"
	"syscall"
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

// TestExportReplacesNoLinkAndNoPipe writes to a link and to a pipe, as /dev/stdout is one.
func TestExportReplacesNoLinkAndNoPipe(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file.yaml"), filepath.Join(dir, "link.yaml"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file.yaml", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	for path, want := range map[string]os.FileMode{link: os.ModeSymlink, pipe: os.ModeNamedPipe} {
		if err := replaceFile(path, []byte("users: []")); err != nil {
			t.Fatal(err)
		}
		if is, err := os.Lstat(path); err != nil || is.Mode().Type() != want {
			t.Errorf("%s became %v; %v", path, is.Mode(), err)
		}
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "users: []" {
		t.Errorf("behind the link is %q, %v", content, err)
	}
	content := make([]byte, 20)
	if n, err := reader.Read(content); err != nil || string(content[:n]) != "users: []" {
		t.Errorf("the pipe brought %q, %v", content[:n], err)
	}
}
