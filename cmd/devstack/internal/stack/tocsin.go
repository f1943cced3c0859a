//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tocsin/cmd/devstack/internal/proc"
	"tocsin/cmd/devstack/internal/taillog"
)

// tocsin is the program of the product, and its environment.
type tocsin struct {
	path string
	env  []string
	port int
	data *data
	log  io.Writer
}

// server is a running tocsin serve.
type server struct {
	*proc.Child
}

// Stop lets work under way end.
func (s server) Stop(ctx context.Context) error {
	return s.Child.Stop(ctx, proc.Step{Signal: syscall.SIGTERM, Wait: 35 * time.Second})
}

// findTocsin returns the program at path, or builds it from the checkout if path is empty.
func findTocsin(ctx context.Context, console *Console, path, buildDir string) (string, error) {
	if path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("find tocsin: %w: name its program with --tocsin", err)
		}
		return filepath.Abs(found)
	}
	root, err := checkout()
	if err != nil {
		return "", err
	}
	compiler, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("build tocsin: go not found: install Go, or name a program with --tocsin")
	}
	console.Sayf("building tocsin")
	target := filepath.Join(buildDir, "tocsin")
	said := taillog.New(nil)
	build, err := proc.Start(proc.Options{
		Path:   compiler,
		Args:   []string{"build", "-o", target, "./cmd/tocsin"},
		Dir:    root,
		Stdout: said,
		Stderr: said,
	})
	if err != nil {
		return "", fmt.Errorf("build tocsin: %w", err)
	}
	if err := finished(ctx, build); err != nil {
		return "", fmt.Errorf("build tocsin: %w%s", err, said.Suffix())
	}
	return target, nil
}

// checkout is the root of Tocsin's source around the working directory.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find Tocsin's source: %w", err)
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module tocsin\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("this is no checkout of Tocsin: start devstack in one, or name a program with --tocsin")
		}
		dir = filepath.Dir(dir)
	}
}

// finished waits for a child that ends by itself.
func finished(ctx context.Context, child *proc.Child) error {
	select {
	case <-child.Done():
		return child.Err()
	case <-ctx.Done():
		return errors.Join(ctx.Err(), child.Stop(ctx))
	}
}

func (t *tocsin) migrate(ctx context.Context) error {
	log := taillog.New(t.log)
	child, err := proc.Start(proc.Options{Path: t.path, Args: []string{"migrate"}, Env: t.env, Stdout: log, Stderr: log})
	if err != nil {
		return err
	}
	if err := finished(ctx, child); err != nil {
		return fmt.Errorf("tocsin migrate: %w%s", err, log.Suffix())
	}
	return nil
}

func (t *tocsin) serve(ctx context.Context) (process, error) {
	log := taillog.New(t.log)
	child, err := proc.Start(proc.Options{Path: t.path, Args: []string{"serve"}, Env: t.env, Stdout: log, Stderr: log})
	if err != nil {
		return nil, err
	}
	started := server{Child: child}
	err = t.data.writeFile(tocsinPIDFile, []byte(strconv.Itoa(child.PID())), 0o644)
	if err == nil {
		err = awaitHTTP(ctx, child, t.url()+"/readyz")
	}
	if err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = started.Stop(stopCtx)
		return nil, fmt.Errorf("tocsin serve: %w%s", err, log.Suffix())
	}
	return started, nil
}

func (t *tocsin) url() string {
	return "http://127.0.0.1:" + strconv.Itoa(t.port)
}

// evictTocsin ends a tocsin that outlived a killed devstack, which happens if the kernel does not
// end it.
func evictTocsin(ctx context.Context, d *data) error {
	content, err := os.ReadFile(d.path(tocsinPIDFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for a surviving tocsin: %w", err)
	}
	pid, ok := proc.ReadPID(content)
	if ok {
		proc.AwaitEnding(ctx, pid)
	}
	if !ok || !strings.HasSuffix(proc.CommandLine(pid), "tocsin serve") {
		return nil
	}
	for _, step := range []proc.Step{
		{Signal: syscall.SIGTERM, Wait: 10 * time.Second},
		{Signal: syscall.SIGKILL, Wait: 5 * time.Second},
	} {
		gone, err := proc.EndOther(ctx, pid, step)
		if gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("the surviving tocsin, process %d, does not end: kill it by hand", pid)
}
