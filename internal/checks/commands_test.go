package main

import (
	"testing"
	"testing/fstest"
)

func TestCommandsAreMarked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ page, want string }{
		"run":         {page: "```sh\nmake run\n```\n"},
		"example":     {page: "1. First\n\n   ```sh example\n   tocsin serve\n   ```\n"},
		"prose":       {page: "make run starts everything.\n"},
		"other block": {page: "```\nRULE  VERDICT\n```\n\n```yaml\nrun: make test\n```\n"},
		"not marked":  {page: "Text.\n\n```\nmake bench\n```\n", want: "docs/page.md:4: a command"},
		"bash":        {page: "```bash\ntocsin serve\n```\n", want: "docs/page.md:2: a command"},
		"indented":    {page: "- Run\n\n  ```\n  kubectl get pods\n  ```\n", want: "docs/page.md:4: a command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := checkCommands(fstest.MapFS{"docs/page.md": {Data: []byte(test.page)}}, []string{"docs/page.md"})
			if err != nil {
				t.Fatal(err)
			}
			expectFinding(t, found, test.want)
		})
	}
}

func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ page, want string }{
		"a part of a name": {page: "`make test-go RUN=TestFirst`, `make bench-go BENCH=Drain`"},
		"a whole name":     {page: "`TestFirstThing` holds this."},
		"none":             {page: "Text.\n`make test-go RUN=TestSecond`", want: "page.md:2 names the test TestSecond"},
		"no benchmark":     {page: "`make bench-go BENCH=Storm`", want: "page.md:1 names the test Storm"},
		"named in prose":   {page: "`TestThird` holds this.", want: "page.md:1 names the test TestThird"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := checkNamedTests(fstest.MapFS{
				"page.md":   {Data: []byte(test.page)},
				"a_test.go": {Data: []byte("package a\n\nfunc TestFirstThing(t *testing.T) {}\n\nfunc BenchmarkDrain(b *testing.B) {}\n")},
			}, []string{"page.md", "a_test.go", "deleted.md"})
			if err != nil {
				t.Fatal(err)
			}
			expectFinding(t, found, test.want)
		})
	}
}
