package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// labelsPath is the manifest of the screenshots of the web application. `make pictures` writes it.
const labelsPath = "docs/pictures/labels.json"

// labelsLeast is how many labels a screenshot shows at least: with fewer, they were not read.
const labelsLeast = 10

// picture is a screenshot in the manifest.
type picture struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// Sources are the folders of web/src that the page is built of.
	Sources []string `json:"sources"`
	// Labels are the visible texts of headings, buttons, fields and columns that occur in the sources: data does not.
	Labels []string `json:"labels"`
}

// checkLabels refuses screenshots that are not those of the manifest, and those that show a label that no longer
// occurs in the sources of their page: they show a page that looks different now.
func checkLabels(tree fs.FS, tracked []string) ([]string, error) {
	pictures, err := readPictures(tree)
	if err != nil {
		return nil, err
	}
	var findings []string
	for _, name := range tracked {
		if !screenshot(name) || slices.ContainsFunc(pictures, func(p picture) bool { return p.Name == path.Base(name) }) {
			continue
		}
		findings = append(findings, fmt.Sprintf("%s is not in %s: %s", name, labelsPath, takeAgain))
	}
	for _, p := range pictures {
		name := path.Join(path.Dir(labelsPath), p.Name)
		sum, err := sumOf(tree, name)
		if err != nil {
			return nil, err
		}
		source, err := sourceOf(tree, p.Sources)
		if err != nil {
			return nil, err
		}
		gone := slices.DeleteFunc(slices.Clone(p.Labels), func(label string) bool { return occurs(source, label) })
		switch {
		case sum != p.SHA256:
			findings = append(findings, fmt.Sprintf("%s is not the picture whose labels are in %s: %s", name, labelsPath, takeAgain))
		case len(p.Labels) < labelsLeast:
			findings = append(findings, fmt.Sprintf("%s has only %d labels in %s: %s", name, len(p.Labels), labelsPath, takeAgain))
		case len(gone) > 0:
			findings = append(findings, fmt.Sprintf("%s shows %q, which is no longer in web/src: %s", name, gone, takeAgain))
		}
	}
	return findings, nil
}

// recordLabels removes from the manifest what is not in the sources, which is data, and adds the hashes of the pictures.
func recordLabels(dir string) error {
	tree := os.DirFS(dir)
	pictures, err := readPictures(tree)
	if err != nil {
		return err
	}
	for i := range pictures {
		p := &pictures[i]
		if p.SHA256, err = sumOf(tree, path.Join(path.Dir(labelsPath), p.Name)); err != nil {
			return err
		}
		source, err := sourceOf(tree, p.Sources)
		if err != nil {
			return err
		}
		p.Labels = slices.DeleteFunc(p.Labels, func(label string) bool { return !wordy(label) || !occurs(source, label) })
		slices.Sort(p.Labels)
		p.Labels = slices.Compact(p.Labels)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(pictures); err != nil {
		return fmt.Errorf("record labels: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(labelsPath)), text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("record labels: %w", err)
	}
	return nil
}

// wordy reports whether a label has two letters at least, and no digit. Marks and numbers are data, or on every page.
func wordy(label string) bool {
	letters := 0
	for _, r := range label {
		if unicode.IsDigit(r) {
			return false
		}
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters > 1
}

// readPictures returns the manifest; nothing where there is none.
func readPictures(tree fs.FS) (pictures []picture, err error) {
	if err := readJSON(tree, labelsPath, &pictures); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return pictures, nil
}

// sumOf returns the SHA-256 of a file; "" where there is none.
func sumOf(tree fs.FS, name string) (string, error) {
	content, err := readTracked(tree, name)
	if err != nil || content == nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(content)), nil
}

// sourceOf returns the text of the web application in some folders of web/src, without its tests. Space between words
// is a single blank, as on the page.
func sourceOf(tree fs.FS, folders []string) (string, error) {
	var source strings.Builder
	for _, folder := range folders {
		err := fs.WalkDir(tree, path.Join("web/src", folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasPrefix(path.Ext(name), ".ts") || strings.Contains(path.Base(name), ".test.") {
				return err
			}
			text, err := fs.ReadFile(tree, name)
			source.WriteString(strings.Join(strings.Fields(string(text)), " ") + "\n")
			return err
		})
		if err != nil {
			return "", fmt.Errorf("read the sources of a picture: %w", err)
		}
	}
	return source.String(), nil
}

// occurs reports whether a label is all of a string, or all of a text between tags and expressions.
func occurs(source, label string) bool {
	const before, after = "\"'`>}", "\"'`<{"
	for rest := source; label != ""; {
		at := strings.Index(rest, label)
		if at < 0 {
			return false
		}
		left, right := strings.TrimRight(rest[:at], " "), strings.TrimLeft(rest[at+len(label):], " ")
		if left != "" && right != "" && strings.Contains(before, left[len(left)-1:]) && strings.Contains(after, right[:1]) {
			return true
		}
		rest = rest[at+1:]
	}
	return false
}
