package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// makePackages writes a Debian and an RPM package for each architecture, as described in
// deploy/packages/nfpm.yaml.
func makePackages(ctx context.Context, o *cli, builds []build) (paths []string, err error) {
	if err := clean(o, "tocsin_*.deb", "tocsin-*.rpm"); err != nil {
		return nil, err
	}
	texts, err := documents(ctx, o.Root)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Root, "deploy", "packages")
	for i := range builds {
		b := &builds[i]
		variables := map[string]string{
			"ARCH": b.arch, "VERSION": b.version, "BINARY": b.path, "SBOM": b.sbom, "ROOT": o.Root, "PACKAGES": dir,
		}
		text, err := os.ReadFile(filepath.Join(dir, "nfpm.yaml"))
		if err != nil {
			return nil, fmt.Errorf("packages: %w", err)
		}
		description := os.Expand(string(text), func(name string) string { return variables[name] })
		config, err := nfpm.Parse(strings.NewReader(description))
		if err != nil {
			return nil, fmt.Errorf("packages: %w", err)
		}
		config.MTime = b.at
		for _, text := range texts {
			config.Contents = append(config.Contents, &files.Content{
				Source: filepath.Join(o.Root, text), Destination: "/usr/share/doc/tocsin/" + text, FileInfo: &files.ContentFileInfo{Mode: 0o644},
			})
		}
		for _, format := range []string{"deb", "rpm"} {
			info, err := config.Get(format)
			if err != nil {
				return nil, fmt.Errorf("packages: %w", err)
			}
			info = nfpm.WithDefaults(info)
			packager, err := nfpm.Get(format)
			if err != nil {
				return nil, fmt.Errorf("packages: %w", err)
			}
			path := filepath.Join(o.Out, packager.ConventionalFileName(info))
			info.Target = path
			if err := writeFile(path, func(out io.Writer) error { return packager.Package(info, out) }); err != nil {
				return nil, err
			}
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// documents returns the paths of the files in each package and archive besides the program: the
// documentation, and the files that it describes. The paths are those in the repository, so that
// links between them work.
func documents(ctx context.Context, root string) (paths []string, err error) {
	list, err := output(ctx, root, "git", "ls-files", "-z", "--", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "README.md", "deploy", "docs", ":!docs/site")
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(list, func(r rune) bool { return r == 0 }), nil
}

// clean removes the results of an earlier run, so that a pattern names one file.
func clean(o *cli, patterns ...string) error {
	for _, pattern := range append(patterns, "SHA256SUMS") {
		old, err := filepath.Glob(filepath.Join(o.Out, pattern))
		if err != nil {
			return err
		}
		for _, path := range old {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove what was built before: %w", err)
			}
		}
	}
	return nil
}

// makeArchives writes a compressed archive for each architecture, with binary, bill of materials
// and documents.
func makeArchives(ctx context.Context, o *cli, builds []build) (paths []string, err error) {
	if err := clean(o, "tocsin_*.tar.gz"); err != nil {
		return nil, err
	}
	texts, err := documents(ctx, o.Root)
	if err != nil {
		return nil, err
	}
	for i := range builds {
		b := &builds[i]
		folder := fmt.Sprintf("tocsin_%s_linux_%s", b.version, b.arch)
		path := filepath.Join(o.Out, folder+".tar.gz")
		err := writeFile(path, func(out io.Writer) error {
			zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
			if err != nil {
				return err
			}
			archive := tar.NewWriter(zipped)
			add := func(name, from string, mode int64) error {
				content, err := os.ReadFile(from)
				if err != nil {
					return err
				}
				header := &tar.Header{Name: folder + "/" + name, Mode: mode, Size: int64(len(content)), ModTime: b.at, Format: tar.FormatPAX}
				if err := archive.WriteHeader(header); err != nil {
					return err
				}
				_, err = archive.Write(content)
				return err
			}
			err = errors.Join(add("tocsin", b.path, 0o755), add("tocsin.cdx.json", b.sbom, 0o644))
			for _, text := range texts {
				if err == nil {
					err = add(text, filepath.Join(o.Root, text), 0o644)
				}
			}
			if err != nil {
				return err
			}
			if err := archive.Close(); err != nil {
				return err
			}
			return zipped.Close()
		})
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// writeSums writes the SHA-256 of files in the format of sha256sum -c.
func writeSums(o *cli, files []string) error {
	slices.Sort(files)
	var sums strings.Builder
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), filepath.Base(path))
	}
	return writeFile(filepath.Join(o.Out, "SHA256SUMS"), func(out io.Writer) error {
		_, err := io.WriteString(out, sums.String())
		return err
	})
}

// writeFile writes a file and says so.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		// Half a file must not be taken for the whole.
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(path)))
	}
	fmt.Println(path)
	return nil
}
