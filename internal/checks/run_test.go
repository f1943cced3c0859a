package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestCommandsAreDistinguished(t *testing.T) {
	for _, c := range []struct {
		args string
		want [][]string
	}{
		{"-- one", [][]string{{"one"}}},
		{"-- one -a -- two", [][]string{{"one", "-a"}, {"two"}}},
		{"one", nil},
	} {
		if got := splitCommands(strings.Fields(c.args)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
}

func TestCommandsRunSideBySide(t *testing.T) {
	dir := t.TempDir()
	// Each waits for the other, and the second fails.
	meet := func(own, other, result string) []string {
		return []string{"sh", "-c", `touch "$0/` + own + `"; while ! [ -e "$0/` + other + `" ]; do sleep 0.01; done; ` + result, dir}
	}
	pass := `echo '{"Action":"output","Package":"a","Output":"ok  \ta\t1.0s\n"}'`
	fail := `echo '{"Action":"fail","Package":"b","Test":"TestTwo","Elapsed":2}'; echo '{"Action":"fail","Package":"b"}'; exit 1`
	var out bytes.Buffer
	again, err := runTests(t.Context(), [][]string{meet("one", "two", pass), meet("two", "one", fail)}, &out)
	if err == nil || again != "b ^(TestTwo)$\n" || !strings.Contains(out.String(), "ok  \ta\t1.0s\n") {
		t.Errorf("%q is tried again, %v: %s", again, err, &out)
	}
	if _, err := runTests(t.Context(), [][]string{{"sh", "-c", pass}}, &out); err != nil {
		t.Error(err)
	}
}

// TestWhatStartsGoroutinesIsTestedForRaces compares the list in the Makefile with the packages of the product that start
// goroutines. Development tools are left out, and the simulation, which does not run with the race detector.
func TestWhatStartsGoroutinesIsTestedForRaces(t *testing.T) {
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	tree := os.DirFS(root)
	makefile, err := fs.ReadFile(tree, "Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^raced = (.*)$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no list of packages to test for races")
	}
	raced := strings.Fields(string(list[1]))
	covered := func(pkg string) bool {
		return slices.ContainsFunc(raced, func(pattern string) bool {
			all, under := strings.CutSuffix(pattern, "/...")
			return pattern == "./"+pkg || under && strings.HasPrefix("./"+pkg+"/", all+"/")
		})
	}
	// What tests of other packages use is run by these.
	elsewhere := []string{"internal/simulate", "internal/bustest", "internal/mailtest", "internal/checks"}
	starts := map[string]bool{}
	for _, top := range []string{"alerts", "api", "client", "cmd/tocsin", "cursor", "evaluator", "internal", "migrations", "notify", "rules", "web"} {
		err := fs.WalkDir(tree, top, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				_, err := fs.Stat(tree, path.Join(name, "go.mod"))
				if err == nil || entry.Name() == "node_modules" {
					return fs.SkipDir
				}
				return nil
			}
			pkg := path.Dir(name)
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || starts[pkg] {
				return nil
			}
			source, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			starts[pkg] = startsGoroutines(file)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for pkg, does := range starts {
		if does && !covered(pkg) && !slices.Contains(elsewhere, pkg) {
			t.Errorf("%s starts goroutines: name it in raced of the Makefile", pkg)
		}
	}
	for _, pkg := range []string{"internal/app", "api", "evaluator", "notify/dispatch"} {
		if !starts[pkg] {
			t.Errorf("%s starts no goroutines: this test does not see them", pkg)
		}
	}
}

// startsGoroutines says whether a file has a go statement, or calls Go of a group.
func startsGoroutines(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if of, ok := n.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "Go" {
				found = true
			}
		}
		return !found
	})
	return found
}
