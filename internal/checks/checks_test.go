package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestMigrationsAreOnlyAppended(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string // part of the only finding, "" for no finding
	}{
		"nothing changed": {change: func(*testing.T, string) {}},
		"appended and recorded": {change: func(t *testing.T, dir string) {
			t.Helper()
			write(t, dir, "migrations/00003_more.sql", "SELECT 3;")
			record(t, dir)
		}},
		"appended, not recorded": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				write(t, dir, "migrations/00003_more.sql", "SELECT 3;")
			},
			want: "migrations/00003_more.sql is not recorded",
		},
		"edited": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				write(t, dir, "migrations/00001_first.sql", "SELECT 10;")
			},
			want: "migrations/00001_first.sql was edited",
		},
		"edited, and recording does not heal it": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				write(t, dir, "migrations/00001_first.sql", "SELECT 10;")
				record(t, dir)
			},
			want: "migrations/00001_first.sql was edited",
		},
		"deleted": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				if err := os.Remove(filepath.Join(dir, "migrations/00002_second.sql")); err != nil {
					t.Fatal(err)
				}
			},
			want: "migrations/00002_second.sql was deleted",
		},
		"put before one that ran": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				write(t, dir, "migrations/00001_late.sql", "SELECT 3;")
				record(t, dir)
			},
			want: "runs before it",
		},
		"edited and recorded again after it was published": {
			change: func(t *testing.T, dir string) {
				t.Helper()
				write(t, dir, "migrations/00002_second.sql", "SELECT 20;")
				manifest := filepath.Join(dir, manifestPath)
				text, err := os.ReadFile(manifest)
				if err != nil {
					t.Fatal(err)
				}
				first, _, _ := strings.Cut(string(text), "\n")
				write(t, dir, manifestPath, first+"\n")
				record(t, dir)
			},
			want: "lost or changed an entry",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "go.mod", "module example\n")
			write(t, dir, "migrations/00001_first.sql", "SELECT 1;")
			write(t, dir, "migrations/00002_second.sql", "SELECT 2;")
			record(t, dir)
			git := repository(t, dir)
			for _, args := range [][]string{
				{"add", "."},
				{"commit", "-q", "-m", "first"},
				{"tag", "v1.0.0"},
			} {
				if _, err := git(t.Context(), args...); err != nil {
					t.Fatal(err)
				}
			}
			test.change(t, dir)

			found, err := checkMigrations(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			published, err := checkPublished(t.Context(), git, os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			expectFinding(t, append(found, published...), test.want)
		})
	}
}

func TestLockFilesNameNoAddress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lock string
		want string
	}{
		"hashes alone": {lock: `{"packages": {"": {"dependencies": {"a": "1.0.0"}}, "node_modules/a": {"version": "1.0.0", "integrity": "sha512-x"}}}`},
		"an address": {
			lock: `{"packages": {"": {"dependencies": {"a": "1.0.0"}}, "node_modules/a": {"resolved": "https://example.org/a.tgz", "integrity": "sha512-x"}}}`,
			want: "web/package-lock.json holds download addresses (1, such as node_modules/a)",
		},
		"made for another package.json": {
			lock: `{"packages": {"": {"dependencies": {"a": "0.9.0"}}, "node_modules/a": {"integrity": "sha512-x"}}}`,
			want: "does not fit package.json",
		},
		"no hash": {
			lock: `{"packages": {"": {"dependencies": {"a": "1.0.0"}}, "node_modules/a": {"version": "1.0.0"}}}`,
			want: "pins no hash for 1 packages",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{
				"web/package-lock.json": {Data: []byte(test.lock)},
				"web/package.json":      {Data: []byte(`{"name": "x", "dependencies": {"a": "1.0.0"}}`)},
			}
			found, err := checkLockFiles(tree, []string{"web/package-lock.json", "deleted/package-lock.json"})
			if err != nil {
				t.Fatal(err)
			}
			expectFinding(t, found, test.want)
		})
	}
}

