//go:build unix

package engines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestLockFile checks what an install relies on: a hash for each pinned package, no package that is
// not required, and no URL, so that everybody installs from the registry of their own npm settings.
func TestLockFile(t *testing.T) {
	t.Parallel()
	content, err := manifest.ReadFile("npm/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct {
			Version   string `json:"version"`
			Integrity string `json:"integrity"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(content, &lock); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, []byte("://")) || bytes.Contains(content, []byte(`"resolved"`)) {
		t.Error("the lock file holds addresses")
	}
	delete(lock.Packages, "")
	for _, each := range platforms() {
		wanted := map[string]string{each.postgres: postgresVersion}
		if each.chdbLocked {
			wanted[each.chdb] = chdbVersion
		}
		for name, version := range wanted {
			entry := lock.Packages["node_modules/"+name]
			if entry.Version != version || !strings.HasPrefix(entry.Integrity, "sha512-") {
				t.Errorf("%s is locked as %+v, want version %s and its hash", name, entry, version)
			}
			delete(lock.Packages, "node_modules/"+name)
		}
	}
	for name := range lock.Packages {
		t.Errorf("nobody wants %s", name)
	}
}

func TestPlatform(t *testing.T) {
	t.Parallel()
	_, err := platformOf("windows", "amd64")
	if err == nil || !strings.Contains(err.Error(), "windows/amd64") || !strings.Contains(err.Error(), "linux/amd64") {
		t.Errorf("error %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Error("the error has several lines")
	}
	hashes := map[string]bool{}
	for name, each := range platforms() {
		goos, goarch, _ := strings.Cut(name, "/")
		if found, err := platformOf(goos, goarch); err != nil || found != each {
			t.Errorf("%s: %v, %v", name, found, err)
		}
		hash, err := contentHash(each)
		if err != nil {
			t.Fatal(err)
		}
		hashes[hash+each.name] = true
	}
	if len(hashes) != len(platforms()) {
		t.Errorf("%d directories for %d platforms", len(hashes), len(platforms()))
	}
}

// registry replaces npm and the registry: it links the engines on which the tests themselves run,
// and records each call. A real npm installs those engines before any test runs.
type registry struct {
	calls string
}

func newRegistry(t *testing.T, script string) registry {
	t.Helper()
	dir := t.TempDir()
	r := registry{calls: filepath.Join(dir, "calls")}
	npm := fmt.Sprintf("#!/bin/sh\necho \"$PWD $*\" >> %s\n%s\n", r.calls, script)
	for name, content := range map[string]string{"npm": npm, "node": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return r
}

func (r registry) count(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile(r.calls)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Count(content, []byte("\n"))
}

// installed is the node_modules directory of the engines on which the tests run.
func installed(t *testing.T) string {
	t.Helper()
	library := os.Getenv("TOCSIN_DEVSTACK_CHDB")
	if library == "" {
		t.Fatal("TOCSIN_DEVSTACK_CHDB is not set: run the tests as devstack run -- go test ./cmd/devstack/...")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(library)))
}

func ensure(t *testing.T, base string) (Engines, string, error) {
	t.Helper()
	var said bytes.Buffer
	found, err := Ensure(t.Context(), Options{Base: base, Progress: &said})
	return found, said.String(), err
}

func TestInstallOnce(t *testing.T) {
	r := newRegistry(t, "ln -s "+installed(t)+" node_modules")
	base := t.TempDir()
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			found, _, err := ensure(t, base)
			if err != nil {
				t.Error(err)
				return
			}
			for _, path := range []string{found.ChDB, filepath.Join(found.PostgresBin, "postgres")} {
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if calls := r.count(t); calls != 1 {
		t.Errorf("npm was called %d times", calls)
	}
	found, said, err := ensure(t, base)
	if err != nil || said != "" || r.count(t) != 1 {
		t.Errorf("engines that are there: %+v, %q, %v", found, said, err)
	}
}

// TestCrashInTheMiddle starts on what a killed install leaves behind, and on damaged engines.
func TestCrashInTheMiddle(t *testing.T) {
	r := newRegistry(t, "ln -s "+installed(t)+" node_modules")
	base := t.TempDir()
	wanted, err := platformOf(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := contentHash(wanted)
	if err != nil {
		t.Fatal(err)
	}
	name := hash + "-" + wanted.name
	unfinished := filepath.Join(base, tempPrefix+name+"-123")
	damaged := filepath.Join(base, name)
	for _, dir := range []string{unfinished, damaged} {
		if err := os.MkdirAll(filepath.Join(dir, "node_modules"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, said, err := ensure(t, base)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "damaged") {
		t.Errorf("said %q", said)
	}
	if _, err := os.Stat(unfinished); !os.IsNotExist(err) {
		t.Errorf("the unfinished install is still there: %v", err)
	}
	if calls := r.count(t); calls != 1 {
		t.Errorf("npm was called %d times", calls)
	}
}

func TestFailedInstallLeavesNothing(t *testing.T) {
	for name, each := range map[string]struct{ script, want string }{
		"disk full": {`echo "npm error code ENOSPC" >&2; exit 228`, "disk full"},
		"disk full, npm content": {
			"ln -s " + installed(t) + ` node_modules; echo "npm warn tar TAR_ENTRY_ERROR ENOSPC: no space left on device, write" >&2`,
			"disk full",
		},
		"unwritten file": {"ln -s " + installed(t) + ` node_modules; echo "npm warn tar TAR_ENTRY_ERROR EIO" >&2`, "TAR_ENTRY_ERROR"},
		"no network":     {`echo "npm error code ENOTFOUND" >&2; exit 1`, "npm error code ENOTFOUND"},
		"nothing came":   {`mkdir node_modules`, "engine missing"},
	} {
		t.Run(name, func(t *testing.T) {
			newRegistry(t, each.script)
			base := t.TempDir()
			_, _, err := ensure(t, base)
			if err == nil || !strings.Contains(err.Error(), each.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, each.want)
			}
			left, err := filepath.Glob(filepath.Join(base, "*"))
			if err != nil {
				t.Fatal(err)
			}
			hidden, err := filepath.Glob(filepath.Join(base, ".*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range append(left, hidden...) {
				if !strings.HasSuffix(path, ".lock") {
					t.Errorf("%s is left", path)
				}
			}
		})
	}
}

func TestNoNPM(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, _, err := ensure(t, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "install Node.js") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

// TestByVersion installs a package that no hash pins, as on the platforms whose lock file entry is missing.
func TestByVersion(t *testing.T) {
	r := newRegistry(t, "ln -s "+installed(t)+" node_modules")
	wanted, err := platformOf(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	wanted.chdbLocked = false
	dir := filepath.Join(t.TempDir(), "engines")
	var said bytes.Buffer
	if err := install(t.Context(), dir, wanted, Options{Progress: &said}); err != nil {
		t.Fatal(err)
	}
	found, err := locate(dir, wanted)
	if err != nil || !strings.Contains(found.ChDB, unlockedDir) {
		t.Errorf("engines %+v, %v", found, err)
	}
	if calls := r.count(t); calls != 2 {
		t.Errorf("npm was called %d times", calls)
	}
	if !strings.Contains(said.String(), "pinned by its version") {
		t.Errorf("said %q", said.String())
	}
}

func TestLinkLibraries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("native/lib/libpq.so.5.18", "the library")
	write("native/pg-symlinks.json", `[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so"}]`)
	for range 2 {
		if err := linkLibraries(dir); err != nil {
			t.Fatal(err)
		}
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(moved, "native/lib/libpq.so")); string(content) != "the library" {
		t.Errorf("the link leads to %q, %v", content, err)
	}
	dir = moved
	write("native/pg-symlinks.json", `[{"source":"native/lib/libpq.so.5.18","target":"../../outside"}]`)
	if err := linkLibraries(dir); err == nil {
		t.Error("a link out of the package was made")
	}
}
