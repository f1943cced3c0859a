package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tocsin/notify/preset"
	"tocsin/notify/preset/picture"
	"tocsin/notify/template"
)

var _ = flag.Bool("update", false, "draw the pictures of docs/pictures/receivers again")

// TestPicturesShowWhatIsSent checks that the pictures of the handbook are up to date, and show
// title and message of the alert. make receiver-pictures draws them again.
func TestPicturesShowWhatIsSent(t *testing.T) {
	t.Parallel()
	set, err := preset.Load()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join("..", "..", "..", "docs", "pictures", "receivers")
	for _, p := range set.All() {
		drawn, err := picture.Draw(p)
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(bytes.NewReader(drawn))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", p.ID, err)
			}
		}
		if title := template.Samples()[0].Title; !strings.Contains(string(drawn), strings.Fields(title)[0]) {
			t.Errorf("%s does not show the title %q", p.ID, title)
		}
		path := filepath.Join(folder, p.ID+".svg")
		if flag.Lookup("update").Value.String() == "true" {
			if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(path, drawn, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if stored, err := os.ReadFile(path); err != nil || !bytes.Equal(stored, drawn) {
			t.Errorf("%s is not what is sent (%v): run make receiver-pictures", path, err)
		}
		page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "receivers", p.ID+".md"))
		if err != nil || !strings.Contains(string(page), "](../pictures/receivers/"+p.ID+".svg)") {
			t.Errorf("docs/receivers/%s.md does not show the picture: %v", p.ID, err)
		}
	}
}
