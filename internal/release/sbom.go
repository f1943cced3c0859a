package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// billOf returns a bill of materials in CycloneDX: the linked modules, according to the binary
// itself, Go's standard library, and the packages of the web application.
func billOf(info *buildinfo.BuildInfo, root string, b *build) ([]byte, error) {
	components := []cyclonedx.Component{library("golang", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, library("golang", m.Path, m.Version))
	}
	web, err := webPackages(filepath.Join(root, "web", "package-lock.json"))
	if err != nil {
		return nil, err
	}
	components = append(components, web...)
	slices.SortFunc(components, func(x, y cyclonedx.Component) int { return cmp.Compare(x.BOMRef, y.BOMRef) })
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: b.at.Format("2006-01-02T15:04:05Z"),
		Component: &cyclonedx.Component{
			BOMRef: "tocsin", Type: cyclonedx.ComponentTypeApplication, Name: "tocsin", Version: b.version,
			Properties: &[]cyclonedx.Property{{Name: "commit", Value: b.commit}, {Name: "platform", Value: "linux/" + b.arch}},
		},
	}
	bom.Components = &components
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, fmt.Errorf("write bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

func library(kind, name, version string) cyclonedx.Component {
	url := "pkg:" + kind + "/" + strings.Replace(name, "@", "%40", 1) + "@" + version
	return cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: url}
}

// webPackages returns the npm packages of a lock file, except those only for development.
func webPackages(file string) ([]cyclonedx.Component, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read packages of the web application: %w", err)
	}
	var lock struct {
		Packages map[string]struct {
			Version     string `json:"version"`
			Dev         bool   `json:"dev"`
			DevOptional bool   `json:"devOptional"`
			Link        bool   `json:"link"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("read packages of the web application: %w", err)
	}
	var list []cyclonedx.Component
	for path, p := range lock.Packages {
		_, name, found := cutLast(path, "node_modules/")
		if found && !p.Dev && !p.DevOptional && !p.Link {
			list = append(list, library("npm", name, p.Version))
		}
	}
	slices.SortFunc(list, func(x, y cyclonedx.Component) int { return cmp.Compare(x.BOMRef, y.BOMRef) })
	return slices.CompactFunc(list, func(x, y cyclonedx.Component) bool { return x.BOMRef == y.BOMRef }), nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
