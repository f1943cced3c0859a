# Everything that is done to this repository by hand or by a machine. `make` alone lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:

# What the targets accept, as in `make test-go PKG=./evaluator/... RUN=TestTies`.
PKG     ?= ./...
RUN     ?=
BENCH   ?= .
ARGS    ?=
SEEDS   ?=
FORM    ?=
TIMEOUT ?= 15m

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
	@echo '  make run ARGS="--reset"; make test-go PKG=./evaluator/... RUN=TestTies; make bench-go BENCH=Commit'

.PHONY: run
run: build ## Build everything, start databases, Tocsin and demo traffic, and print the address
	bin/devstack up --tocsin bin/tocsin $(ARGS)

.PHONY: test
test: test-go test-web test-browser ## Run every test, against real databases and in a real browser

.PHONY: test-go
test-go: bin/devstack ## Run the Go tests (PKG=./..., RUN=pattern, RACE=, TIMEOUT=15m)
	@$(if $(RACE),,echo 'No C compiler found, or RACE is empty: the tests run without the race detector.')
	set -o pipefail; bin/devstack run -- go test -json $(RACE) -shuffle=on -timeout $(TIMEOUT) $(if $(RUN),-run '$(RUN)') $(PKG) | go run ./internal/checks tests
	@# Modules of their own, without the race detector: what they compile is mostly others'.
	$(if $(filter ./...,$(PKG)),bin/devstack run -- go -C internal/clickhouse/oteltest test -timeout $(TIMEOUT) $(if $(RUN),-run '$(RUN)') ./...)
	@# Without the race detector, which has goroutines run in an order of its own choice, so that no seed
	@# repeats itself, and crashes in timers of bubbles (Go 1.26.8).
	$(if $(filter ./...,$(PKG)),go test -timeout $(TIMEOUT) $(if $(RUN),-run '$(RUN)') ./internal/simulate)
	$(if $(filter ./...,$(PKG)),go -C internal/bench test -timeout $(TIMEOUT) $(if $(RUN),-run '$(RUN)') ./...)

.PHONY: test-web
test-web: web/node_modules/.installed ## Run the tests of the web application
	cd web && npm test

.PHONY: test-browser
test-browser: build ## Run the browser tests against the real binary (needs Chromium; CHROMIUM=path)
	@if ! grep -q '"test:browser"' web/package.json; then \
		echo 'There are no browser tests.'; \
	elif browser=$${CHROMIUM:-$$(command -v chromium || command -v chromium-browser || command -v google-chrome)}; then \
		cd web && CHROMIUM="$$browser" ../bin/devstack run -- npm run test:browser; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'No Chromium found: install the package chromium, or name the program in CHROMIUM.' >&2; exit 1; \
	else \
		echo 'BROWSER TESTS NOT RUN: no Chromium found. Install the package chromium, or name the program in CHROMIUM.'; \
	fi

.PHONY: storm
storm: build ## Measure the inbox with 100,000 alerts and during a storm, in a real browser (STORM_ALERTS=100000)
	cd web && STORM_ALERTS=$(or $(STORM_ALERTS),100000) CHROMIUM="$${CHROMIUM:-$$(command -v chromium || command -v chromium-browser || command -v google-chrome)}" \
		../bin/devstack run -- node --test --test-reporter=spec browser/storm.test.mjs

# Postgres writes to the disk as in production, and says when it committed.
bench_run = bin/devstack run --durable --postgres-setting track_commit_timestamp=on -- go -C internal/bench run .

.PHONY: bench
bench: bin/devstack bin/tocsin ## Measure Tocsin beside floors and peers into docs/performance (ARGS="--only B2,B4 --soak --huge")
	$(bench_run) --out ../../docs/performance $(ARGS)

.PHONY: bench-quick
bench-quick: bin/devstack bin/tocsin ## The same, small: some minutes, and nothing is written
	$(bench_run) --quick $(ARGS)

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

.PHONY: pictures
pictures: web/node_modules/.installed ## Take the README's pictures of a Tocsin that runs (URL='the link that make run prints')
	cd web && node browser/pictures.mjs '$(URL)'

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
test-image: web/dist/index.html bin/devstack ## Run the image on real databases (needs podman, and root where it has no user namespaces)
	@if command -v podman >/dev/null; then \
		bin/devstack run -- go -C internal/release test -timeout $(TIMEOUT) -tags podman -run TestTheImageRuns ./...; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'No podman found: install the packages podman, runc and netavark.' >&2; exit 1; \
	else \
		echo 'THE IMAGE WAS NOT RUN: no podman found. Install the packages podman, runc and netavark.'; \
	fi

.PHONY: test-boot
test-boot: web/dist/index.html bin/devstack ## Install the Debian package under a real systemd (needs root and mmdebstrap)
	@if [ "$$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; then \
		rm -rf bin/boot && go -C internal/release run . --out ../../bin/boot --arch $$(go env GOARCH) packages && \
		bin/devstack run -- internal/release/boot.sh bin/boot/*.deb; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'The package was not installed: root and the package mmdebstrap are needed.' >&2; exit 1; \
	else \
		echo 'THE PACKAGE WAS NOT INSTALLED: root and the package mmdebstrap are needed.'; \
	fi

.PHONY: test-deploy
test-deploy: bin/devstack bin/tocsin ## Test the folder deploy, updates and poolers (needs prometheus, promtool and pgbouncer in the PATH)
	@# Linted and tidied here alone: it needs several hundred modules that nothing else does.
	go -C internal/deploy mod tidy -diff
	cd internal/deploy && $(tool) golangci-lint run --config ../../.golangci.yml
	bin/devstack run -- go -C internal/deploy test -timeout $(TIMEOUT) $(if $(TAGS),-tags '$(TAGS)') $(if $(RUN),-run '$(RUN)') ./...

# The version before: the last one whose replicas cannot work beside those of this version.
BEFORE ?= 729f274

.PHONY: test-update
test-update: bin/devstack bin/tocsin ## Update a database at work from the version before (BEFORE=commit; needs its history)
	@if git cat-file -e '$(BEFORE)^{commit}' 2>/dev/null; then \
		set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
		git archive '$(BEFORE)' | tar -x -C "$$folder"; \
		CGO_ENABLED=0 go -C "$$folder" build -o "$$folder/tocsin" ./cmd/tocsin; \
		TOCSIN_TEST_BEFORE="$$folder/tocsin" bin/devstack run -- go -C internal/deploy test -timeout $(TIMEOUT) -tags update -run TestAnUpdate -v .; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'The update was not tested: the commit $(BEFORE) is missing. Clone with its history.' >&2; exit 1; \
	else \
		echo 'THE UPDATE WAS NOT TESTED: the commit $(BEFORE) is missing. Clone with its history.'; \
	fi

.PHONY: test-backup
test-backup: bin/devstack bin/tocsin ## Dump a database at work, lose it, and restore it (needs Debian's package postgresql)
	@if ls /usr/lib/postgresql/*/bin/pg_dump >/dev/null 2>&1; then \
		bin/devstack run -- go -C internal/deploy test -timeout $(TIMEOUT) -tags update -run TestABackup -v .; \
	elif [ "$${CI:-}" = true ]; then \
		echo 'The backup was not tested: the package postgresql is needed.' >&2; exit 1; \
	else \
		echo 'THE BACKUP WAS NOT TESTED: the package postgresql is needed.'; \
	fi

.PHONY: dashboard
dashboard: ## Write the Grafana dashboard again
	go -C internal/deploy run ./dashboard > deploy/grafana/tocsin.json

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
