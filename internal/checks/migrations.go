package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The manifest has one line per migration, in order: the SHA-256 of the file, two spaces, the
// file's name. A database never runs a migration twice, so an edited migration would leave old
// databases with another schema than new ones. An entry is binding once it is published: in a
// release, or in the upstream branch. Until then, to edit a migration, delete its line and record
// it again.
const (
	migrationsDir = "migrations"
	manifestPath  = "internal/checks/migrations.sum"
)

type migrationEntry struct {
	name string
	sum  string
}

// migrationsIn lists the migrations of the tree in the order in which they run.
func migrationsIn(tree fs.FS) ([]migrationEntry, error) {
	names, err := fs.Glob(tree, migrationsDir+"/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	entries := make([]migrationEntry, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, fmt.Errorf("read a migration: %w", err)
		}
		sum := sha256.Sum256(text)
		entries = append(entries, migrationEntry{name: path.Base(name), sum: hex.EncodeToString(sum[:])})
	}
	return entries, nil
}

func parseManifest(text string) ([]migrationEntry, error) {
	var entries []migrationEntry
	for line := range strings.Lines(text) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(sum) != hex.EncodedLen(sha256.Size) {
			return nil, fmt.Errorf("%s: not a line of the manifest: %q", manifestPath, line)
		}
		entries = append(entries, migrationEntry{name: name, sum: sum})
	}
	return entries, nil
}

// readManifest reads the manifest of the tree; a missing manifest is empty.
func readManifest(tree fs.FS) (string, []migrationEntry, error) {
	text, err := fs.ReadFile(tree, manifestPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("read the manifest of migrations: %w", err)
	}
	entries, err := parseManifest(string(text))
	return string(text), entries, err
}

// checkMigrations compares the migrations with the manifest.
func checkMigrations(tree fs.FS) ([]string, error) {
	files, err := migrationsIn(tree)
	if err != nil {
		return nil, err
	}
	_, recorded, err := readManifest(tree)
	if err != nil {
		return nil, err
	}
	sums := make(map[string]string, len(files))
	for _, file := range files {
		sums[file.name] = file.sum
	}
	var findings []string
	last := ""
	for _, entry := range recorded {
		switch sum, ok := sums[entry.name]; {
		case !ok:
			findings = append(findings, fmt.Sprintf("migrations/%s was deleted: bring it back, and undo what it does in a new migration", entry.name))
		case sum != entry.sum:
			findings = append(findings, fmt.Sprintf("migrations/%s was edited after it was recorded: bring it back, and make the change in a new migration"+
				" (if it was never published: delete its line in %s and run make generate)", entry.name, manifestPath))
		}
		if entry.name <= last {
			findings = append(findings, fmt.Sprintf("migrations/%s comes after %s in the manifest but runs before it: give it the next number", entry.name, last))
		}
		last = entry.name
		delete(sums, entry.name)
	}
	for _, file := range files {
		if _, ok := sums[file.name]; ok {
			findings = append(findings, fmt.Sprintf("migrations/%s is not recorded: run make generate and commit %s", file.name, manifestPath))
		}
	}
	return findings, nil
}

// checkPublished compares the manifest with that of the newest release, and with that of the point
// where the work left the upstream branch. The manifest must begin with both. A clone that knows
// neither has nothing to compare.
func checkPublished(ctx context.Context, git runGit, tree fs.FS) ([]string, error) {
	text, _, err := readManifest(tree)
	if err != nil {
		return nil, err
	}
	var findings []string
	for _, published := range publishedCommits(ctx, git) {
		before, err := git(ctx, "show", published+":"+manifestPath)
		if err != nil {
			continue // There was no manifest yet.
		}
		if !strings.HasPrefix(text, before) {
			findings = append(findings, fmt.Sprintf("%s lost or changed an entry that commit %.12s published: entries are only appended", manifestPath, published))
		}
	}
	return findings, nil
}

func publishedCommits(ctx context.Context, git runGit) []string {
	var commits []string
	if tag, err := git(ctx, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"); err == nil {
		commits = append(commits, strings.TrimSpace(tag))
	}
	for _, upstream := range []string{"origin/HEAD", "origin/main"} {
		if base, err := git(ctx, "merge-base", "HEAD", upstream); err == nil {
			return append(commits, strings.TrimSpace(base))
		}
	}
	return commits
}

// recordMigrations appends to the manifest the migrations that it does not contain.
func recordMigrations(dir string) error {
	tree := os.DirFS(dir)
	files, err := migrationsIn(tree)
	if err != nil {
		return err
	}
	text, recorded, err := readManifest(tree)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(recorded))
	for _, entry := range recorded {
		known[entry.name] = true
	}
	for _, file := range files {
		if !known[file.name] {
			text += file.sum + "  " + file.name + "\n"
		}
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(manifestPath)), []byte(text), 0o644); err != nil {
		return fmt.Errorf("record migrations: %w", err)
	}
	return nil
}
