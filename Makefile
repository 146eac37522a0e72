# GNU make 3.81 or newer. `make` lists the targets.

GO       ?= go
FUZZTIME ?= 10s

# What a run measures; each becomes a flag of `percore run` and `percore cloud run`.
SUITE      ?=
PROFILE    ?=
PRESET     ?=
CANDIDATES ?=
SCENARIOS  ?=
PHASES     ?=
FLAVOUR    ?=
RESUME     ?=
V          ?=

# What `percore cloud run` takes besides.
KEEP       ?=
MAX_COST   ?=
YES        ?=
REGION     ?=
SSH_FROM   ?=

# RESUME as it was called for cloud-run.
RUN        ?=

RUN_FLAGS = \
	$(if $(SUITE),--suite '$(SUITE)') \
	$(if $(PROFILE),--profile '$(PROFILE)') \
	$(if $(PRESET),--preset '$(PRESET)') \
	$(if $(CANDIDATES),--candidates '$(CANDIDATES)') \
	$(if $(SCENARIOS),--scenarios '$(SCENARIOS)') \
	$(if $(PHASES),--phases '$(PHASES)') \
	$(if $(FLAVOUR),--flavour '$(FLAVOUR)') \
	$(if $(or $(RESUME),$(RUN)),--resume '$(or $(RESUME),$(RUN))') \
	$(if $(V),-v)

CLOUD_FLAGS = $(RUN_FLAGS) \
	$(if $(REGION),--region '$(REGION)') \
	$(if $(SSH_FROM),--ssh-from '$(SSH_FROM)') \
	$(if $(MAX_COST),--max-cost '$(MAX_COST)') \
	$(if $(filter-out 0,$(KEEP)),--keep) \
	$(if $(filter-out 0,$(YES)),--yes)

# Some distributions ship a Go that never fetches the toolchain a go.mod asks
# for. Unless the user has decided otherwise, in the environment or by
# `go env -w`, it may.
ifeq ($(origin GOTOOLCHAIN),undefined)
ifeq ($(shell sed -n 's/^GOTOOLCHAIN=//p' "$$($(GO) env GOENV 2>/dev/null)" 2>/dev/null),)
export GOTOOLCHAIN := auto
endif
endif

export NO_INSTALL FLAVOUR

# What run.json records as the version of percore.
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help local-run cloud-run build doctor test test-unit test-integration cross release lint bench fuzz tools clean-containers bootstrap-test

help: ## list the targets
	@echo "percore: how many requests does one core carry, on your hardware?"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "Variables of local-run: PROFILE=auto|m4pro|small|FILE  PRESET=smoke|quick|full  CANDIDATES=go,php-fpm,frankenphp"
	@echo "  SCENARIOS=auth,read,write  PHASES=rate,ceiling  FLAVOUR=auto|published|debian  RESUME=RUN  V=1  NO_INSTALL=1"
	@echo "Variables of cloud-run: those, with PROFILE=aws-graviton|aws-x86|FILE, and KEEP=1  MAX_COST=dollars  YES=1"
	@echo "  REGION=region  SSH_FROM=network"

local-run: ## measure all candidates on this machine's Docker and print the tables
	@scripts/bootstrap run
	@$(MAKE) --no-print-directory build
	@scripts/with-engine bin/percore run $(RUN_FLAGS)

# A fresh machine needs Go, ssh and AWS credentials: no Docker runs here, and
# the driver finds or installs Terraform and Ansible itself.
cloud-run: ## make three EC2 instances, measure on them, print the tables and destroy them
	@scripts/bootstrap cloud
	@$(MAKE) --no-print-directory build
	@bin/percore cloud run $(CLOUD_FLAGS)

build: ## compile the driver and the sampler to bin/
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/...

doctor: build ## say what is there, what is missing and how to get it
	@scripts/with-engine bin/percore doctor $(if $(FLAVOUR),--flavour '$(FLAVOUR)') $(if $(PROFILE),--profile '$(PROFILE)')

test: bootstrap-test ## everything: linters, cross builds, unit and integration tests
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory cross
	@$(MAKE) --no-print-directory test-unit
	@$(MAKE) --no-print-directory test-integration

bootstrap-test:
	@scripts/bootstrap test

# The race detector needs a C compiler, which `make test` installs. Under it the
# guest samples in another way than on a host, so its tests run without as well.
# Lint vets everything.
test-unit: ## unit tests, with the race detector; need no Docker
	$(GO) test -vet off -race $(if $(V),-v) ./...
	$(GO) test -vet off $(if $(V),-v) ./cmd/guest ./internal/guest/...

# Those that use the machine's engine run one package at a time, since they share
# its cores too; beside them run those that do without.
test-integration: ## tests against a real Docker Engine, Terraform, Ansible, a browser
	@echo "integration tests: image builds come first and can take long"
	@scripts/with-engine env GO='$(GO)' $(GO) run ./scripts/integration $(if $(V),-v)

# Compiles what it vets. What is thrown away needs no optimization, which is most
# of the time that the AWS client takes to compile; the flags are those with which
# the test of the release links the commands, so that nothing compiles twice.
cross: ## vet for the other platforms
	@for target in darwin/arm64 linux/arm64; do \
		echo "vet for $$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 \
			$(GO) vet -trimpath -gcflags 'all=-N -l' -tags integration ./... || exit 1; \
	done

release: ## archives of the command for every platform in dist/, with checksums
	$(GO) run ./scripts/release -version '$(VERSION)' -out dist

lint: tools ## gofmt, golangci-lint, govulncheck, shellcheck, ansible-lint
	@scripts/lint

# Pinned by scripts/tools/go.mod, apart from what percore itself links.
tools:
	@mkdir -p bin/tools
	@cd scripts/tools && $(GO) build -o ../../bin/tools/ tool

bench: build ## benchmarks, those that need Docker too
	$(GO) test -run '^$$' -bench . ./...
	scripts/with-engine $(GO) test -tags integration -run '^$$' -bench . -p 1 -timeout 80m $$(GO='$(GO)' $(GO) run ./scripts/integration -packages)

fuzz: ## fuzz every parser for FUZZTIME (10s) each
	@GO='$(GO)' scripts/fuzz '$(FUZZTIME)'

clean-containers: build ## remove percore's containers, networks and volumes, and nothing else
	@scripts/with-engine bin/percore clean
