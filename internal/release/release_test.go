package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// released builds everything once for all tests, and returns the folder.
func released(t *testing.T) string {
	t.Helper()
	dir, err := releasedOnce()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var releasedOnce = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // one build serves all tests
	dir, err := os.MkdirTemp("", "tocsin-release")
	if err != nil {
		return "", err
	}
	return dir, (allCommand{}).Run(context.Background(), options(dir))
})

func options(dir string) *cli {
	return &cli{Root: "../..", Out: dir, Arch: []string{"amd64", "arm64"}}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := releasedOnce(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// TestTheSameCommitGivesTheSameBytes builds a second time as another person would: from a clone in
// another folder, including the web application, with an empty Go build cache, and with neither Go
// nor npm allowed to download anything.
func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	run := func(dir, name string, args ...string) string {
		t.Helper()
		said, err := output(t.Context(), dir, name, args...)
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	if changes := run(root, "git", "status", "--porcelain"); changes != "" {
		t.Fatalf("a clone has only what is committed, and these are not:\n%s", changes)
	}
	first, second, clone := released(t), t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	// The repository may belong to another user, and git clone reads only the user's settings on
	// whether that is safe.
	settings := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(settings, []byte("[safe]\n\tdirectory = *\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", settings)
	run(root, "git", "clone", "--quiet", "--no-hardlinks", root, clone)
	// The npm packages are those of the lock file, downloaded before.
	run(root, "cp", "--archive", filepath.Join(root, "web", "node_modules"), filepath.Join(clone, "web"))
	t.Setenv("GOCACHE", t.TempDir())
	t.Setenv("GOPROXY", "off")
	t.Setenv("npm_config_offline", "true")
	run(filepath.Join(clone, "web"), "npm", "run", "build")
	o := options(second)
	o.Root = clone
	if err := (allCommand{}).Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	sums := func(dir string) string {
		text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if sums(first) != sums(second) || strings.Count(sums(first), "\n") != 8 {
		t.Errorf("the sums are\n%s\nand\n%s", sums(first), sums(second))
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "-c", "SHA256SUMS")
	cmd.Dir = second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	layout := func(dir string) string {
		text, err := os.ReadFile(filepath.Join(dir, "image", "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if layout(first) != layout(second) {
		t.Errorf("the layouts are\n%s\nand\n%s", layout(first), layout(second))
	}
}

func loaded(t *testing.T, arch string) v1.Image {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(released(t), "*_"+arch+".image.tar"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("archives of %s: %v, %v", arch, archives, err)
	}
	img, err := tarball.ImageFromPath(archives[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestTheImageHoldsWhatIsNeededAndNoMore(t *testing.T) {
	img := loaded(t, "arm64")
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.Config.User != "65532:65532" || strings.Join(config.Config.Entrypoint, " ") != "/usr/bin/tocsin" ||
		config.Config.Labels["org.opencontainers.image.revision"] == "" {
		t.Errorf("the configuration is %+v", config)
	}
	files, headers := filesOf(t, img)
	for _, header := range headers {
		if header.Uid != 0 || header.Mode&0o022 != 0 {
			t.Errorf("%s belongs to %d and has mode %o: the user of the image could change it", header.Name, header.Uid, header.Mode)
		}
	}
	for _, want := range []string{
		"usr/bin/tocsin", "etc/passwd", "etc/group", "etc/ssl/certs/ca-certificates.crt", "usr/share/doc/tocsin/LICENSE", "usr/share/doc/tocsin/NOTICE",
		"usr/share/doc/tocsin/tocsin.cdx.json",
	} {
		if len(files[want]) == 0 {
			t.Errorf("%s is not there, or empty", want)
		}
	}
	if len(files) != 7 {
		t.Errorf("the image holds %d files", len(files))
	}
	roots := 0
	for rest := files["etc/ssl/certs/ca-certificates.crt"]; ; roots++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
	}
	if roots < 100 {
		t.Errorf("the image knows %d authorities", roots)
	}
	checkBill(t, files["usr/share/doc/tocsin/tocsin.cdx.json"])
}

// filesOf returns the files of an image by path.
func filesOf(t *testing.T, img v1.Image) (files map[string][]byte, headers []*tar.Header) {
	t.Helper()
	files = map[string][]byte{}
	content := mutate.Extract(img)
	defer content.Close() //nolint:errcheck // read to its end
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		headers = append(headers, header)
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// checkBill compares a bill of materials with the components of the product.
func checkBill(t *testing.T, text []byte) {
	t.Helper()
	var bill cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, c := range *bill.Components {
		if has[c.BOMRef] || c.Version == "" {
			t.Errorf("component %s, version %q, is there twice or has no version", c.BOMRef, c.Version)
		}
		has[c.BOMRef] = true
	}
	for _, prefix := range []string{"pkg:golang/stdlib@1.", "pkg:golang/github.com/jackc/pgx/v5@v5.", "pkg:golang/github.com/ClickHouse/clickhouse-go/v2@v2.", "pkg:npm/react@"} {
		found := false
		for ref := range has {
			found = found || strings.HasPrefix(ref, prefix)
		}
		if !found {
			t.Errorf("nothing of the bill begins with %s", prefix)
		}
	}
	for ref := range has {
		if strings.HasPrefix(ref, "pkg:npm/vite@") || strings.HasPrefix(ref, "pkg:npm/vitest@") {
			t.Errorf("the bill names %s, which only builds and tests", ref)
		}
	}
}

func TestTheImageIsPushedAndPulledByArchitecture(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	o := options(t.TempDir())
	repository := strings.TrimPrefix(server.URL, "http://") + "/tocsin"
	if err := (&imageCommand{Push: repository}).Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	repo, err := name.NewRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := remote.List(repo)
	if err != nil || len(tags) != 1 {
		t.Fatalf("the registry has %v, %v", tags, err)
	}
	for _, arch := range o.Arch {
		pulled, err := remote.Image(repo.Tag(tags[0]), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatal(err)
		}
		config, err := pulled.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != arch {
			t.Errorf("asked for %s, got %s", arch, config.Architecture)
		}
	}
}

// staged installs the Debian package into a folder, as an administrator would into the root.
func staged(t *testing.T) (root string, dpkg func(args ...string)) {
	t.Helper()
	root = t.TempDir()
	admin := filepath.Join(root, "var", "lib", "dpkg")
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(admin, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(admin, "status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg = func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "dpkg", append([]string{
			"--root=" + root, "--force-script-chrootless,not-root,bad-path,architecture", "--log=" + filepath.Join(root, "dpkg.log"),
		}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s (dpkg is needed here: apt-get install dpkg)", cmd, err, out)
		}
	}
	packages, err := filepath.Glob(filepath.Join(released(t), "*_amd64.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("packages: %v, %v", packages, err)
	}
	dpkg("--install", packages[0])
	return root, dpkg
}

func TestTheDebianPackageIsInstalledAndRemoved(t *testing.T) {
	root, dpkg := staged(t)
	binary, settings := filepath.Join(root, "usr/bin/tocsin"), filepath.Join(root, "etc/tocsin/tocsin.yaml")
	out, err := exec.CommandContext(t.Context(), binary, "version", "--json").Output()
	var said struct {
		Version string `json:"version"`
		Commit  string `json:"commit"`
		Schema  int    `json:"schema"`
	}
	if err != nil || json.Unmarshal(out, &said) != nil || said.Commit == "" || said.Schema == 0 {
		t.Errorf("tocsin version: %s, %v", out, err)
	}
	info, err := os.Stat(settings)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the settings: %v, %v; want them readable by their owner alone", info, err)
	}
	// The settings as shipped are valid, except those that only the administrator knows.
	out, err = exec.CommandContext(t.Context(), binary, "--config", settings, "config", "check").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "missing flags: --clickhouse-url") {
		t.Errorf("config check: %s, %v", out, err)
	}
	checkTexts(t, filepath.Join(root, "usr/share/doc/tocsin"))
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/tocsin.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(unit), settingsText(t, settings)} {
		for _, page := range regexp.MustCompile(`/usr/share/doc/\S+`).FindAllString(text, -1) {
			if _, err := os.Stat(filepath.Join(root, page)); err != nil {
				t.Errorf("the package points to a page that it has not: %v", err)
			}
		}
	}
	if err := os.WriteFile(settings, []byte("listen: 127.0.0.1:9090\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dpkg("--remove", "tocsin")
	if _, err := os.Stat(binary); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the binary after the removal: %v", err)
	}
	if text, err := os.ReadFile(settings); err != nil || !strings.Contains(string(text), "9090") {
		t.Errorf("the settings after the removal: %q, %v; want them kept", text, err)
	}
	dpkg("--purge", "tocsin")
	if _, err := os.Stat(settings); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the settings after the purge: %v", err)
	}
}

func settingsText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkTexts checks that a folder has what an operator reads and copies, a bill of materials, and
// all that its pages link to.
func checkTexts(t *testing.T, dir string) {
	t.Helper()
	bill, err := os.ReadFile(filepath.Join(dir, "tocsin.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	checkBill(t, bill)
	for _, name := range []string{
		"CHANGELOG.md", "LICENSE", "NOTICE", "README.md", "deploy/grafana/tocsin.json", "deploy/prometheus/rules.yaml", "deploy/helm/tocsin/Chart.yaml", "deploy/compose.yaml",
		"docs/install.md", "docs/operations.md", "docs/runbook.md", "docs/settings.md", "docs/receivers/email.md",
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	link := regexp.MustCompile(`\]\(([^)#:\s]+)[^):\s]*\)`)
	pages := 0
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".md" {
			return err
		}
		pages++
		text, err := os.ReadFile(filepath.Join(dir, name))
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			to := filepath.Join(filepath.Dir(name), match[1])
			if strings.HasSuffix(to, ".go") {
				continue // The source is not in it.
			}
			if _, err := os.Stat(filepath.Join(dir, to)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, to)
			}
		}
		return err
	})
	if err != nil || pages < 50 {
		t.Errorf("there are %d pages, %v", pages, err)
	}
	if site, err := filepath.Glob(filepath.Join(dir, "docs", "site*")); err != nil || len(site) != 0 {
		t.Errorf("the machinery of the site is there: %v, %v", site, err)
	}
}

// TestTheArchiveIsInstalledByHand unpacks an archive and copies the files from it that
// docs/install.md lists.
func TestTheArchiveIsInstalledByHand(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join(released(t), "*_amd64.tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("archives: %v, %v", archives, err)
	}
	dir, root := t.TempDir(), t.TempDir()
	if _, err := output(t.Context(), dir, "tar", "--extract", "--file", archives[0], "--strip-components=1"); err != nil {
		t.Fatal(err)
	}
	checkTexts(t, dir)
	page, err := os.ReadFile(filepath.Join(dir, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	fenced, installed := false, 0
	for line := range strings.Lines(string(page)) {
		args := strings.Fields(line)
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if !fenced || len(args) < 3 || args[0] != "install" {
			continue
		}
		installed++
		args[len(args)-1] = filepath.Join(root, args[len(args)-1])
		if _, err := output(t.Context(), dir, "install", append([]string{"-D"}, args[1:]...)...); err != nil {
			t.Error(err)
		}
	}
	if installed == 0 {
		t.Error("docs/install.md lists no file to install")
	}
	for path, mode := range map[string]fs.FileMode{"usr/bin/tocsin": 0o755, "etc/tocsin/tocsin.yaml": 0o600, "etc/systemd/system/tocsin.service": 0o644} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s is %v, %v; want mode %o", path, info, err, mode)
		}
	}
	if said, err := output(t.Context(), root, filepath.Join(root, "usr/bin/tocsin"), "version"); err != nil || !strings.Contains(said, "schema") {
		t.Errorf("tocsin version: %q, %v", said, err)
	}
}

// TestWhatWasBuiltBeforeGoes checks that the files of an earlier build are removed, so that each
// pattern in the documentation matches a single file.
func TestWhatWasBuiltBeforeGoes(t *testing.T) {
	dir := t.TempDir()
	kept := []string{"tocsin.yaml", "tocsin_1.0.0_linux_amd64.image.tar"}
	for _, name := range append([]string{"tocsin_1.0.0_linux_amd64.tar.gz", "SHA256SUMS"}, kept...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := makeArchives(t.Context(), options(dir), nil); err != nil {
		t.Fatal(err)
	}
	left, err := fs.Glob(os.DirFS(dir), "*")
	if err != nil || strings.Join(left, " ") != strings.Join(kept, " ") {
		t.Errorf("left are %v, %v; want %v", left, err, kept)
	}
}

func TestTheUnitIsCorrectAndHardened(t *testing.T) {
	root, _ := staged(t)
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "systemd-analyze", args...)
		out, err := cmd.CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			t.Fatal("systemd-analyze is missing: apt-get install systemd")
		}
		return string(out), err
	}
	const units, unit = "/usr/lib/systemd/system", "/usr/lib/systemd/system/tocsin.service"
	// Targets on which every unit depends.
	targets, err := filepath.Glob(units + "/*.target")
	if err != nil || len(targets) == 0 {
		t.Fatalf("systemd's targets: %v, %v (apt-get install systemd)", targets, err)
	}
	for _, target := range targets {
		text, err := os.ReadFile(target)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, target), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// It exits with 0 whatever it reports.
	if out, err := run("verify", "--man=no", "--root="+root, unit); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := run("security", "--offline=true", "--threshold=20", "--root="+root, unit); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

func TestTheRPMPackageHoldsTheSameFiles(t *testing.T) {
	packages, err := filepath.Glob(filepath.Join(released(t), "*.x86_64.rpm"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("packages: %v, %v", packages, err)
	}
	out, err := exec.CommandContext(t.Context(), "rpm", "--query", "--list", "--package", packages[0]).Output()
	if err != nil {
		t.Fatalf("rpm: %v (rpm is needed here: apt-get install rpm)", err)
	}
	for _, file := range []string{"/usr/bin/tocsin", "/usr/lib/systemd/system/tocsin.service", "/etc/tocsin/tocsin.yaml", "/usr/share/doc/tocsin/docs/install.md", "/usr/share/doc/tocsin/deploy/prometheus/rules.yaml", "/usr/share/doc/tocsin/tocsin.cdx.json"} {
		if !strings.Contains(string(out), file+"\n") {
			t.Errorf("%s is not in the package:\n%s", file, out)
		}
	}
}
