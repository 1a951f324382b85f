# Each target is a line or two that calls a program; the programs do the work and explain themselves with --help.

# What is built, and what it is called. Set on the command line or in the environment, as with operator-sdk.
VERSION ?= $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
IMAGE_TAG_BASE ?= quay.io/example/memcached-operator
IMG ?= $(IMAGE_TAG_BASE):v$(VERSION)
BUNDLE_IMG ?= $(IMAGE_TAG_BASE)-bundle:v$(VERSION)
CATALOG_IMG ?= $(IMAGE_TAG_BASE)-catalog:v$(VERSION)
# The memcached image that the operator uses unless an object names another.
OPERAND_IMG ?= $(shell sed -n '/RELATED_IMAGE_MEMCACHED/{n;s/^ *value: *//p;}' config/manager/manager.yaml)
CHANNELS ?= alpha
DEFAULT_CHANNEL ?= alpha
BUNDLE_METADATA_OPTS ?= --channels $(CHANNELS) --default-channel $(DEFAULT_CHANNEL)
BUNDLE_GEN_FLAGS ?= -q --strict --overwrite --version $(VERSION) $(BUNDLE_METADATA_OPTS)
# Images are built by olmkit, without a daemon. CONTAINER_TOOL=docker, podman or buildah builds them from the Dockerfiles.
CONTAINER_TOOL ?= olmkit
PUSH_FLAGS ?=
ifeq ($(CONTAINER_TOOL),olmkit)
build-image = $(OLMKIT) image build $(1) --tag $(2)
push-image = $(OLMKIT) image push $(PUSH_FLAGS) $(1)
else
build-image = dev/image-context.sh $(OPERATOR) $(HELPER) $(OLMKIT) && $(CONTAINER_TOOL) build --file $(3) --tag $(2) .
push-image = $(CONTAINER_TOOL) push $(PUSH_FLAGS) $(1)
endif
# The operator image in config/, whatever IMAGE_TAG_BASE is.
RENDERED_IMG = $(shell sed -n 's/^ *image: *//p' config/manager/manager.yaml)
NAMESPACE ?= memcached-operator-system
INSTALLER ?= dist/install.yaml
ignore-not-found ?= false
KUBECTL ?= kubectl

# The programs: quick to build (PROFILE=dev), or as they ship (PROFILE=dist: optimised as a whole, ten minutes). Both are
# static, as .cargo/config.toml says.
PROFILE ?= dev
TARGET ?= $(shell rustc -vV | sed -n 's/^host: //p')
BUILT = $(or $(CARGO_TARGET_DIR),target)/$(TARGET)
BINARIES = $(BUILT)/$(PROFILE:dev=debug)
# A program that is named here is used as it is.
OLMKIT ?= $(BINARIES)/olmkit
built = $(if $(filter file,$(origin OLMKIT)),build)
# What catalog and helper images run; olmkit puts it there by itself.
HELPER ?= $(dir $(OLMKIT))olmkit-helper
OPERATOR ?= $(BINARIES)/memcached-operator
# One call compiles all programs, so they share dependencies with one set of features. TESTS=1 builds the tests too, which add
# features to some dependencies, and reports lints in the same compilation. CI needs all three and compiles nothing twice.
PROGRAMS ?= -p memcached-operator -p olmkit-cli
TESTS ?=
cargo-build = $(if $(TESTS),RUSTC_WORKSPACE_WRAPPER=clippy-driver )cargo build --locked
quick = $(cargo-build) $(if $(TESTS),--workspace --all-targets --features manifests,$(PROGRAMS) --features memcached-operator/manifests)
# The programs that run the checks, and the flows on a node. The example makes cargo select the features of tests, or shared dependencies
# would be compiled once more.
xtask = $(cargo-build) --quiet --workspace --features manifests --bin xtask --example custom_test && $(BUILT)/debug/xtask
node = $(cargo-build) --quiet --workspace --features manifests --bin node --example custom_test && $(BUILT)/debug/node
# The paths of this machine are not in what ships, so two builds of one commit are equal.
ship = RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static --remap-path-prefix=$(CURDIR)=. --remap-path-prefix=$(HOME)=~ --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=~/.cargo" \
	cargo build --locked --profile dist --target $(TARGET)

SHELL = /usr/bin/env bash -o pipefail
.SHELLFLAGS = -ec
.DEFAULT_GOAL := help

##@ General

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*##"} /^[a-z0-9-]+:.*##/ {printf "  \033[36m%-18s\033[0m %s\n", $$1, $$2} /^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)}' Makefile

.PHONY: demo
demo: ## From source to a memcached cluster that OLM installed, on a local node (or CLUSTER=current REGISTRY=host/path)
	[ '$(CLUSTER)' = current ] || dev/cluster/cluster prepare
	export YES=1; $(node) demo

.PHONY: demo-down
demo-down: ## Remove everything the demo created
	$(node) demo-down

##@ Development

.PHONY: generate manifests
generate: manifests ## Alias for manifests
manifests: $(if $(filter file,$(origin OPERATOR)),quick-build) ## Render config/ from the types, the permissions and config/package.yaml
	$(BUILT)/debug/manifests --version $(VERSION) --image $(IMG) $(MANIFESTS_FLAGS)

.PHONY: fmt
fmt: ## Format the code
	cargo fmt --all

.PHONY: lint
lint: ## Check format and lints
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --features manifests -- -D warnings

.PHONY: build quick-build
build: ## Build the operator and olmkit (PROFILE=dist: as they ship)
	$(if $(filter dist,$(PROFILE)),$(ship) $(PROGRAMS),$(quick))
