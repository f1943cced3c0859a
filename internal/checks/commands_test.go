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
