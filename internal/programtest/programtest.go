// Package programtest provides the real programs to tests that run them as processes.
//
// `make test-go` builds them first and passes their folder. A test process that runs without that
// builds the programs it needs, once, in the same way as make, so that the build cache is used.
package programtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

const variable = "TOCSIN_TEST_PROGRAMS"

//nolint:gochecknoglobals // built once for all tests of a process
var (
	tocsin   = sync.OnceValues(func() (string, error) { return program("tocsin") })
	devstack = sync.OnceValues(func() (string, error) { return program("devstack") })
	folder   = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "tocsin-test-") })
)

// Tocsin returns the path of the program tocsin.
func Tocsin() (string, error) { return tocsin() }

// Devstack returns the path of the program devstack.
func Devstack() (string, error) { return devstack() }

// Remove removes what was built. It is called after all tests.
func Remove() {
	if dir, err := folder(); err == nil {
		_ = os.RemoveAll(dir)
	}
}

func program(name string) (string, error) {
	if dir := os.Getenv(variable); dir != "" {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", variable, err)
		}
		return path, nil
	}
	dir, err := folder()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", path, "tocsin/cmd/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, said)
	}
	return path, nil
}
