package meter

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const line = "4242 (a (odd) name) S 17 4242 4242 0 -1 4194560 1 2 3 4 150 25 1000 5 20 0 1 0 99"
	got, err := parseStat(line)
	if err != nil {
		t.Fatal(err)
	}
	want := stat{pid: 4242, parent: 17, own: (150 + 25 + 1000 + 5) * 10 * time.Millisecond}
	if got != want {
		t.Errorf("parseStat = %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "12", "12 (cut off", "12 (short) S 1", "x (y) S 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6"} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("parseStat(%q) gives no error", bad)
		}
	}
}

func TestOwnersDoNotShare(t *testing.T) {
	all := map[int]stat{1: {pid: 1}, 10: {pid: 10, parent: 1}, 11: {pid: 11, parent: 10}, 12: {pid: 12, parent: 11}, 20: {pid: 20, parent: 1}}
	named := map[string]int{"root": 10, "inner": 11}
	for pid, want := range map[int]int{10: 10, 11: 11, 12: 11, 20: 0} {
		if got := owner(named, all, pid); got != want {
			t.Errorf("the owner of %d is %d, want %d", pid, got, want)
		}
	}
}

// TestChildrenCount lets a child burn time in a child of its own, which ends.
func TestChildrenCount(t *testing.T) {
	named := map[string]int{"self": os.Getpid()}
	before, err := Read(named)
	if err != nil {
		t.Fatal(err)
	}
	burn := exec.CommandContext(t.Context(), "sh", "-c", "sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done'; true")
	if err := burn.Run(); err != nil {
		t.Fatal(err)
	}
	after, err := Read(named)
	if err != nil {
		t.Fatal(err)
	}
	burnt := burn.ProcessState.UserTime() + burn.ProcessState.SystemTime()
	if used := after.Since(before)["self"]; used < burnt-3*tick {
		t.Errorf("%v were counted, and the child alone took %v", used, burnt)
	}
}

func TestEndedProcessesAreReported(t *testing.T) {
	gone := exec.CommandContext(t.Context(), "true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(map[string]int{"gone": gone.Process.Pid}); err == nil {
		t.Error("a process that has ended is counted")
	}
}

func TestListenerIsFound(t *testing.T) {
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on TCP
	if pid, err := Listener(port); err != nil || pid != os.Getpid() {
		t.Errorf("Listener = %d, %v; want this process, %d", pid, err, os.Getpid())
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if pid, err := Listener(port); err == nil {
		t.Errorf("process %d listens on a closed port", pid)
	}
}

func TestResident(t *testing.T) {
	if bytes, err := Resident(os.Getpid()); err != nil || bytes < 1<<20 || bytes > 1<<32 {
		t.Errorf("Resident = %d, %v", bytes, err)
	}
}
