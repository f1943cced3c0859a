package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// npmPackage is the description of a package in package.json, and in a lock file.
type npmPackage struct {
	Resolved             string            `json:"resolved"`
	Integrity            string            `json:"integrity"`
	Link                 bool              `json:"link"`
	Dependencies         map[string]string `json:"dependencies"`
	DevDependencies      map[string]string `json:"devDependencies"`
	OptionalDependencies map[string]string `json:"optionalDependencies"`
}

// asksAs reports whether two packages depend on the same versions.
func (p npmPackage) asksAs(other npmPackage) bool {
	return maps.Equal(p.Dependencies, other.Dependencies) &&
		maps.Equal(p.DevDependencies, other.DevDependencies) &&
		maps.Equal(p.OptionalDependencies, other.OptionalDependencies)
}

// checkLockFiles refuses npm lock files that contain download addresses, which would bind every
// clone to one registry, that lack a hash, or that were made for another package.json than the one
// next to them.
func checkLockFiles(tree fs.FS, tracked []string) ([]string, error) {
	var findings []string
	for _, name := range tracked {
		if path.Base(name) != "package-lock.json" {
			continue
		}
		var lock struct {
			Packages map[string]npmPackage `json:"packages"`
		}
		var manifest npmPackage
		if err := readJSON(tree, name, &lock); errors.Is(err, fs.ErrNotExist) {
			continue // Deleted, and not yet committed.
		} else if err != nil {
			return nil, err
		}
		if err := readJSON(tree, path.Join(path.Dir(name), "package.json"), &manifest); err != nil {
			return nil, err
		}
		if !manifest.asksAs(lock.Packages[""]) {
			findings = append(findings, name+" does not fit package.json: run npm install beside it and commit both")
		}
		var addressed, unpinned []string
		for key, pkg := range lock.Packages {
			if strings.Contains(pkg.Resolved, "://") {
				addressed = append(addressed, key)
			}
			if key != "" && !pkg.Link && pkg.Integrity == "" {
				unpinned = append(unpinned, key)
			}
		}
		if len(addressed) > 0 {
			findings = append(findings, fmt.Sprintf("%s holds download addresses (%d, such as %s):"+
				" set omit-lockfile-registry-resolved=true in the .npmrc beside it and lock again", name, len(addressed), slices.Min(addressed)))
		}
		if len(unpinned) > 0 {
			findings = append(findings, fmt.Sprintf("%s pins no hash for %d packages, such as %s", name, len(unpinned), slices.Min(unpinned)))
		}
	}
	return findings, nil
}

func readJSON(tree fs.FS, name string, into any) error {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return fmt.Errorf("check lock files: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("check lock files: read %s: %w", name, err)
	}
	return nil
}

// checkTexts refuses tracked files that refer to files outside the repository, which no other clone
// has.
func checkTexts(tree fs.FS, tracked []string) ([]string, error) {
	// The texts are composed here, so that this file does not contain them either.
	outside := []string{".." + "/shared", ".." + "/.library", "/work" + "/shared", "/work" + "/.library"}
	var findings []string
	for _, name := range tracked {
		text, err := readTracked(tree, name)
		if err != nil {
			return nil, err
		}
		for _, words := range outside {
			if before, _, names := bytes.Cut(text, []byte(words)); names {
				line := 1 + bytes.Count(before, []byte("\n"))
				findings = append(findings, fmt.Sprintf("%s:%d names %q, which is not part of this repository", name, line, words))
			}
		}
	}
	return findings, nil
}

// checkTestCommand checks that the README's command for the tests is the one that .ci/run runs.
func checkTestCommand(tree fs.FS) ([]string, error) {
	documented, err := find(tree, "README.md", regexp.MustCompile(`(?m)^(make test)\b(?:\s+#.*)?\s*$`))
	if err != nil {
		return nil, err
	}
	done, err := find(tree, ".ci/run", regexp.MustCompile(`(?m)^test_command='([^']+)'$`))
	if err != nil {
		return nil, err
	}
	switch {
	case documented == "":
		return []string{"README.md does not give the command that runs the tests on a line of its own: make test"}, nil
	case done != documented:
		return []string{fmt.Sprintf(".ci/run runs %q, README.md says %q: they must be the same", done, documented)}, nil
	}
	return nil, nil
}

func find(tree fs.FS, name string, pattern *regexp.Regexp) (string, error) {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return "", fmt.Errorf("find the test command: %w", err)
	}
	match := pattern.FindSubmatch(text)
	if match == nil {
		return "", nil
	}
	return string(match[1]), nil
}
