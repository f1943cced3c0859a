# Everything that is done to this repository by hand or by a machine. `make` alone lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:

# What the targets accept, as in `make test-go PKG=./evaluator/... RUN=TestFailover`.
PKG     ?= ./...
RUN     ?=
BENCH   ?= .
ARGS    ?=
SEEDS   ?=
FORM    ?=
TIMEOUT ?= 15m
CHECKS  ?=

# The race detector needs a C compiler; without one the tests run without it, and say so. RACE= turns it off.
RACE ?= $(if $(shell command -v "$$(go env CC)"),-race)

# Where git refuses to answer (no clone, or one that belongs to another user), binaries carry no revision.
ifeq ($(shell git rev-parse --verify HEAD 2>/dev/null),)
export GOFLAGS := $(GOFLAGS) -buildvcs=false
endif

# The tools are pinned in tools.mod and need no C compiler.
tool      = CGO_ENABLED=0 go tool -modfile=$(CURDIR)/tools.mod
GENERATED = internal/postgres/pgq api/openapi.gen.go client/client.gen.go web/src/api/schema.gen.ts internal/checks/migrations.sum docs/settings.md

web_sources := $(shell find web -type f -not -path '*/node_modules/*' -not -path 'web/dist/*' -not -name '*.go' 2>/dev/null)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo '  make run ARGS="--reset"; make test-go PKG=./evaluator/... RUN=TestFailover; make bench-go BENCH=Commit'

.PHONY: run
run: build ## Build everything, start databases, Tocsin and demo traffic, and print the address
	bin/devstack up --tocsin bin/tocsin $(ARGS)

.PHONY: test
test: test-go test-web test-browser ## Run every test, against real databases and in a real browser

# The packages of the product that start goroutines: internal/checks holds this list to the sources. Within internal/app
# the race detector sees whole replicas, with the stores, senders and templates that their goroutines use. The simulation
# and the exploration never run with it: it has goroutines run in an order of its own choice, so that no seed repeats
# itself, and crashes in timers of bubbles (Go 1.26.8).
raced = ./internal/app ./api ./evaluator ./evaluator/window/... ./notify/dispatch ./notify/bus/... ./notify/refresh ./notify/resend ./internal/access/oidc

# What takes longest begins first, so that no processor is idle at the end. The simulation runs in virtual time, and
# begins while everything else is still compiled; torture would often find too little time to prove anything meanwhile.
longest = ./internal/simulate ./cmd/devstack/internal/torture ./cmd/devstack/internal/stack ./internal/postgres ./internal/clickhouse
# The evaluator's scenarios of very many passes are left out with the race detector, which would take a minute over them.
unraced = $(longest) $(filter-out $(shell go list $(raced)),$(shell go list ./...)) ./evaluator

with_databases = TOCSIN_TEST_PROGRAMS=$(CURDIR)/bin bin/devstack run --
# A test program is linked each time and hardly ever debugged. Without the tables for that, it takes a third less. With
# -trimpath, nothing is compiled again that make build or the tests of another clone compiled.
linked = -trimpath -ldflags='-s -w'
# Test programs are small and leave much garbage. Only they: Go's compiler has a better setting of its own.
collected = -exec 'env GOGC=200'
go_test = $(with_databases) go test $(linked) -timeout $(TIMEOUT)
# Without vet, which make lint runs with more checks.
# One package at a time of each kind: together they keep two processors busy, and more at once only makes each wait longer.
go_test_json = go test -p 1 -json $(linked) $(collected) -vet=off -shuffle=on -timeout $(TIMEOUT) $(if $(RUN),-run '$(RUN)')
# The race detector alone needs C. Without it, the tests are compiled as the programs are, and share what make build compiled.
without_c = env CGO_ENABLED=0
# Modules of their own, without the race detector: what they compile is mostly others'.
modules = $(foreach module,internal/clickhouse/oteltest internal/bench,-- $(without_c) go -C $(module) test -p 1 -json -trimpath -timeout $(TIMEOUT) $(if $(RUN),-run '$(RUN)') ./...)

# Only for the continuous integration, whose machines are busy with others' work as well: a test that failed may pass by
# itself. It is named, and is to be repaired; see internal/checks for what is never tried again.
# With the race detector and without it: either leaves out some tests.
again = [ "$${CI:-}" = true ] && [ -s bin/failed-tests ] && while read -r package pattern; do \
		echo "Trying again: $$package $$pattern"; for race in $(RACE) ''; do \
			$(go_test) $$race -count=1 -run "$$pattern" "$$package" </dev/null || exit 1; done; \
		echo "UNSTABLE: passed by itself: $$package $$pattern"; done < bin/failed-tests

