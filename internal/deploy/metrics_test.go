//go:build metrics

package deploy

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestTheMetricsAreThoseOfTheProgram searches for each metric in the source of the product.
func TestTheMetricsAreThoseOfTheProgram(t *testing.T) {
	var source strings.Builder
	root := os.DirFS("../../internal/app")
	names, err := fs.Glob(root, "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			source.Write(text)
		}
	}
	for _, name := range Metrics() {
		if strings.HasPrefix(name, "tocsin_") && !strings.Contains(source.String(), `"`+name+`"`) {
			t.Errorf("internal/app has no metric %s", name)
		}
	}
}
