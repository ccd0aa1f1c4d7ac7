# The commands for developers and CI. `make` without a target lists them.
# Everything is built in one profile (dev) and for the whole workspace: then all builds use the same features of dependencies, and
# lint, test, demo and the cluster share the compiled crates. CARGO_TARGET_DIR and KUBEBUILDER_ASSETS are respected.

SHELL := /bin/bash
BUILT := $(or $(CARGO_TARGET_DIR),target)
ORK := $(BUILT)/debug/ork
TESTBED := $(BUILT)/debug/testbed
# The folder of the cluster of `make cluster-up`.
CLUSTER ?= .cluster
# The results of Go's templates, with which those of Orkestra are compared.
GO_CASES := crates/template/src/tests/go.json

.DEFAULT_GOAL := help
.PHONY: static help fmt lint test suite docs deny advisories check crds kube-schemas go-cases go-cases-check helm-cases helm-cases-check fuzz bench-core bench bench-smoke bench-smoke-passes bench-smoke-fleets chaos drift control-plane image image-push image-run reproducible release helm-install registry-tools registry-test gitops-tools gitops-health gitops cluster-up cluster-down demo binaries cargo

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

fmt: cargo ## format the code
	cargo fmt --all

lint: cargo ## check the formatting, and run clippy with warnings denied
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# A live test mostly waits for the control plane, so four run at a time for each core. Backtraces of errors that a test returns are
# off, because they only contain the test runner.
suite: cargo control-plane gitops-health ## run only the tests, against a genuine control plane
	RUST_LIB_BACKTRACE=0 RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc 2>/dev/null || echo 2) * 4))} cargo test --workspace --exclude orkestra-registry-tests --locked

docs: cargo ## build the API documentation, with warnings denied
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

