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
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// In HTML, as of pictures for both themes.
	htmlTarget  = regexp.MustCompile(`\s(?:href|src|srcset)="([^"\s]+)"`)
	headingLine = regexp.MustCompile(`^#{1,6}\s+(.*)$`)
)

// siteTargets are links of the documentation site to its pages, by the file that has them: the buttons and features of
// the first page, and navigation and sidebar.
func siteTargets() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"docs/index.md":                   regexp.MustCompile(`\blink: *['"]?([^\s,}'"]+)`),
		"docs/site/.vitepress/config.mts": regexp.MustCompile(`\bpage\((?:'[^']*'|"[^"]*"), *['"]([^'"]+)['"]`),
	}
}

// checkLinks refuses links and pictures in Markdown that lead to files that are not in the repository, or to headings
// that do not exist, and links of the documentation site to pages that do not. It does not follow links to other sites.
func checkLinks(tree fs.FS, tracked []string) ([]string, error) {
	var findings []string
	site := siteTargets()
	for _, name := range tracked {
		if path.Ext(name) != ".md" && site[name] == nil {
			continue
		}
		text, err := readTracked(tree, name)
		if err != nil {
			return nil, err
		}
		if path.Ext(name) == ".md" {
			findings = append(findings, brokenLinks(tree, name, proseLines(string(text)))...)
		}
		if target := site[name]; target != nil && text != nil {
			findings = append(findings, brokenSiteLinks(tree, name, strings.Split(string(text), "\n"), target)...)
		}
	}
	return findings, nil
}

func brokenLinks(tree fs.FS, page string, lines []string) (findings []string) {
	for number, line := range lines {
		line = inlineCode.ReplaceAllString(line, "``")
		for _, link := range append(linkTarget.FindAllStringSubmatch(line, -1), htmlTarget.FindAllStringSubmatch(line, -1)...) {
			if err := followLink(tree, page, link[1]); err != nil {
				findings = append(findings, fmt.Sprintf("%s:%d: the link %s: %v", page, number+1, link[1], err))
			}
		}
	}
	return findings
}

func brokenSiteLinks(tree fs.FS, name string, lines []string, target *regexp.Regexp) (findings []string) {
	found := 0
	for number, line := range lines {
		for _, link := range target.FindAllStringSubmatch(line, -1) {
			found++
			if !strings.HasPrefix(link[1], "/") {
				continue
			}
			if err := followLink(tree, "docs/index.md", pageOf(link[1])); err != nil {
				findings = append(findings, fmt.Sprintf("%s:%d: the link %s: %v", name, number+1, link[1], err))
			}
		}
	}
	if found == 0 {
		findings = append(findings, name+" has no link to a page of the site: internal/checks does not know its form")
	}
	return findings
}

// pageOf returns the Markdown file of an address of the site, from the folder docs. See docs/site/build.mjs and the
// rewrites of its configuration for those that are elsewhere.
func pageOf(address string) string {
	page, heading, named := strings.Cut(strings.TrimPrefix(address, "/"), "#")
	switch {
	case page == "contributing" || page == "changelog":
		page = "../" + strings.ToUpper(page) + ".md"
	case page == "":
		page = "index.md"
	case strings.HasSuffix(page, "/"):
		page += "README.md"
	default:
		page += ".md"
	}
	if named {
		page += "#" + heading
	}
	return page
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
