package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// build is one binary.
type build struct {
	arch string
	// path is the path of the binary, sbom that of its bill of materials.
	path, sbom string
	// version is a semantic version without a leading v: 1.2.3, or
	// 0.0.0-20261123052000-729f274c0a1b for a commit without a tag.
	version string
	commit  string
	// at is when the commit was made.
	at time.Time
}

// buildAll builds the binary for each architecture.
func buildAll(ctx context.Context, o *cli) ([]build, error) {
	if _, err := os.Stat(filepath.Join(o.Root, "web", "dist", "index.html")); err != nil {
		return nil, errors.New("the web application is not built: run make web/dist/index.html")
	}
	commit, err := output(ctx, o.Root, "git", "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	seconds, err := output(ctx, o.Root, "git", "show", "--no-patch", "--format=%ct", "HEAD")
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the time of the commit: %w", err)
	}
	var builds []build
	for _, arch := range o.Arch {
		b := build{arch: arch, commit: commit, at: time.Unix(at, 0).UTC(), path: filepath.Join(o.Out, "bin", "linux-"+arch, "tocsin")}
		if err := b.compile(ctx, o); err != nil {
			return nil, err
		}
		builds = append(builds, b)
	}
	return builds, nil
}

// compile builds the binary and writes its bill of materials next to it.
func (b *build) compile(ctx context.Context, o *cli) error {
	path, err := filepath.Abs(b.path)
	if err != nil {
		return err
	}
	// The version is that of the tag or the commit, regardless of GOFLAGS.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", path, "./cmd/tocsin")
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.Root, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+b.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build for linux/%s: %w", b.arch, err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read what was built: %w", err)
	}
	b.version = strings.TrimPrefix(info.Main.Version, "v")
	if b.version == "" || b.version == "(devel)" {
		return errors.New("the binary holds no version: build in a clone, with git; a linked work tree is not enough")
	}
	bill, err := billOf(info, o.Root, b)
	if err != nil {
		return err
	}
	b.sbom = filepath.Join(filepath.Dir(b.path), "tocsin.cdx.json")
	return os.WriteFile(b.sbom, bill, 0o644)
}

// output returns the output of a program, without surrounding space.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(complaints.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
