//go:build cluster || update

package deploy

import (
	"os"
	"strings"
	"testing"
)

// printed returns the arguments of the last command of docs/install.md that begins with the given
// text.
func printed(t *testing.T, command string) (args []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), command+" "); found {
			rest, _, _ = strings.Cut(rest, " #")
			args = strings.Fields(rest)
		}
	}
	if args == nil {
		t.Fatalf("docs/install.md prints no %s", command)
	}
	return args
}
