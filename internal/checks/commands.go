package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// command begins a line that readers of a page are to run in a shell.
var command = regexp.MustCompile(`^\s*(?:\$ )?(?:make [a-z]|(?:bin/)?tocsin [a-z]|bin/devstack |curl |docker |podman |kubectl |helm |go (?:run|test) |npm )`)

// checkCommands refuses blocks with shell commands that the test of the commands of the documentation does not see, because
// they are not marked as sh.
func checkCommands(tree fs.FS, tracked []string) ([]string, error) {
	var findings []string
	for _, name := range tracked {
		if path.Ext(name) != ".md" || name == "CHANGELOG.md" {
			continue
		}
		text, err := readTracked(tree, name)
		if err != nil {
			return nil, err
		}
		prose := proseLines(string(text))
		language := ""
		for number, line := range strings.Split(string(text), "\n") {
			start := strings.TrimLeft(line, " ")
			switch {
			case prose[number] == line && line != "":
				language = ""
			case strings.HasPrefix(start, "```") || strings.HasPrefix(start, "~~~"):
				language = strings.TrimSpace(start[3:])
			case !strings.HasPrefix(language, "sh") && command.MatchString(line):
				findings = append(findings, fmt.Sprintf("%s:%d: a command in a block that is not marked as sh, which a test runs, or as sh example", name, number+1))
			}
		}
	}
	return findings, nil
}

var (
	// namedTest is what a command or a text calls a test or a benchmark.
	namedTest   = regexp.MustCompile(`\b(?:RUN|BENCH)=([A-Z]\w+)|\b((?:Test|Benchmark)[A-Z]\w+)`)
	definedTest = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`)
)

// checkNamedTests refuses names of tests and benchmarks, in pages and in the Makefile, that no test has. A command with
// such a name runs nothing, and succeeds.
func checkNamedTests(tree fs.FS, tracked []string) ([]string, error) {
	var defined strings.Builder
	for _, name := range tracked {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := readTracked(tree, name)
		if err != nil {
			return nil, err
		}
		for _, match := range definedTest.FindAllSubmatch(text, -1) {
			defined.WriteString(string(match[1]) + "\n")
		}
	}
	var findings []string
	for _, name := range tracked {
		if path.Ext(name) != ".md" && name != "Makefile" {
			continue
		}
		text, err := readTracked(tree, name)
		if err != nil {
			return nil, err
		}
		for number, line := range strings.Split(string(text), "\n") {
			for _, match := range namedTest.FindAllStringSubmatch(line, -1) {
				if called := match[1] + match[2]; !strings.Contains(defined.String(), called) {
					findings = append(findings, fmt.Sprintf("%s:%d names the test %s, which there is not", name, number+1, called))
				}
			}
		}
	}
	return slices.Compact(findings), nil
}