.PHONY: test-go
test-go: bin/devstack bin/tocsin ## Run the Go tests (PKG=./..., RUN=pattern, RACE=, TIMEOUT=15m, CHECKS=1000 of a package with properties)
	@$(if $(RACE),,echo 'No C compiler found, or RACE is empty: the tests run without the race detector.')
	@# Side by side: much of what the tests of replicas take is waiting.
	@$(with_databases) go run ./internal/checks tests bin/failed-tests \
		$(if $(filter ./...,$(PKG)),-- $(go_test_json) $(RACE) $(raced) -- $(without_c) $(go_test_json) $(unraced) $(modules),-- $(go_test_json) $(RACE) $(PKG) $(if $(CHECKS),-rapid.checks=$(CHECKS))) \
		|| { $(again); }

.PHONY: test-web
test-web: web/node_modules/.installed ## Run the tests of the web application
	cd web && npm test

# The browser of the tests, as the shell finds it. The headless shell is Chromium without its windows: the tests take it two
# thirds of the time.
chromium = $${CHROMIUM:-$$(command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome)}

.PHONY: test-browser
test-browser: ## Run the browser tests against the real binary (needs Chromium; CHROMIUM=path)
	@# A make of its own: within make test the program was built before the pages were, and is not built again.
	@$(MAKE) --no-print-directory build
	@if ! grep -q '"test:browser"' web/package.json; then \
		echo 'There are no browser tests.'; \
	elif browser=$(chromium); then \
		cd web && CHROMIUM="$$browser" ../bin/devstack run -- npm run test:browser; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'No Chromium found: install the package chromium-headless-shell, or name the program in CHROMIUM.' >&2; exit 1; \
	else \
		echo 'BROWSER TESTS NOT RUN: no Chromium found. Install the package chromium-headless-shell, or name the program in CHROMIUM.'; \
	fi

.PHONY: storm
storm: build ## Measure the inbox with 100,000 alerts and during a storm, in a real browser (STORM_ALERTS=100000)
	cd web && STORM_ALERTS=$(or $(STORM_ALERTS),100000) CHROMIUM="$(chromium)" \
		../bin/devstack run -- node --test --test-reporter=spec browser/storm.test.mjs

# Postgres writes to the disk as in production, and says when it committed.
bench_run = bin/devstack run --durable --postgres-setting track_commit_timestamp=on -- go -C internal/bench run .

.PHONY: bench
bench: bin/devstack bin/tocsin ## Measure Tocsin beside floors and peers into docs/performance (ARGS="--only B2,B4 --soak --huge")
	$(bench_run) --out ../../docs/performance $(ARGS)

.PHONY: bench-quick
bench-quick: bin/devstack bin/tocsin ## The same, small: some minutes, and nothing is written
	$(bench_run) --quick $(ARGS)

.PHONY: bench-redraw
bench-redraw: ## Write the tables and plots in docs/performance again, from its results.json
	go -C internal/bench run . redraw --out ../../docs/performance

.PHONY: bench-go
bench-go: bin/devstack ## Run the benchmarks of Go packages (PKG=./..., BENCH=pattern)
	bin/devstack run -- go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout $(TIMEOUT) $(PKG)

.PHONY: torture
torture: bin/devstack ## Break everything around Tocsin, seed after seed, and compare (SEEDS=20, FORM=all, ARGS="--seed 7 -v")
	bin/devstack run -- bin/devstack torture $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FORM),--form $(FORM)) $(ARGS)

.PHONY: simulate
simulate: ## Simulate the whole engine in virtual time, seed after seed (SEEDS=1000, ARGS="-seed 7 -history -steps 300")
	go test -count=1 -timeout 0 -run 'TestSeeds$$' -v ./internal/simulate -progress -seeds $(or $(SEEDS),1000) $(ARGS)

.PHONY: guards
guards: ## Take away one guard after the other, and hold that the simulation notices each
	go test -count=1 -timeout $(TIMEOUT) -tags guards -run 'TestGuards' -v ./internal/simulate

.PHONY: spec
spec: spec/node_modules/.installed ## Check the specification, and explore it within bounds (ARGS=-wide for larger ones)
	cd spec && npm run --silent check
	go test -count=1 -timeout 0 -v ./internal/explore $(ARGS)

