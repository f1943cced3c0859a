package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"tocsin/migrations"
)

type version struct {
	JSON bool `help:"Print JSON." name:"json"`
}

// build is the build information of a binary.
type build struct {
	Version string `json:"version"`
	// Commit is empty if the binary was built without a checkout.
	Commit string `json:"commit,omitempty"`
	// Time is when the commit was made, in RFC 3339.
	Time string `json:"time,omitempty"`
	// Modified says that the checkout had uncommitted changes.
	Modified bool `json:"modified,omitempty"`
	// Schema is the version of the Postgres schema that `tocsin migrate` establishes.
	Schema   int64  `json:"schema"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints the version.
func (v version) Run(out io.Writer) error {
	b, err := thisBuild()
	if err != nil {
		return err
	}
	if v.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(b)
	}
	commit := "unknown"
	if b.Commit != "" {
		commit = b.Commit + " of " + b.Time
	}
	if b.Modified {
		commit += ", modified"
	}
	_, err = fmt.Fprintf(out, "tocsin %s\ncommit   %s\nschema   %d\nbuilt by %s for %s\n", b.Version, commit, b.Schema, b.Go, b.Platform)
	return err
}

func thisBuild() (build, error) {
	schema, err := newestMigration(migrations.Files)
	if err != nil {
		return build{}, err
	}
	b := build{Version: buildVersion(), Schema: schema, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b, nil
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b, nil
}

// newestMigration returns the number of the newest migration.
func newestMigration(files fs.FS) (int64, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, errors.Join(errors.New("this binary contains no migrations"), err)
	}
	var newest int64
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", name, err)
		}
		newest = max(newest, n)
	}
	return newest, nil
}

// buildVersion is the version of the module or, for a build from a checkout, its revision.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}