quick-build:
	@$(quick)

.PHONY: run
run: install ## Run the operator on this machine against the current cluster (a second one waits)
	RELATED_IMAGE_MEMCACHED=$(OPERAND_IMG) cargo run --locked --bin memcached-operator -- --leader-elect --health-probe-bind-address=0 --log-format=text

.PHONY: tools
tools: ## Build the pinned Go programs that tests run (once; kept in ~/.cache/olmkit)
	dev/tools/build.sh control-plane

.PHONY: test
test: ## Unit, snapshot and pipeline tests, and the operator with OLM against a real control plane (NAMES=cluster: some)
	$(xtask) test $(NAMES)

.PHONY: check
check: ## Before a commit: format, lints, and the quick tests and generated files of the crates that changed (BASE=main)
	$(xtask) check $(if $(BASE),--base $(BASE))

.PHONY: e2e
e2e: ## On a real node: the demo as assertions, deploy, olmkit's cluster flows, upstream's operator-sdk, OLM itself (FLOWS=olm: some)
	$(node) e2e $(FLOWS)

.PHONY: scaffold-matrix
scaffold-matrix: ## Scaffold projects in all combinations; build, test and package each (COMBINATIONS=plain: one)
	OLMKIT=$(abspath $(OLMKIT)) dev/scaffold-matrix.sh $(COMBINATIONS)

.PHONY: tutorials
tutorials: ## Follow docs/tutorial to the letter on a real control plane (PAGES=docs/tutorial/olm.md: one)
	OLMKIT=$(abspath $(OLMKIT)) dev/tutorial.sh $(PAGES)

.PHONY: drills
drills: ## Failures on a real node: olmkit reports each cause, and its remedy repairs it; commands killed at each write (20 minutes)
	$(node) drills
	cargo test --locked -p olmkit-cli --test cluster killed:: -- --ignored

.PHONY: ci
ci: TESTS = 1
ci: ## Everything that CI runs, side by side: verify, test, e2e
	$(xtask) ci

.PHONY: site
site: ## Build the documentation as a site, in target/site
	$(xtask) site

.PHONY: verify
verify: ## Check format, lints, dependencies, documentation links, and that generated files are current
	$(xtask) verify

##@ Packaging

.PHONY: bundle
bundle: manifests $(built) ## Render and check bundle/ and bundle.Dockerfile
	$(OLMKIT) generate bundle --input-dir config $(BUNDLE_GEN_FLAGS)
	$(OLMKIT) bundle validate bundle

.PHONY: catalog
catalog: $(built) ## Render and check catalog/
	OLMKIT=$(abspath $(OLMKIT)) dev/catalog.sh catalog '$(IMAGE_TAG_BASE)-bundle:v{{.Version}}' $(sort $(wildcard releases/*/bundle)) bundle

# What goes into images is what ships, unless PROFILE=dev is given.
docker-build catalog-build: PROFILE = dist

.PHONY: docker-build docker-push
docker-build: build ## Build the operator image IMG
	$(call build-image,operator $(OPERATOR),$(IMG),Dockerfile)
docker-push: $(built) ## Push the operator image
	$(call push-image,$(IMG))

.PHONY: bundle-build bundle-push
bundle-build: $(built) ## Build the bundle image BUNDLE_IMG
	$(call build-image,bundle bundle,$(BUNDLE_IMG),bundle.Dockerfile)
bundle-push: $(built) ## Push the bundle image
	$(call push-image,$(BUNDLE_IMG))

.PHONY: catalog-build catalog-push
catalog-build: $(built) ## Build the catalog image CATALOG_IMG
	$(call build-image,catalog catalog,$(CATALOG_IMG),catalog.Dockerfile)
catalog-push: $(built) ## Push the catalog image
	$(call push-image,$(CATALOG_IMG))

##@ Deployment without OLM

.PHONY: install uninstall
install: ## Create the custom resource definition
	$(KUBECTL) apply --server-side -f config/crd/bases
uninstall: ## Delete the custom resource definition and every Memcached
	$(KUBECTL) delete --ignore-not-found=$(ignore-not-found) -f config/crd/bases

# The objects with the operator image IMG.
rendered = $(KUBECTL) kustomize config/default | dev/set-image.sh '$(RENDERED_IMG)' '$(IMG)'

.PHONY: deploy undeploy build-installer
deploy: ## Run the operator image IMG in namespace memcached-operator-system
	$(rendered) | $(KUBECTL) apply --server-side -f -
	$(KUBECTL) -n $(NAMESPACE) rollout status deployment/memcached-operator-controller-manager --timeout=180s
build-installer: ## Write the objects of deploy to dist/install.yaml
	mkdir -p $(dir $(INSTALLER)) && $(rendered) > $(INSTALLER).new && mv $(INSTALLER).new $(INSTALLER)
undeploy: ## Delete what deploy created; Memcacheds and their servers stay, unless FORCE=1 deletes them
	FORCE='$(FORCE)' KUBECTL='$(KUBECTL)' dev/undeploy.sh

##@ Local cluster

.PHONY: cluster-up cluster-down cluster-shell
cluster-up: ## Start a real node with OLM on this machine (asks first; YES=1 answers)
	dev/cluster/cluster up
cluster-down: ## Stop the node; only cached images are kept
	dev/cluster/cluster down
cluster-shell: ## A shell with kubectl in the node's network
	dev/cluster/cluster run

# For the scripts in dev/: where the programs are.
.PHONY: print-olmkit print-operator
print-olmkit:
	@echo $(abspath $(OLMKIT))
print-operator:
	@echo $(abspath $(OPERATOR))