.PHONY: generate-spec
generate-spec: ## Write the steps that internal/explore takes into the specification, to be taken there
	go test -count=1 -run TestTheSpecificationIsTheSameModel ./internal/explore -update

spec/node_modules/.installed: spec/package-lock.json
	cd spec && npm install --no-save
	touch $@

.PHONY: lint
lint: lint-go lint-web lint-api lint-rules ## Check style, types, the import map and Prometheus's rules
	bash -n .ci/run
	bash -n internal/release/boot.sh

.PHONY: lint-go
lint-go:
	$(tool) golangci-lint run
	cd internal/bench && $(tool) golangci-lint run --config ../../.golangci.yml
	cd internal/release && $(tool) golangci-lint run --config ../../.golangci.yml

.PHONY: lint-web
lint-web: web/node_modules/.installed
	cd web && npm run lint && npm run typecheck

.PHONY: lint-api
lint-api: api/lint/node_modules/.installed
	cd api/lint && npx redocly lint --config redocly.yaml

.PHONY: lint-rules
lint-rules:
	@if command -v promtool >/dev/null; then \
		promtool check rules --lint=all --lint-fatal deploy/prometheus/rules.yaml && promtool test rules deploy/prometheus/rules_test.yaml; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'No promtool found: install the package prometheus.' >&2; exit 1; \
	else \
		echo 'THE RULES OF PROMETHEUS WERE NOT CHECKED: no promtool found. Install the package prometheus.'; \
	fi

api/lint/node_modules/.installed: api/lint/package-lock.json
	cd api/lint && npm install --no-save
	touch $@

.PHONY: fmt
fmt: web/node_modules/.installed ## Format Go and web code
	$(tool) golangci-lint fmt
	cd web && npm run fmt

