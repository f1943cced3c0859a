// Package taillog keeps the last lines of a log while it passes through, to show them when its writer dies.
package taillog

import (
	"io"
	"strings"
	"sync"
)

// kept bounds what is remembered, in bytes.
const kept = 4 << 10

// Writer passes everything on and remembers the end. A log that cannot be written any further, on a full disk, is no
// reason to stop its writer: what was to be passed on is dropped then. It is safe for several goroutines.
type Writer struct {
	mu   sync.Mutex
	next io.Writer
	tail []byte
}

// New returns a Writer in front of next; nil only remembers.
func New(next io.Writer) *Writer {
	if next == nil {
		next = io.Discard
	}
	return &Writer{next: next}
}

func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tail = append(w.tail, p...)
	if excess := len(w.tail) - kept; excess > 0 {
		w.tail = append(w.tail[:0], w.tail[excess:]...)
	}
	_, _ = w.next.Write(p)
	return len(p), nil
}

// Text is what was written last, whole lines as far as they fit.
func (w *Writer) Text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := string(w.tail)
	if len(w.tail) == kept {
		if _, whole, ok := strings.Cut(text, "\n"); ok {
			text = whole
		}
	}
	return strings.TrimSpace(text)
}

// Lines is the last n lines.
func (w *Writer) Lines(n int) []string {
	text := w.Text()
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-n):]
}

// Suffix is the last lines as the end of an error message: indented below it, empty when nothing was written.
func (w *Writer) Suffix() string {
	const shown = 10
	lines := w.Lines(shown)
	if len(lines) == 0 {
		return ""
	}
	return "\n  " + strings.Join(lines, "\n  ")
}