deny: cargo ## check licences and sources of the dependencies, and banned crates (needs cargo-deny)
	@cargo deny --version >/dev/null 2>&1 || { echo "make: cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	cargo deny --locked check --hide-inclusion-graph licenses bans sources

# Not part of `check`: it needs GitHub, and its result changes without a change in this repository.
advisories: cargo ## check for known vulnerabilities of the dependencies (needs cargo-deny and the network)
	@cargo deny --version >/dev/null 2>&1 || { echo "make: cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	cargo deny --locked check --hide-inclusion-graph advisories

go-cases: ## write the results of Go's text/template for the cases of hack/go-templates (needs Go)
	cd hack/go-templates && go run . > $(CURDIR)/$(GO_CASES).new
	mv $(GO_CASES).new $(GO_CASES)

go-cases-check: ## check that the committed results are those of Go (needs Go)
	@cd hack/go-templates && go vet . && go run . | diff -q - $(CURDIR)/$(GO_CASES) >/dev/null || { echo "make: $(GO_CASES) is stale: make go-cases"; exit 1; }

helm-cases: cargo ## write the results of helm for the charts of crates/charts/tests/cases (needs Go; builds helm once, 3 minutes)
	HELM=$$(hack/helm/build) UPDATE=1 cargo test --workspace --test helm --locked

# A phase of `test` if helm is already built.
helm-cases-check: cargo ## check that the committed results are those of helm (needs Go; builds helm once, 3 minutes)
	HELM=$$(hack/helm/build) cargo test --workspace --test helm --locked

fuzz: cargo ## search for inputs that violate a checked property (TARGET=document, list, plan, template or watch; TIME=600 seconds)
	@hack/fuzz $(or $(TARGET),template) $(or $(TIME),600)

bench-core: cargo ## measure compiling, passes and templates, and Go's text/template (optimised; needs Go)
	cd hack/go-templates && go run . bench > $(abspath $(BUILT))/go-templates.txt
	GO_TEMPLATES=$(abspath $(BUILT))/go-templates.txt cargo bench -p orkestra-engine --bench core --locked

bench: cargo control-plane ## measure cost and speed of ork, and of the same writes without it (15 minutes; BENCH="create --crs 100")
	cargo build --release -p orkestra -p orkestra-bench --bins --locked
	GO_WEBHOOK=$$(hack/go-webhook/build) $(BUILT)/release/bench $(BENCH)

# Small and in the profile of the tests, because the checks do not depend on speed. Two run at a time, because each waits until the
# controller is idle.
bench-smoke: binaries control-plane ## check that there are no unnecessary requests or writes, and that records stay small (2 minutes)
	@$(MAKE) --no-print-directory -j 2 bench-smoke-passes bench-smoke-fleets

bench-smoke-passes: SCENARIOS := create noop template change
bench-smoke-fleets: SCENARIOS := fleet komposer
bench-smoke-passes bench-smoke-fleets:
	$(BUILT)/debug/bench $(SCENARIOS) --out $(BUILT)/bench/$@.json --without-bare --crs 100 --window 5 --samples 25 --operators 3 --per-operator 30 --sources 12 --quiet 20 --settle 2

# The inputs of a release build: this machine's target, which is named explicitly so that build scripts are not static; the commit;
# and no path of this machine.
HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
COMMIT := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)$(shell git diff --quiet HEAD 2>/dev/null || echo -dirty)
STATIC := $(BUILT)/$(HOST)/release/ork
RELEASE := ORK_COMMIT=$(COMMIT) $(BUILT)/debug/release
DIST ?= dist

# Where a release is published. Without these, it is published nowhere, and nothing has a default address: `ork install` asks for an
# image, and install.sh for an address. The folder of releases has the files of each in vVERSION/, and those of the latest in latest/.
IMAGE ?=
RELEASES ?=
DOCS ?=
PATTERNS ?=
SOURCE ?=
export ORK_PUBLISHED_IMAGE := $(IMAGE)
export ORK_PUBLISHED_RELEASES := $(RELEASES)
export ORK_PUBLISHED_DOCS := $(DOCS)
export ORK_PUBLISHED_PATTERNS := $(PATTERNS)
export ORK_PUBLISHED_SOURCE := $(SOURCE)

# `--remap-path-prefix` removes the folders of sources and crates from the binary.
static: binaries
	ORK_COMMIT=$(COMMIT) RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$(CURDIR)=/src --remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=/cargo" \
	  cargo build --release --locked --package orkestra --bin ork --target $(HOST)

image: static ## build the image into dist/image and dist/image.tar, without a container runtime
	rm -rf $(DIST)/image
	@$(RELEASE) image --binary $(STATIC) --output $(DIST)/image

# Needs a commit without changes. The second build has its own target folder, so that everything is compiled again.
reproducible: image ## build the image again from a clone in another folder, and compare the digests (takes as long as a release build)
	@hack/reproducible $(DIST)/image

image-push: image ## build the image, and push it with SBOM and provenance (REF=registry.example/orkestra:0.1.0; KEY=cosign.key signs it)
	@test -n "$(REF)" || { echo "make: REF is missing: make image-push REF=registry.example/orkestra:0.1.0"; exit 1; }
	@$(RELEASE) push --binary $(STATIC) --layout $(DIST)/image $(if $(KEY),--key $(KEY)) $(REF)

image-run: binaries control-plane image ## run the image like a container runtime, and start its controller on a control plane
	@hack/image-run $(DIST)/image $(TESTBED) $(ORK)

release: static ## assemble a release in dist/, and check it (IMAGE, RELEASES, DOCS, PATTERNS, SOURCE: where it is published)
	rm -rf $(DIST)
	@$(RELEASE) dist --binary $(STATIC) --output $(DIST)
	@hack/release-check $(DIST) $(COMMIT)

# One test at a time, because the handover from one controller to the next is measured and must take at most a second.
helm-install: cargo control-plane ## test the chart with the genuine helm (needs Go; builds helm once, 3 minutes)
	HELM=$$(hack/helm/build) HANDOVER_SECONDS=$${HANDOVER_SECONDS:-1} cargo test --workspace --test it --locked -- --include-ignored --nocapture --test-threads 1 install::helm install::upgrade

# One round of chaos takes TIME seconds, and some minutes until everything has converged. Its log is printed.
chaos: cargo control-plane ## test all faults at once, while objects change (TIME=600 seconds; SEED, by default random)
	CHAOS_SECONDS=$(or $(TIME),600) CHAOS_SEED=$(or $(SEED),$$RANDOM) cargo test --workspace --test it --locked -- --nocapture --exact chaos::after_chaos_everything_is_as_declared_and_each_job_ran_once

drift: cargo control-plane ## edit every field of every child of every example; the suite edits a sample (EXAMPLE=16; 15 minutes)
	DRIFT_SAMPLE=1 cargo test --workspace --test it --locked -- --nocapture --exact examples::drift::every_field_of_every_child_of_every_example_is_corrected_or_left_by_a_rule

crds: binaries ## write crds/ from the API types
	$(ORK) crds --output crds

kube-schemas: binaries control-plane ## write the schemas of Kubernetes' own kinds, read from the control plane
	$(TESTBED) schemas crates/language/src/schema/kubernetes.bin

control-plane: ## build etcd, kube-apiserver and the other binaries of the test control plane (6 minutes, once; needs Go)
	@hack/control-plane/build

registry-tools: ## build the registry, oras and cosign that the tests use (6 minutes, once; needs Go)
	@hack/registry/build

# Not part of `suite`: building the registry alone takes more than three minutes on two cores.
registry-test: binaries registry-tools ## test ork and the image with genuine registries, oras and cosign
	cargo test --workspace --test registry --locked

gitops-tools: ## build the parts of Argo CD, Flux and Prometheus that the tests use (10 minutes, once; needs Go)
	@hack/gitops/build

# The program for health checks that `suite` needs. Building it takes half a minute.
gitops-health: ## build kstatus and the interpreter of Argo CD's health checks (once; needs Go)
	@hack/gitops/build health >/dev/null

# Not part of `suite`: building the tools takes more than five minutes on two cores.
gitops: binaries control-plane gitops-tools ## test the shipped files with Argo CD's sync engine, Flux's kustomize-controller and promtool
	cargo test --workspace --test it --locked -- --include-ignored --nocapture --test-threads 2 gitops_tools gitops_folder

cluster-up: binaries ## start a Kubernetes control plane in the background (NODES=1: pods run, Jobs complete)
	@$(TESTBED) up --dir $(CLUSTER) $(if $(filter-out 0,$(NODES)),--nodes)

cluster-down: binaries ## end the control plane and remove its data
	@$(TESTBED) down --dir $(CLUSTER)

demo: ## apply a Katalog and show its operator at work, in a new cluster
	@hack/demo

# One phase: its name is printed before it runs, and its duration afterwards.
define phase
@start=$$SECONDS; echo "== $(1)"; $(MAKE) --no-print-directory $(1) || { echo "== $(1): FAILED after $$((SECONDS - start)) s"; exit 1; }; echo "== $(1): $$((SECONDS - start)) s"

endef

test: cargo ## run all checks of CI: formatting, clippy, documents, licences, all tests
	$(foreach target,lint docs go-cases-check $(if $(wildcard $(or $(ORKESTRA_CACHE),$(HOME)/.cache/orkestra)/helm/*/helm),helm-cases-check) $(if $(shell command -v cargo-deny),deny) control-plane suite bench-smoke,$(call phase,$(target)))
	@command -v cargo-deny >/dev/null || echo "== deny: left out, cargo-deny is not installed (cargo install --locked cargo-deny)"

check: test ## run the same as CI: test, then demo
	$(call phase,demo)

# The smallest test is built too, so that dependencies get the features that the tests need. Otherwise each would be built twice.
binaries: cargo
	@cargo build --workspace --bins --test cluster --locked --quiet

cargo:
	@command -v cargo >/dev/null || { echo "make: cargo is missing: install Rust (https://rustup.rs)"; exit 1; }
