// Package programtest has the real programs, for tests that run them as processes.
//
// `make test-go` builds them first and names their folder. A test process that is run without builds what it asks for,
// once, as make does, so that what is compiled is there already.
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

// Tocsin returns the path of the product.
func Tocsin() (string, error) { return tocsin() }

// Devstack returns the path of devstack.
func Devstack() (string, error) { return devstack() }

// Remove removes what was built. It is called when the tests have ended.
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
