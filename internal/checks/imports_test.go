package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "tocsin"

// A layer is a set of packages with the packages of this module that they may import. A pattern
// that ends in /... covers the package and all below it, one that ends in /* only those below it.
// The first layer that covers a package is its layer.
type layer struct {
	packages []string
	may      []string
}

// vocabulary returns the lowest layer of the map.
func vocabulary(more ...string) []string {
	return append([]string{"cursor", "rules", "alerts", "alerts/match", "alerts/routing", "alerts/silences", "alerts/teams", "internal/fault"}, more...)
}

// delivery returns the vocabulary of delivery and the ways to deliver: all of notify without the dispatcher, which only
// internal/app sees beside its stores.
func delivery(more ...string) []string {
	return vocabulary(append([]string{
		"notify", "notify/bus/...", "notify/email", "notify/preset/...", "notify/refresh", "notify/resend", "notify/slack", "notify/template/...", "notify/webhook/...",
	}, more...)...)
}

// layers lists all layers, lowest first.
func layers() []layer {
	return []layer{
		{packages: vocabulary(), may: vocabulary()},
		{packages: []string{"migrations", "web"}},
		{packages: []string{"client"}},
		{packages: []string{"client/example"}, may: []string{"client"}},
		{packages: []string{"internal/seal", "internal/socket"}},
		{packages: []string{"internal/rulefile"}},
		{packages: []string{"internal/retention"}},
		{packages: []string{"internal/explore"}},
		{packages: []string{"internal/access/..."}, may: vocabulary("internal/access/...")},
		{packages: []string{"notify"}, may: vocabulary()},
		{packages: []string{"notify/dispatch"}, may: vocabulary("notify")},
		{
			packages: []string{"notify/*"},
			may: delivery("internal/bustest", "internal/mailtest", "internal/natstest", "internal/pgtest", "internal/redistest",
				"internal/socket"),
		},
		{packages: []string{"internal/bustest"}, may: delivery()},
		{packages: []string{"internal/mailtest", "internal/natstest", "internal/redistest"}},
		{packages: []string{"evaluator/...", "internal/windowtest"}, may: vocabulary("notify", "evaluator/...", "internal/windowtest")},
		{
			packages: []string{"internal/lease"},
			may:      vocabulary("notify", "evaluator", "internal/postgres/...", "internal/pgtest"),
		},
		{
			packages: []string{"internal/storetest", "internal/simulate/model"},
			may:      vocabulary("notify", "notify/dispatch", "evaluator", "evaluator/backlog", "evaluator/resolution", "evaluator/ruleset", "evaluator/source", "evaluator/watch", "evaluator/window", "evaluator/window/counting", "internal/lease", "internal/retention", "internal/storetest", "internal/windowtest", "internal/simulate/model"),
		},
		{
			packages: []string{"internal/simulate"},
			may:      vocabulary("notify", "notify/dispatch", "evaluator", "evaluator/resolution", "evaluator/ruleset", "evaluator/source", "evaluator/watch", "evaluator/window", "evaluator/window/counting", "internal/lease", "internal/retention", "internal/simulate/..."),
		},
		{
			packages: []string{"internal/clickhouse/...", "internal/chtest"},
			may:      vocabulary("notify", "evaluator/...", "internal/clickhouse/...", "internal/chtest", "internal/windowtest"),
		},
		{packages: []string{"internal/tracing"}, may: vocabulary("notify", "evaluator", "evaluator/source", "evaluator/window")},
		{
			packages: []string{"internal/postgres/...", "internal/pgtest"},
			may: vocabulary("notify/...", "evaluator/...", "api", "internal/access", "internal/lease", "internal/retention", "internal/seal", "internal/postgres/...",
				"internal/pgtest", "internal/socket", "internal/storetest", "migrations"),
		},
		{packages: []string{"api/..."}, may: delivery("evaluator/...", "api/...", "internal/access/...", "internal/apitest", "web")},
		{packages: []string{"internal/apitest"}, may: []string{"api"}},
		{
			packages: []string{"internal/app/..."},
			may:      vocabulary("api/...", "client", "evaluator/...", "internal/...", "migrations", "notify/...", "web"),
		},
		{packages: []string{"internal/*"}, may: vocabulary("internal/...", "migrations")},
		{packages: []string{"cmd/tocsin/..."}, may: vocabulary("client", "cmd/tocsin/...", "internal/...", "migrations")},
		{
			packages: []string{"cmd/devstack/..."},
			may:      vocabulary("cmd/devstack/...", "internal/...", "migrations", "notify/...", "evaluator", "evaluator/source"),
		},
	}
}

