//go:build unix

package stack

import (
	"os"
	"path/filepath"
	"testing"

	"tocsin/cmd/devstack/internal/pgserver"
)

func TestScratchIsInMemoryUnlessItMustLast(t *testing.T) {
	temp := t.TempDir()
	for name, c := range map[string]struct {
		tmpdir  string
		durable bool
		memory  bool
	}{
		"data to throw away": {memory: true},
		"durable data":       {durable: true},
		"a place is named":   {tmpdir: temp},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", c.tmpdir)
			s, err := newScratch(NewConsole(t.Output()), c.durable)
			if err != nil {
				t.Fatal(err)
			}
			// A machine that has little memory keeps everything on its disk.
			if inMemory := filepath.Dir(s.dir) == pgserver.MemoryDir; inMemory != (c.memory && pgserver.MemoryIsPlenty()) {
				t.Errorf("it is %s", s.dir)
			}
			if err := s.remove(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
				t.Errorf("it is left: %v", err)
			}
		})
	}
}

// TestScratchOfTheDeadIsRemoved leaves a directory in memory as a devstack that was killed does.
func TestScratchOfTheDeadIsRemoved(t *testing.T) {
	if !pgserver.MemoryIsPlenty() {
		t.Log("this machine has little memory: nothing is left there")
		return
	}
	t.Setenv("TMPDIR", "")
	left, err := newScratch(NewConsole(t.Output()), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := left.lock.Release(); err != nil {
		t.Fatal(err)
	}
	// One on disk clears up, too.
	next, err := newScratch(NewConsole(t.Output()), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left.dir); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
	if err := next.remove(); err != nil {
		t.Error(err)
	}
}
