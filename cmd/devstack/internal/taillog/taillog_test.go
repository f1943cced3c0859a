package taillog_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tocsin/cmd/devstack/internal/taillog"
)

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestWriter(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	log := taillog.New(&all)
	for i := range 1000 {
		_, _ = fmt.Fprintf(log, "line %d of the log\n", i)
	}
	if got := log.Lines(2); !slices.Equal(got, []string{"line 998 of the log", "line 999 of the log"}) {
		t.Errorf("last lines %q", got)
	}
	if text := log.Text(); !strings.HasPrefix(text, "line ") || len(text) > 4<<10 {
		t.Errorf("text of %d bytes begins with %q", len(text), text[:20])
	}
	if lines := bytes.Count(all.Bytes(), []byte("\n")); lines != 1000 {
		t.Errorf("%d lines were passed on", lines)
	}
}

func TestWriterOutlivesAFullDisk(t *testing.T) {
	t.Parallel()
	log := taillog.New(fullDisk{})
	if n, err := log.Write([]byte("kept\n")); n != 5 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if log.Text() != "kept" {
		t.Errorf("text %q", log.Text())
	}
	if suffix := taillog.New(nil).Suffix(); suffix != "" {
		t.Errorf("suffix of nothing %q", suffix)
	}
}
