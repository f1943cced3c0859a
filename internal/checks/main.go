// Command checks finds what neither the compiler nor the linter can find. `make verify` runs it. It checks that
//
//   - migrations are only appended;
//   - statements of SQL are short;
//   - lock files contain no address;
//   - no text refers to places outside the repository;
//   - texts use the usual words;
//   - links and pictures of pages are not broken, nor links of the site in its sidebar and on its first page;
//   - blocks of commands in pages are run by a test, or marked as examples;
//   - tests and benchmarks that pages name exist;
//   - screenshots show labels that the web application still has, and are not much older than it;
//   - the README and the continuous integration run the same tests;
//   - the chart accepts the existing settings;
//   - what is said and tested about earlier programs fits the schema.
//
// Each check is a function of the files in the working tree. It returns one sentence for each
// problem, and repairs nothing. There are two exceptions. `checks record` adds new migrations to the
// manifest, and never changes an existing entry. `checks labels` ends `make pictures`: it completes the
// manifest of the screenshots.
//
// `checks tests FILE -- COMMAND…` runs commands that print what `go test -json` does, side by side. Each of them comes
// after its own --. It ends with the list of the slowest tests, and writes to the file which failed tests deserve a second
// try alone, on a machine that does nothing else: few, and none with a data race or a panic; all tests of a package that
// ran out of time. The continuous integration runs those again and names each that passed then.
//
// The tests of this package check the import map of everything that the product links.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 3 && args[0] == "tests" {
		again, err := runTests(ctx, splitCommands(args[2:]), os.Stdout)
		return errors.Join(err, os.WriteFile(args[1], []byte(again), 0o600))
	}
	dir, err := repositoryRoot()
	if err != nil {
		return err
	}
	tree := os.DirFS(dir)
	switch strings.Join(args, " ") {
	case "record":
		return recordMigrations(dir)
	case "labels":
		return recordLabels(dir)
	case "":
	default:
		return errors.New("usage: checks [record | labels | tests FILE -- COMMAND]")
	}

	git := gitIn(dir)
	tracked, err := trackedFiles(ctx, git)
	if err != nil {
		return err
	}
	var findings []string
	for _, check := range []func() ([]string, error){
		func() ([]string, error) { return checkMigrations(tree) },
		func() ([]string, error) { return checkPublished(ctx, git, tree) },
		func() ([]string, error) { return checkStatements(tree) },
		func() ([]string, error) { return checkLockFiles(tree, tracked) },
		func() ([]string, error) { return checkTexts(tree, tracked) },
		func() ([]string, error) { return checkWords(tree, tracked) },
		func() ([]string, error) { return checkLinks(tree, tracked) },
		func() ([]string, error) { return checkCommands(tree, tracked) },
		func() ([]string, error) { return checkNamedTests(tree, tracked) },
		func() ([]string, error) { return checkScreenshots(ctx, git, tracked) },
		func() ([]string, error) { return checkLabels(tree, tracked) },
		func() ([]string, error) { return checkTestCommand(tree) },
		func() ([]string, error) { return checkChartSettings(tree) },
		func() ([]string, error) { return checkUpdatingPage(tree) },
		func() ([]string, error) { return checkBeside(ctx, git, tree) },
	} {
		found, err := check()
		if err != nil {
			return err
		}
		findings = append(findings, found...)
	}
	if len(findings) > 0 {
		return errors.New(strings.Join(findings, "\n"))
	}
	return nil
}

// repositoryRoot is the nearest directory, from the working directory upwards, that contains
// go.mod.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the repository: no go.mod here or above")
		}
		dir = parent
	}
}

// runGit runs git in the repository and returns what it prints.
type runGit func(ctx context.Context, args ...string) (string, error)

func gitIn(dir string) runGit {
	return func(ctx context.Context, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(failed.Stderr)))
		}
		if err != nil {
			return "", fmt.Errorf("git %s: %w", args[0], err)
		}
		return string(out), nil
	}
}

// trackedFiles returns the names of the files that git tracks and that are in the working tree,
// relative to its root.
func trackedFiles(ctx context.Context, git runGit) ([]string, error) {
	out, err := git(ctx, "ls-files", "-z", "--cached")
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), nil
}

// readTracked reads a tracked file. A file that is deleted but not yet committed, or is not a
// regular file, reads as empty.
func readTracked(tree fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(tree, name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a tracked file: %w", err)
	}
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, fmt.Errorf("read a tracked file: %w", err)
	}
	return text, nil
}
