package main

import (
	"archive/tar"
	"compress/gzip"
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
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// makePackages writes a Debian and an RPM package for each architecture, as deploy/packages/nfpm.yaml describes them.
func makePackages(o *cli, builds []build) (files []string, err error) {
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
			files = append(files, path)
		}
	}
	return files, nil
}

// makeArchives writes a compressed archive for each architecture: binary, bill of materials, licence, unit, and the texts.
func makeArchives(o *cli, builds []build) (files []string, err error) {
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
			for _, from := range []string{
				b.path, b.sbom, filepath.Join(o.Root, "LICENSE"), filepath.Join(o.Root, "NOTICE"), filepath.Join(o.Root, "README.md"),
				filepath.Join(o.Root, "CHANGELOG.md"), filepath.Join(o.Root, "deploy", "systemd", "tocsin.service"),
			} {
				content, err := os.ReadFile(from)
				if err != nil {
					return err
				}
				mode := int64(0o644)
				if from == b.path {
					mode = 0o755
				}
				header := &tar.Header{Name: folder + "/" + filepath.Base(from), Mode: mode, Size: int64(len(content)), ModTime: b.at, Format: tar.FormatPAX}
				if err := archive.WriteHeader(header); err != nil {
					return err
				}
				if _, err := archive.Write(content); err != nil {
					return err
				}
			}
			if err := archive.Close(); err != nil {
				return err
			}
			return zipped.Close()
		})
		if err != nil {
			return nil, err
		}
		files = append(files, path)
	}
	return files, nil
}

// writeSums writes the SHA-256 of files, as sha256sum -c reads it.
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
		// Nobody takes the half of a file for the whole.
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(path)))
	}
	fmt.Println(path)
	return nil
}