.PHONY: generate
generate: web/node_modules/.installed ## Regenerate what is written from SQL, the OpenAPI document and the settings
	$(tool) sqlc compile
	rm -f internal/postgres/pgq/*.go
	$(tool) sqlc generate
	cd api && $(tool) oapi-codegen -config oapi-codegen.yaml openapi.yaml
	cd client && $(tool) oapi-codegen -config oapi-codegen.yaml ../api/openapi.yaml
	cd web && npm run generate
	go run ./internal/checks record
	go run ./cmd/tocsin config reference > docs/settings.md.new && mv docs/settings.md.new docs/settings.md

.PHONY: verify
verify: generate ## Check that generated code, modules, migrations, lock files and texts are as they must be
	@stale=$$(git status --porcelain -- $(GENERATED)); if [ -n "$$stale" ]; then \
		git --no-pager diff --stat -- $(GENERATED); \
		printf '%s\n' "$$stale" 'Generated files differ from the commit: run make generate and commit the result.' >&2; exit 1; fi
	go mod tidy -diff
	@# -e: of what the tests of the Collector's own dependencies import, not every proxy has everything.
	go -C internal/clickhouse/oteltest mod tidy -e -diff
	go -C internal/bench mod tidy -diff
	go -C internal/release mod tidy -diff
	go mod verify
	go run ./internal/checks
	node --test docs/site/model.test.mjs >/dev/null || node --test docs/site/model.test.mjs

.PHONY: receiver-pictures
receiver-pictures: ## Draw the handbook's pictures of what receivers show
	go test ./notify/preset/picture -update

.PHONY: icons
icons: web/node_modules/.installed ## Draw the icons for home screens from web/public/favicon.svg (needs Chromium)
	cd web && node browser/icons.mjs

.PHONY: pictures
pictures: web/node_modules/.installed ## Take the README's pictures of a Tocsin that runs (URL='the link that make run prints')
	cd web && node browser/pictures.mjs '$(URL)'
	go run ./internal/checks labels

.PHONY: docs
docs: docs/site/node_modules/.installed ## Build the documentation as a site, with a search, into docs/site/dist (ARGS="--base /tocsin/")
	cd docs/site && npm run --silent build -- $(ARGS)

docs/site/node_modules/.installed: docs/site/package-lock.json
	cd docs/site && npm install --no-save
	touch $@

.PHONY: vulnerabilities
vulnerabilities: ## Ask the Go vulnerability database about what is linked (needs the internet)
	$(tool) govulncheck ./...

.PHONY: image
image: web/dist/index.html ## Build the container image into dist (ARGS="--push registry.example.com/tocsin")
	go -C internal/release run . image $(ARGS)

.PHONY: packages
packages: web/dist/index.html ## Build the Debian and RPM packages into dist
	go -C internal/release run . packages $(ARGS)

.PHONY: release
release: web/dist/index.html ## Build image, packages and archives into dist, with their checksums
	go -C internal/release run . all $(ARGS)

.PHONY: test-release
test-release: web/dist/index.html ## Test what make release builds (needs dpkg, rpm and systemd-analyze; no root)
	go -C internal/release test -timeout $(TIMEOUT) $(if $(RUN),-run '$(RUN)') ./...

.PHONY: test-image
test-image: web/dist/index.html bin/devstack ## Run the image on real databases (needs podman, root where it has no user namespaces, and qemu-user)
	@if command -v podman >/dev/null && command -v qemu-aarch64 >/dev/null; then \
		bin/devstack run -- go -C internal/release test -timeout $(TIMEOUT) -tags podman -run 'TestTheImageRuns|TestTheOtherArchitecture' ./...; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'No podman or qemu found: install the packages podman, runc, netavark and qemu-user.' >&2; exit 1; \
	else \
		echo 'THE IMAGE WAS NOT RUN: no podman or qemu found. Install the packages podman, runc, netavark and qemu-user.'; \
	fi

.PHONY: test-boot
test-boot: web/dist/index.html bin/devstack ## Install the packages under a real systemd (needs root and mmdebstrap)
	@if [ "$$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; then \
		rm -rf bin/boot && go -C internal/release run . --out ../../bin/boot --arch $$(go env GOARCH) packages && \
		bin/devstack run -- internal/release/boot.sh bin/boot/*.deb; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'The packages were not installed: root and the package mmdebstrap are needed.' >&2; exit 1; \
	else \
		echo 'THE PACKAGES WERE NOT INSTALLED: root and the package mmdebstrap are needed.'; \
	fi

.PHONY: test-deploy
test-deploy: bin/devstack bin/tocsin ## Test the folder deploy, updates and poolers (needs prometheus, promtool and pgbouncer in the PATH)
	@# Linted and tidied here alone: it needs several hundred modules that nothing else does.
	go -C internal/deploy mod tidy -diff
	cd internal/deploy && $(tool) golangci-lint run --config ../../.golangci.yml
	bin/devstack run -- go -C internal/deploy test -timeout $(TIMEOUT) $(if $(TAGS),-tags '$(TAGS)') $(if $(RUN),-run '$(RUN)') ./...
	@case "$$(pgbouncer --version | head -n 1)" in 'PgBouncer 1.'[0-9].*|'PgBouncer 1.1'[0-9].*|'PgBouncer 1.20.'*) \
		echo 'PREPARED STATEMENTS THROUGH PGBOUNCER WERE NOT TESTED: they need 1.21 or newer.';; esac

# Kubernetes, etcd and Helm, as built from their modules; internal/deploy/cluster pins them.
KUBERNETES = v1.37.2
cluster = $(HOME)/.cache/tocsin/cluster-$(KUBERNETES)
crds = github.com/prometheus-operator/prometheus-operator@v0.85.0

.PHONY: test-chart
test-chart: $(cluster)/complete ## Install the chart on a real Kubernetes API server (builds it first: ten minutes, 3 GB of build cache, once)
	TOCSIN_TEST_CLUSTER=$(cluster) TOCSIN_TEST_CRDS="$$(go mod download -json $(crds) | sed -n 's/^\t"Dir": "\(.*\)",$$/\1/p')/example/prometheus-operator-crd" \
		go -C internal/deploy test -timeout $(TIMEOUT) -tags cluster -run TestARealAPIServer -v .

$(cluster)/complete: internal/deploy/cluster/go.mod
	@mkdir -p $(cluster)
	CGO_ENABLED=0 go -C internal/deploy/cluster build -o $(cluster)/etcd go.etcd.io/etcd/server/v3
	CGO_ENABLED=0 go -C internal/deploy/cluster build -o $(cluster)/helm helm.sh/helm/v4/cmd/helm
	@# The version as the project's own build states it.
	CGO_ENABLED=0 go -C internal/deploy/cluster build -o $(cluster)/kube-apiserver -ldflags '-X k8s.io/component-base/version.gitVersion=$(KUBERNETES)' k8s.io/kubernetes/cmd/kube-apiserver
	touch $@

# The version before: the last one whose replicas cannot work beside those of this version.
BEFORE ?= 729f274

# A version before whose replicas do work beside those of this version, with its schema; empty while no commit is one.
BESIDE ?=

# build_before COMMIT NAME: builds the program of a commit as $$folder/NAME.
build_before = mkdir "$$folder/$(2)-source"; git archive '$(1)' | tar -x -C "$$folder/$(2)-source"; \
		CGO_ENABLED=0 go -C "$$folder/$(2)-source" build -o "$$folder/$(2)" ./cmd/tocsin

.PHONY: test-update
test-update: bin/devstack bin/tocsin ## Update a database at work from the version before (BEFORE=commit; needs its history)
	@if git cat-file -e '$(BEFORE)^{commit}' 2>/dev/null; then \
		set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; $(call build_before,$(BEFORE),before); \
		TOCSIN_TEST_BEFORE="$$folder/before" bin/devstack run -- go -C internal/deploy test -timeout $(TIMEOUT) -tags update -run TestAnUpdate -v .; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'The update was not tested: the commit $(BEFORE) is missing. Clone with its history.' >&2; exit 1; \
	else \
		echo 'THE UPDATE WAS NOT TESTED: the commit $(BEFORE) is missing. Clone with its history.'; \
	fi

.PHONY: test-rollback
test-rollback: bin/devstack bin/tocsin ## Go back to versions before (BESIDE, BEFORE=commit; needs their history and Debian's package postgresql)
	@$(if $(BESIDE),,echo 'NO VERSION BEFORE WORKS WITH THIS SCHEMA: only the way back by a dump is tested.')
	@if git cat-file -e '$(BEFORE)^{commit}' 2>/dev/null && { [ -z '$(BESIDE)' ] || git cat-file -e '$(BESIDE)^{commit}' 2>/dev/null; } && ls /usr/lib/postgresql/*/bin/pg_dump >/dev/null 2>&1; then \
		set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; $(call build_before,$(BEFORE),before); $(if $(BESIDE),$(call build_before,$(BESIDE),beside);) \
		TOCSIN_TEST_BEFORE="$$folder/before" TOCSIN_TEST_BESIDE="$$folder/beside" \
			bin/devstack run -- go -C internal/deploy test -timeout $(TIMEOUT) -tags update -run '$(if $(BESIDE),TestARollback|)TestABackupIsTheWayBack' -v .; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'The rollback was not tested: the commits $(BEFORE) and $(BESIDE), and the package postgresql, are needed.' >&2; exit 1; \
	else \
		echo 'THE ROLLBACK WAS NOT TESTED: the commits $(BEFORE) and $(BESIDE), and the package postgresql, are needed.'; \
	fi

