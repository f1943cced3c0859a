package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const scopeSource = `
const columns = ["Name", 'State', "Fires"];
// Save this rule later.
export function ScopeSection({ count }) {
  return (
    <form title="Scope" hint={` + "`Routes`" + `}>
      <h2>What this rule would
        have raised</h2>
      <Button>Save rule</Button> <a>See {count} alerts</a>
      <Input label="Applications" /> <Input label="Environments" />
    </form>
  );
}
`

func shownLabels() []string {
	return []string{"Applications", "Environments", "Fires", "Name", "Routes", "Save rule", "Scope", "See", "State", "What this rule would have raised", "alerts"}
}

// manifest describes one picture.
func manifest(t *testing.T, labels []string, sum string) []byte {
	t.Helper()
	text, err := json.Marshal([]picture{{Name: "rule.webp", SHA256: sum, Sources: []string{"rules", "ui"}, Labels: labels}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The SHA-256 of "picture".
const pictureSum = "2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97"

func TestAScreenshotIsOldWhenALabelChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(files map[string]string)
		labels []string
		want   string
	}{
		"as it was taken": {},
		"code changes": {change: func(files map[string]string) {
			files["web/src/rules/Scope.tsx"] = "import x from 'y';\n" + strings.ReplaceAll(scopeSource, "count", "total")
		}},
		"a text that is not shown changes": {change: func(files map[string]string) {
			files["web/src/rules/Scope.tsx"] = strings.ReplaceAll(scopeSource, "Save this rule later", "Keep it")
		}},
		"the label moves to another file": {change: func(files map[string]string) {
			files["web/src/rules/Scope.tsx"] = strings.ReplaceAll(scopeSource, `"Fires"`, "")
			files["web/src/ui/words.ts"] = `export const fires = "Fires";`
		}},
		"reworded": {change: func(files map[string]string) {
			files["web/src/rules/Scope.tsx"] = strings.ReplaceAll(scopeSource, "Save rule", "Save the rule")
		}, want: `docs/pictures/rule.webp shows ["Save rule"], which is no longer in web/src: run make run, and make pictures`},
		"reworded over lines": {change: func(files map[string]string) {
			files["web/src/rules/Scope.tsx"] = strings.ReplaceAll(scopeSource, "have raised", "have found")
		}, want: `shows ["What this rule would have raised"]`},
		"part of a longer label": {change: func(files map[string]string) {
			files["web/src/rules/Scope.tsx"] = strings.ReplaceAll(scopeSource, `"Name"`, `"Name of the rule"`)
		}, want: `shows ["Name"]`},
		"only in another page": {change: func(files map[string]string) {
			files["web/src/rules/Scope.tsx"] = strings.ReplaceAll(scopeSource, "'State'", "'Status'")
			files["web/src/inbox/List.tsx"] = `["State"]`
		}, want: `shows ["State"]`},
		"only in a test": {change: func(files map[string]string) {
			files["web/src/rules/Scope.tsx"] = strings.ReplaceAll(scopeSource, "'State'", "'Status'")
			files["web/src/rules/Scope.test.tsx"] = `["State"]`
		}, want: `shows ["State"]`},
		"another picture":   {change: func(files map[string]string) { files["docs/pictures/rule.webp"] = "drawn over" }, want: "docs/pictures/rule.webp is not the picture whose labels"},
		"no picture":        {change: func(files map[string]string) { delete(files, "docs/pictures/rule.webp") }, want: "docs/pictures/rule.webp is not the picture whose labels"},
		"an unknown one":    {change: func(files map[string]string) { files["docs/pictures/new.webp"] = "new" }, want: "docs/pictures/new.webp is not in docs/pictures/labels.json"},
		"hardly any labels": {labels: shownLabels()[:9], want: "has only 9 labels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			labels := shownLabels()
			if test.labels != nil {
				labels = test.labels
			}
			files := map[string]string{
				"docs/pictures/rule.webp": "picture", "docs/pictures/drawn.svg": "", labelsPath: string(manifest(t, labels, pictureSum)),
				"web/src/rules/Scope.tsx": scopeSource, "web/src/ui/words.ts": "",
			}
			if test.change != nil {
				test.change(files)
			}
			tree, tracked := fstest.MapFS{}, []string{}
			for name, text := range files {
				tree[name], tracked = &fstest.MapFile{Data: []byte(text)}, append(tracked, name)
			}
			found, err := checkLabels(tree, tracked)
			if err != nil {
				t.Fatal(err)
			}
			expectFinding(t, found, test.want)
		})
	}
}

func TestRecordedLabelsAreThoseOfTheSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := []string{"orders", "241", "A", "Name", "Order", "12 s ago", "", "this rule"}
	write(t, dir, labelsPath, string(manifest(t, append(shownLabels(), data...), "")))
	write(t, dir, "docs/pictures/rule.webp", "picture")
	write(t, dir, "web/src/rules/Scope.tsx", scopeSource+`const examples = ["12 s ago", "A", "241"];`)
	write(t, dir, "web/src/ui/words.ts", "")
	if err := recordLabels(dir); err != nil {
		t.Fatal(err)
	}
	pictures, err := readPictures(os.DirFS(dir))
	if err != nil || len(pictures) != 1 || pictures[0].SHA256 != pictureSum || !slices.Equal(pictures[0].Labels, shownLabels()) {
		t.Errorf("%+v, %v", pictures, err)
	}
	found, err := checkLabels(os.DirFS(dir), []string{"docs/pictures/rule.webp"})
	if err != nil || len(found) > 0 {
		t.Errorf("%q, %v", found, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "web/src/ui")); err != nil {
		t.Fatal(err)
	}
	if _, err := checkLabels(os.DirFS(dir), nil); err == nil {
		t.Error("a folder that is gone is not an error")
	}
}