func TestTextsStayInside(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"inside.md":  {Data: []byte("See ../docs and the shared library.\n")},
		"outside.md": {Data: []byte("Read this.\nSee .." + "/shared/design.md\n")},
	}
	found, err := checkTexts(tree, []string{"inside.md", "outside.md", "deleted.md"})
	if err != nil {
		t.Fatal(err)
	}
	expectFinding(t, found, "outside.md:2 names")
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		page, want string
	}{
		"page, folder, program": {page: "[a](other.md), [b](../docs) and\n[what is\nthere](../main.go)\n"},
		"headings":              {page: "# Here\n[a](#here) [b](other.md#is-anything-missing-a-link_1) [c](other.md#twice-1)\n"},
		"elsewhere":             {page: "[a](https://example.com/x.md#y) [b](mailto:x@example.com) [c](/site)\n"},
		"code":                  {page: "`[a](none.md)`\n```sh\n[a](none.md)\n```\n"},
		"no file":               {page: "One.\n[a](none.md)\n", want: "docs/page.md:2: the link none.md"},
		"no heading here":       {page: "[a](#there)\n", want: "the link #there: no such heading"},
		"no heading there":      {page: "[a](other.md#code)\n", want: "the link other.md#code: no such heading"},
		"behind code":           {page: "```\n# x\n```\n[a](#x)\n", want: "docs/page.md:4"},
		"pictures":              {page: "![a](../main.go) <img alt=\"b\" src=\"other.md\">\n  <source srcset=\"../main.go\">\n`<img src=\"none.webp\">`\n"},
		"no picture":            {page: "![a](none.svg)\n", want: "docs/page.md:1: the link none.svg"},
		"no picture in HTML":    {page: "\n<img alt=\"a\" src=\"none.webp\">\n", want: "docs/page.md:2: the link none.webp"},
		"no dark picture":       {page: "<source media=\"x\" srcset=\"none.webp\">\n", want: "docs/page.md:1: the link none.webp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := checkLinks(fstest.MapFS{
				"main.go":       {},
				"docs/page.md":  {Data: []byte(test.page)},
				"docs/other.md": {Data: []byte("## Is `anything` missing? [A link](page.md)_1\n## Twice\n## Twice\n```\n# Code\n```\n")},
			}, []string{"main.go", "docs/page.md"})
			if err != nil {
				t.Fatal(err)
			}
			expectFinding(t, found, test.want)
		})
	}
}

func TestLinksOfTheSiteLeadSomewhere(t *testing.T) {
	t.Parallel()
	const index, config = "docs/index.md", "docs/site/.vitepress/config.mts"
	right := map[string]string{
		index:  "---\nactions:\n    - { theme: alt, text: Guide, link: /guides/first }\nfeatures:\n  - { title: A, link: /other#here, linkText: More }\n---\n",
		config: "nav: [\n  page('Guide', '/guides/first'),\n  { ...page(\"All\", '/decisions/') },\n  page('Project', '/contributing'), page('Start', '/'), page('Else', 'https://example.com'),\n]\n",
	}
	for name, test := range map[string]struct{ file, from, to, want string }{
		"as they are":                 {file: index},
		"a button":                    {file: index, from: "/guides/first", to: "/guides/last", want: "docs/index.md:3: the link /guides/last"},
		"a feature":                   {file: index, from: "/other", to: "/another", want: "docs/index.md:5: the link /another#here"},
		"a heading of a feature":      {file: index, from: "#here", to: "#there", want: "the link /other#there: no such heading"},
		"an entry of the sidebar":     {file: config, from: "/guides/first", to: "/guides/last", want: config + ":2: the link /guides/last"},
		"a folder":                    {file: config, from: "/decisions/", to: "/decided/", want: config + ":3: the link /decided/"},
		"a page outside docs":         {file: config, from: "/contributing", to: "/changelog", want: config + ":4: the link /changelog"},
		"entries in an unknown form":  {file: config, from: "page(", to: "entry(", want: config + " has no link to a page of the site"},
		"a first page without a link": {file: index, from: "link:", to: "to:", want: "docs/index.md has no link to a page of the site"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{"docs/guides/first.md": {}, "docs/other.md": {Data: []byte("# Here\n")}, "docs/decisions/README.md": {}, "CONTRIBUTING.md": {}}
			for file, text := range right {
				if file == test.file && test.from != "" {
					text = strings.ReplaceAll(text, test.from, test.to)
				}
				tree[file] = &fstest.MapFile{Data: []byte(text)}
			}
			found, err := checkLinks(tree, []string{index, config})
			if err != nil {
				t.Fatal(err)
			}
			expectFinding(t, found, test.want)
		})
	}
}

func TestReadmeAndIntegrationRunTheSameTests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		readme, run, want string
	}{
		"same":           {readme: "```sh\nmake run\nmake test  # all of it\n```\n", run: "test_command='make test'\n"},
		"README silent":  {readme: "Run make test.\n", run: "test_command='make test'\n", want: "README.md does not give"},
		"other command":  {readme: "make test\n", run: "test_command='make test-go'\n", want: "must be the same"},
		"command hidden": {readme: "make test\n", run: "make test\n", want: "must be the same"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := checkTestCommand(fstest.MapFS{
				"README.md": {Data: []byte(test.readme)},
				".ci/run":   {Data: []byte(test.run)},
			})
			if err != nil {
				t.Fatal(err)
			}
			expectFinding(t, found, test.want)
		})
	}
}

func expectFinding(t *testing.T, found []string, want string) {
	t.Helper()
	if want == "" && len(found) > 0 {
		t.Errorf("found %q, want nothing", found)
	}
	if want != "" && (len(found) != 1 || !strings.Contains(found[0], want)) {
		t.Errorf("found %q, want one that says %q", found, want)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func record(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(manifestPath)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := recordMigrations(dir); err != nil {
		t.Fatal(err)
	}
}

// repository makes dir a git repository that does not depend on the git settings of the user who
// runs the test.
func repository(t *testing.T, dir string) runGit {
	t.Helper()
	in := gitIn(dir)
	git := func(ctx context.Context, args ...string) (string, error) {
		settings := []string{"-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}
		return in(ctx, append(settings, args...)...)
	}
	if _, err := git(t.Context(), "init", "-q"); err != nil {
		t.Fatal(err)
	}
	return git
}
