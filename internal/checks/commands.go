package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
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
