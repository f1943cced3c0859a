package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is not root, and does not exist on a usual host.
const user = "65532"

// file is a file of a layer or, with a slash at its end, a folder.
type file struct {
	path    string
	mode    int64
	content []byte
}

// makeImage writes the image for all architectures as an OCI layout, and for each one as an archive
// that docker load and podman load accept. It returns the archives.
func makeImage(ctx context.Context, o *cli, builds []build, push string) (archives []string, err error) {
	if err := clean(o, "tocsin_*.image.tar"); err != nil {
		return nil, err
	}
	tag := strings.ReplaceAll(builds[0].version, "+", "-")
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i := range builds {
		b := &builds[i]
		img, err := imageOf(b, o.Root)
		if err != nil {
			return nil, fmt.Errorf("image for linux/%s: %w", b.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: b.arch}},
		})
		path := filepath.Join(o.Out, fmt.Sprintf("tocsin_%s_linux_%s.image.tar", tag, b.arch))
		ref, err := name.NewTag("tocsin:" + tag)
		if err != nil {
			return nil, err
		}
		if err := writeFile(path, func(out io.Writer) error { return tarball.Write(ref, img, out) }); err != nil {
			return nil, err
		}
		archives = append(archives, path)
	}
	if err := writeLayout(filepath.Join(o.Out, "image"), tag, index); err != nil {
		return nil, err
	}
	if push == "" {
		return archives, nil
	}
	ref, err := name.NewTag(push + ":" + tag)
	if err != nil {
		return nil, err
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return nil, fmt.Errorf("push %s: %w", ref, err)
	}
	fmt.Println(ref)
	return archives, nil
}

func writeLayout(dir, tag string, index v1.ImageIndex) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	at, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}
	// The name by which skopeo and podman find the image in the layout.
	err = at.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
	if err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}
	fmt.Println(dir)
	return nil
}

func imageOf(b *build, root string) (v1.Image, error) {
	base, err := layerOf(b.at, baseFiles())
	if err != nil {
		return nil, err
	}
	files, err := productFiles(b, root)
	if err != nil {
		return nil, err
	}
	product, err := layerOf(b.at, files)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: base, History: v1.History{Created: v1.Time{Time: b.at}, CreatedBy: "certificates of authorities, user"}},
		mutate.Addendum{Layer: product, History: v1.History{Created: v1.Time{Time: b.at}, CreatedBy: "tocsin " + b.version}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", b.arch, v1.Time{Time: b.at}
	config.Config = v1.Config{
		User: user + ":" + user, WorkingDir: "/", Entrypoint: []string{"/usr/bin/tocsin"}, Cmd: []string{"serve"},
		Env:          []string{"PATH=/usr/bin", "TOCSIN_LISTEN=0.0.0.0:8080"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/usr/bin/tocsin", "healthcheck"}, Interval: 10 * time.Second, Timeout: 6 * time.Second, StartPeriod: 30 * time.Second, Retries: 3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "Tocsin",
			"org.opencontainers.image.description": "Raises exactly one alert, and one message, for each exchange that matches a rule.",
			"org.opencontainers.image.version":     b.version,
			"org.opencontainers.image.revision":    b.commit,
			"org.opencontainers.image.created":     b.at.Format(time.RFC3339),
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
	}
	return mutate.ConfigFile(img, config)
}

// baseFiles are the files that every program expects. The time zones are in the binary.
func baseFiles() []file {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		// A bundle of certificates cannot say until when the certificates of an authority are
		// valid.
		if root.Constraint == nil {
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return []file{
		{path: "etc/", mode: 0o755},
		{path: "etc/group", mode: 0o644, content: []byte("tocsin:x:" + user + ":\n")},
		{path: "etc/passwd", mode: 0o644, content: []byte("tocsin:x:" + user + ":" + user + ":Tocsin:/:/sbin/nologin\n")},
		{path: "etc/ssl/", mode: 0o755},
		{path: "etc/ssl/certs/", mode: 0o755},
		{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots.Bytes()},
	}
}

func productFiles(b *build, root string) ([]file, error) {
	files := []file{{path: "usr/", mode: 0o755}, {path: "usr/bin/", mode: 0o755}}
	for _, f := range []struct {
		from, to string
		mode     int64
	}{
		{b.path, "usr/bin/tocsin", 0o755},
		{"", "usr/share/", 0o755},
		{"", "usr/share/doc/", 0o755},
		{"", "usr/share/doc/tocsin/", 0o755},
		{filepath.Join(root, "LICENSE"), "usr/share/doc/tocsin/LICENSE", 0o644},
		{filepath.Join(root, "NOTICE"), "usr/share/doc/tocsin/NOTICE", 0o644},
		{b.sbom, "usr/share/doc/tocsin/tocsin.cdx.json", 0o644},
	} {
		var content []byte
		if f.from != "" {
			var err error
			if content, err = os.ReadFile(f.from); err != nil {
				return nil, err
			}
		}
		files = append(files, file{f.to, f.mode, content})
	}
	return files, nil
}

// layerOf returns a layer whose files belong to root and have the same time.
func layerOf(at time.Time, files []file) (v1.Layer, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, f := range files {
		header := &tar.Header{Name: f.path, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.path, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	content := buffer.Bytes()
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer))
}
