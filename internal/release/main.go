// Command release builds the published artefacts of Tocsin: binaries, archives, Debian and RPM
// packages, a container image, a bill of materials for each, and their checksums. It needs Go, git
// and the built web application. It does not need root, a container engine or, once the modules are
// downloaded, a network.
//
// The same commit with the same Go gives the same bytes: every time in an artefact is that of the
// commit, and every list has a fixed order.
//
// It is a separate module, so that the product depends on none of its libraries.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"github.com/alecthomas/kong"
)

type cli struct {
	Root string   `help:"The repository." default:"../.." type:"existingdir"`
	Out  string   `help:"Folder for what is built." default:"../../dist"`
	Arch []string `help:"Processor architectures, as Go names them." default:"amd64,arm64" enum:"amd64,arm64"`

	Image    imageCommand    `cmd:"" help:"Build the container image, as an OCI layout and as an archive for docker load."`
	Packages packagesCommand `cmd:"" help:"Build the Debian and RPM packages."`
	All      allCommand      `cmd:"" help:"Build everything, and write SHA256SUMS."`
}

type imageCommand struct {
	Push string `help:"Where to push the image, as registry.example.com/tocsin; nothing is pushed without it." placeholder:"NAME"`
}

// Run builds the image.
func (c *imageCommand) Run(ctx context.Context, o *cli) error {
	builds, err := buildAll(ctx, o)
	if err != nil {
		return err
	}
	_, err = makeImage(ctx, o, builds, c.Push)
	return err
}

type packagesCommand struct{}

// Run builds the packages.
func (packagesCommand) Run(ctx context.Context, o *cli) error {
	builds, err := buildAll(ctx, o)
	if err != nil {
		return err
	}
	_, err = makePackages(ctx, o, builds)
	return err
}

type allCommand struct{}

// Run builds everything.
func (allCommand) Run(ctx context.Context, o *cli) error {
	builds, err := buildAll(ctx, o)
	if err != nil {
		return err
	}
	files, err := makePackages(ctx, o, builds)
	if err != nil {
		return err
	}
	archives, err := makeArchives(ctx, o, builds)
	if err != nil {
		return err
	}
	images, err := makeImage(ctx, o, builds, "")
	if err != nil {
		return err
	}
	return writeSums(o, slices.Concat(files, archives, images))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o cli
	k := kong.Parse(&o, kong.Name("release"), kong.Description("Builds what is published of Tocsin."),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(&o))
	if err := k.Run(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}
