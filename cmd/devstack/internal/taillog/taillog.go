// Package taillog passes a log on and keeps its last lines, to show them if its writer dies.
package taillog

import (
	"io"
	"strings"
	"sync"
)

// kept is how many bytes are kept.
const kept = 4 << 10

// Writer passes everything on and keeps the end. If the log cannot be written any further, for
// example on a full disk, its writer is not stopped: the rest is dropped. It is safe for concurrent
// use.
type Writer struct {
	mu   sync.Mutex
	next io.Writer
	tail []byte
}

// New returns a Writer in front of next. If next is nil, it only keeps the end.
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

// Text is what was written last, in whole lines as far as they fit.
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

// Suffix is the last lines in the form of the end of an error message: indented on lines below it,
// and empty if nothing was written.
func (w *Writer) Suffix() string {
	const shown = 10
	lines := w.Lines(shown)
	if len(lines) == 0 {
		return ""
	}
	return "\n  " + strings.Join(lines, "\n  ")
}