// A restriction is a library that only a few packages may use.
type restriction struct {
	library string
	behind  []string
}

func restrictions() []restriction {
	postgres := []string{"internal/postgres/...", "internal/pgtest", "internal/app/...", "cmd/devstack/..."}
	return []restriction{
		// LISTEN needs a connection of its own, and no table: the bus has its own client, like the
		// other buses.
		{library: "github.com/jackc/", behind: append([]string{"notify/bus/postgres"}, postgres...)},
		{library: "github.com/pressly/goose/", behind: postgres},
		{
			library: "github.com/ClickHouse/",
			behind:  []string{"internal/clickhouse/...", "internal/chtest", "internal/app/...", "cmd/devstack/..."},
		},
		{library: "github.com/cbroglie/mustache", behind: []string{"notify/template/..."}},
		{library: "go.opentelemetry.io/", behind: []string{"internal/tracing", "internal/app/..."}},
		{library: "github.com/coreos/", behind: []string{"internal/access/oidc"}},
		{library: "github.com/redis/", behind: []string{"notify/bus/redis"}},
		{library: "github.com/nats-io/nats.go", behind: []string{"notify/bus/nats"}},
		{library: "github.com/nats-io/nats-server", behind: []string{"internal/natstest"}},
		{library: "github.com/wneessen/", behind: []string{"notify/email"}},
		{library: "github.com/emersion/", behind: []string{"internal/mailtest", "cmd/devstack/internal/mailbox", "cmd/devstack/internal/torture"}},
		{library: "github.com/labstack/", behind: []string{"api/...", "internal/app/..."}},
		{library: "github.com/ebitengine/purego", behind: []string{"cmd/devstack/..."}},
		{library: module + "/internal/app", behind: []string{"internal/app/...", "cmd/tocsin/..."}},
	}
}

// testOnly is what only tests and their helpers import.
func testOnly() []string {
	return []string{
		"testing", "net/http/httptest", "github.com/google/go-cmp/", "go.uber.org/goleak", "pgregory.net/rapid",
		module + "/internal/apitest", module + "/internal/pgtest", module + "/internal/chtest", module + "/internal/bustest", module + "/internal/mailtest", module + "/internal/natstest",
		module + "/internal/programtest", module + "/internal/redistest", module + "/internal/storetest", module + "/internal/windowtest", module + "/notify/preset/presettest",
		"github.com/nats-io/nats-server",
	}
}

// neverLinked lists what the product does not link, not even indirectly.
func neverLinked() []string {
	return append(testOnly(), module+"/cmd/devstack", "github.com/ebitengine/purego", "github.com/emersion/")
}

// goPackage is the part of the output of `go list -json` that the test reads.
type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
}

func TestImportsFollowTheMap(t *testing.T) {
	t.Parallel()
	packages := listPackages(t, "./...")
	if len(packages) < 5 {
		t.Fatalf("go list found %d packages of %s", len(packages), module)
	}
	for _, pkg := range packages {
		for _, violation := range violations(pkg) {
			t.Error(violation)
		}
	}
}

func TestProductLinksNoTestCodeAndNoEngine(t *testing.T) {
	t.Parallel()
	for _, pkg := range listPackages(t, "./...") {
		if !inProduct(pkg.ImportPath) {
			continue
		}
		for _, dep := range pkg.Deps {
			if matchesLibrary(neverLinked(), dep) {
				t.Errorf("%s links %s (go mod why -m, or: go list -deps -f '{{.ImportPath}} {{.Imports}}' %s)",
					pkg.ImportPath, dep, pkg.ImportPath)
			}
		}
	}
}