.PHONY: test-backup
test-backup: bin/devstack bin/tocsin ## Dump a database at work, lose it, and restore it (needs Debian's package postgresql)
	@if ls /usr/lib/postgresql/*/bin/pg_dump >/dev/null 2>&1; then \
		bin/devstack run -- go -C internal/deploy test -timeout $(TIMEOUT) -tags update -run TestABackupIsRestored -v .; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'The backup was not tested: the package postgresql is needed.' >&2; exit 1; \
	else \
		echo 'THE BACKUP WAS NOT TESTED: the package postgresql is needed.'; \
	fi

.PHONY: dashboard
dashboard: ## Write the Grafana dashboard again
	go -C internal/deploy run ./dashboard > deploy/grafana/tocsin.json

.PHONY: dashboard-picture
dashboard-picture: ## Draw the dashboard with the data of a Tocsin that runs into docs/pictures (ADDRESS=127.0.0.1:8080; needs prometheus; ten minutes)
	go -C internal/deploy run ./dashboard -picture ../../docs/pictures/dashboard.svg -scrape '$(ADDRESS)' $(ARGS)

.PHONY: build
build: web/dist/index.html bin/devstack bin/tocsin ## Build the web application, bin/tocsin and bin/devstack

# Always: go build knows best what is out of date.
.PHONY: bin/devstack
bin/devstack:
	CGO_ENABLED=0 go build -trimpath -o bin/devstack ./cmd/devstack

.PHONY: bin/tocsin
bin/tocsin:
	CGO_ENABLED=0 go build -trimpath -o bin/tocsin ./cmd/tocsin

# Not npm ci: it refuses a lock file that leaves out other platforms' packages (npm 11.16 and later). This installs what
# the lock file says and does not write to it; verify holds it to package.json.
web/node_modules/.installed: web/package-lock.json
	cd web && npm install --no-save
	touch $@

web/dist/index.html: web/node_modules/.installed $(web_sources)
	cd web && npm run build
	touch $@
