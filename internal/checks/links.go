package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var (
	errNoHeading = errors.New("no such heading")
	inlineCode   = regexp.MustCompile("`[^`]*`")
	inlineLink   = regexp.MustCompile(`\[([^\]]*)\]\([^)\s]+\)`)
	// The text of a link may begin on the previous line.
	linkTarget  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingLine = regexp.MustCompile(`^#{1,6}\s+(.*)$`)
)

// checkLinks refuses links in Markdown to files that are not in the repository, or to headings that
// do not exist. It does not follow links to other sites.
func checkLinks(tree fs.FS, tracked []string) ([]string, error) {
	var findings []string
	for _, name := range tracked {
		if path.Ext(name) != ".md" {
			continue
		}
		text, err := readTracked(tree, name)
		if err != nil {
			return nil, err
		}
		for number, line := range proseLines(string(text)) {
			for _, link := range linkTarget.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, "``"), -1) {
				if err := followLink(tree, name, link[1]); err != nil {
					findings = append(findings, fmt.Sprintf("%s:%d: the link %s: %v", name, number+1, link[1], err))
				}
			}
		}
	}
	return findings, nil
}

// followLink returns why a link of a page is broken.
func followLink(tree fs.FS, page, link string) error {
	if strings.Contains(link, ":") || strings.HasPrefix(link, "/") {
		return nil
	}
	file, heading, named := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = path.Join(path.Dir(page), file)
	}
	if _, err := fs.Stat(tree, target); err != nil {
		return err
	}
	if !named || path.Ext(target) != ".md" {
		return nil
	}
	text, err := fs.ReadFile(tree, target)
	if err != nil {
		return err
	}
	if !slices.Contains(headings(string(text)), heading) {
		return errNoHeading
	}
	return nil
}

// proseLines returns the lines of a page; lines of code blocks are empty.
func proseLines(text string) []string {
	lines := strings.Split(text, "\n")
	fence := ""
	for i, line := range lines {
		start := strings.TrimLeft(line, " ")
		switch {
		case fence == "" && (strings.HasPrefix(start, "```") || strings.HasPrefix(start, "~~~")):
			fence = start[:3]
		case fence == "":
			continue
		case strings.HasPrefix(start, fence):
			fence = ""
		}
		lines[i] = ""
	}
	return lines
}

// headings returns the anchors of the headings of a page, in the form of GitHub and docs/site.
func headings(text string) []string {
	var names []string
	for _, line := range proseLines(text) {
		match := headingLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		words := inlineLink.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), "$1")
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.In(r, unicode.L, unicode.N, unicode.M):
				return r
			}
			return -1
		}, words)
		// A repeated heading.
		first := name
		for n := 1; slices.Contains(names, name); n++ {
			name = first + "-" + strconv.Itoa(n)
		}
		names = append(names, name)
	}
	return names
}