// The check must reject what it is meant to reject.
func TestMapRefuses(t *testing.T) {
	t.Parallel()
	for _, refused := range []struct{ from, to string }{
		{"cursor", module + "/notify"},
		{"client", module + "/rules"},
		{"rules", module + "/internal/postgres"},
		{"alerts", module + "/evaluator"},
		{"internal/fault", "github.com/labstack/echo/v4"},
		{"notify", module + "/evaluator"},
		{"notify", module + "/api"},
		{"notify", module + "/notify/template"},
		{"notify", module + "/internal/lease"},
		{"notify", module + "/notify/dispatch"},
		{"notify/dispatch", module + "/notify/webhook"},
		{"notify/dispatch", module + "/internal/postgres"},
		{"notify/slack", module + "/notify/dispatch"},
		{"api", module + "/notify/dispatch"},
		{"notify/slack", module + "/evaluator"},
		{"notify/bus/redis", module + "/internal/postgres"},
		{"notify/slack", "github.com/cbroglie/mustache"},
		{"notify/bus/redis", "github.com/jackc/pgx/v5"},
		{"notify/webhook", "github.com/wneessen/go-mail"},
		{"notify/email", "github.com/emersion/go-smtp"},
		{"notify/bus/postgres", module + "/internal/postgres"},
		{"notify/bus/nats", "github.com/nats-io/nats-server/v2/server"},
		{"internal/app", "github.com/nats-io/nats-server/v2/server"},
		{"internal/app", "github.com/redis/go-redis/v9"},
		{"evaluator", module + "/api"},
		{"evaluator", module + "/internal/app"},
		{"evaluator", module + "/internal/postgres"},
		{"evaluator", module + "/internal/clickhouse/schema"},
		{"evaluator", "github.com/jackc/pgx/v5/pgxpool"},
		{"evaluator", "testing"},
		{"api", module + "/internal/postgres"},
		{"api", module + "/internal/clickhouse"},
		{"api", module + "/internal/app"},
		{"api", module + "/internal/pgtest"},
		{"internal/lease", "github.com/jackc/pgx/v5"},
		{"internal/postgres", module + "/internal/app"},
		{"internal/clickhouse", module + "/api"},
		{"internal/postgres", module + "/internal/clickhouse"},
		{"internal/postgres", "github.com/ClickHouse/clickhouse-go/v2"},
		{"internal/clickhouse", module + "/internal/postgres"},
		{"internal/app", module + "/cmd/devstack/internal/stack"},
		{"internal/app", "github.com/ebitengine/purego"},
		{"internal/redact", module + "/api"},
		{"cmd/tocsin", module + "/cmd/devstack/internal/stack"},
		{"cmd/tocsin", "github.com/ClickHouse/clickhouse-go/v2"},
		{"cmd/devstack", module + "/internal/app"},
		{"helpers", "strings"},
	} {
		if got := violations(goPackage{ImportPath: module + "/" + refused.from, Imports: []string{refused.to}}); len(got) == 0 {
			t.Errorf("%s may import %s", refused.from, refused.to)
		}
	}
}

// violations returns how a package's imports violate the layers.
func violations(pkg goPackage) []string {
	from, own := strings.CutPrefix(pkg.ImportPath, module+"/")
	if !own {
		return []string{pkg.ImportPath + " lies outside the module"}
	}
	all := layers()
	at := slices.IndexFunc(all, func(l layer) bool { return matches(l.packages, from) })
	if at < 0 {
		return []string{from + " has no place on the map (layers in internal/checks/imports_test.go)"}
	}
	var found []string
	for _, imported := range slices.Concat(pkg.Imports, pkg.TestImports, pkg.XTestImports) {
		if to, own := strings.CutPrefix(imported, module+"/"); own && to != from && !matches(all[at].may, to) {
			found = append(found, fmt.Sprintf("%s imports %s, which it may not know", from, to))
		}
		for _, restriction := range restrictions() {
			if matchesLibrary([]string{restriction.library}, imported) && !matches(restriction.behind, from) {
				found = append(found, fmt.Sprintf("%s imports %s, which belongs to %s", from, imported, strings.Join(restriction.behind, ", ")))
			}
		}
	}
	for _, imported := range pkg.Imports {
		if !isTestHelper(from) && matchesLibrary(testOnly(), imported) {
			found = append(found, fmt.Sprintf("%s imports %s outside its tests", from, imported))
		}
	}
	return found
}

func inProduct(importPath string) bool {
	from := strings.TrimPrefix(importPath, module+"/")
	return !isTestHelper(from) && !matches([]string{"cmd/devstack/...", "internal/checks"}, from)
}

func isTestHelper(from string) bool {
	name, ok := strings.CutPrefix(from, "internal/")
	first, _, _ := strings.Cut(name, "/")
	return ok && strings.HasSuffix(first, "test")
}

func matches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if root, ok := strings.CutSuffix(pattern, "/..."); ok {
			return pkg == root || strings.HasPrefix(pkg, root+"/")
		}
		if root, ok := strings.CutSuffix(pattern, "/*"); ok {
			return strings.HasPrefix(pkg, root+"/")
		}
		return pkg == pattern
	})
}

func matchesLibrary(libraries []string, imported string) bool {
	return slices.ContainsFunc(libraries, func(library string) bool {
		root := strings.TrimSuffix(library, "/")
		return imported == root || strings.HasPrefix(imported, root+"/")
	})
}

func listPackages(t *testing.T, pattern string) []goPackage {
	t.Helper()
	dir, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", pattern)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v: %s", err, failed.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg goPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("read what go list says: %v", err)
		}
		packages = append(packages, pkg)
	}
}
