# What a person and CI type. `make` alone lists it.
# Everything is built in one profile (dev), for the whole workspace at once: that keeps one set of dependency features, so
# that lint, test, demo and the cluster share what is compiled. CARGO_TARGET_DIR and KUBEBUILDER_ASSETS are respected.

SHELL := /bin/bash
BUILT := $(or $(CARGO_TARGET_DIR),target)
ORK := $(BUILT)/debug/ork
TESTBED := $(BUILT)/debug/testbed
# Where `make cluster-up` keeps its cluster.
CLUSTER ?= .cluster
# What Go's templates give, which ours are compared with.
GO_CASES := crates/core/src/template/tests/go.json

.DEFAULT_GOAL := help
.PHONY: static help fmt lint test suite docs deny advisories check crds kube-schemas go-cases go-cases-check helm-cases helm-cases-check fuzz bench-core bench bench-smoke bench-smoke-passes bench-smoke-fleets chaos control-plane image image-push image-run reproducible release helm-install registry-tools registry-test gitops-tools gitops-health gitops cluster-up cluster-down demo binaries cargo

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

fmt: cargo ## format the code
	cargo fmt --all

lint: cargo ## formatting and clippy, warnings denied
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# Most of a live test is waiting for the control plane: four at a time for each core. The backtrace of an error that a test returns
# names the test runner alone.
suite: cargo control-plane gitops-health ## the tests alone, against a genuine control plane
	RUST_LIB_BACKTRACE=0 RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc 2>/dev/null || echo 2) * 4))} cargo test --workspace --exclude orkestra-registry-tests --locked

docs: cargo ## the API documentation, warnings denied
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

deny: cargo ## licences and sources of the dependencies, crates that we do without (needs cargo-deny)
	@cargo deny --version >/dev/null 2>&1 || { echo "make: cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	cargo deny --locked check --hide-inclusion-graph licenses bans sources

# Not part of `check`: it asks GitHub, and what it says changes without a change of ours.
advisories: cargo ## known vulnerabilities of the dependencies (needs cargo-deny and the network)
	@cargo deny --version >/dev/null 2>&1 || { echo "make: cargo-deny is missing: cargo install --locked cargo-deny"; exit 1; }
	cargo deny --locked check --hide-inclusion-graph advisories

go-cases: ## write what Go's text/template gives for the cases of hack/go-templates (needs Go)
	cd hack/go-templates && go run . > $(CURDIR)/$(GO_CASES).new
	mv $(GO_CASES).new $(GO_CASES)

go-cases-check: ## whether the committed results are those of Go (needs Go)
	@cd hack/go-templates && go vet . && go run . | diff -q - $(CURDIR)/$(GO_CASES) >/dev/null || { echo "make: $(GO_CASES) is stale: make go-cases"; exit 1; }

helm-cases: cargo ## write what helm gives for the charts of crates/charts/tests/cases (needs Go; builds helm once, 3 minutes)
	HELM=$$(hack/helm/build) UPDATE=1 cargo test --workspace --test helm --locked

# A phase of `test` where helm is built already.
helm-cases-check: cargo ## whether the committed results are those of helm (needs Go; builds helm once, 3 minutes)
	HELM=$$(hack/helm/build) cargo test --workspace --test helm --locked

fuzz: cargo ## search for inputs that break a promise (TARGET=document, list, plan, template or watch; TIME=600 seconds)
	@hack/fuzz $(or $(TARGET),template) $(or $(TIME),600)

bench-core: cargo ## what compiling, a pass and templates cost, beside Go's text/template (optimised; needs Go)
	cd hack/go-templates && go run . bench > $(abspath $(BUILT))/go-templates.txt
	GO_TEMPLATES=$(abspath $(BUILT))/go-templates.txt cargo bench -p orkestra-core --bench core --locked

bench: cargo control-plane ## what ork costs and how fast it is, beside the same writes without it (15 minutes; BENCH="create --crs 100")
	cargo build --release -p orkestra -p orkestra-bench --bins --locked
	GO_WEBHOOK=$$(hack/go-webhook/build) $(BUILT)/release/bench $(BENCH)

# Small, in the tests' own profile: what it judges does not depend on speed. Two at a time, since each waits for quiet times.
bench-smoke: binaries control-plane ## check that there are no unnecessary requests or writes, and that records stay small (2 minutes)
	@$(MAKE) --no-print-directory -j 2 bench-smoke-passes bench-smoke-fleets

bench-smoke-passes: SCENARIOS := create noop template change
bench-smoke-fleets: SCENARIOS := fleet komposer
bench-smoke-passes bench-smoke-fleets:
	$(BUILT)/debug/bench $(SCENARIOS) --out $(BUILT)/bench/$@.json --without-bare --crs 100 --window 5 --samples 25 --operators 3 --per-operator 30 --sources 12 --quiet 20 --settle 2

# What a release is built of: this machine's target, named so that build scripts are not static; the commit, and no path of this machine.
HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
COMMIT := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)$(shell git diff --quiet HEAD 2>/dev/null || echo -dirty)
STATIC := $(BUILT)/$(HOST)/release/ork
RELEASE := ORK_COMMIT=$(COMMIT) $(BUILT)/debug/release
DIST ?= dist

# `--remap-path-prefix` hides where sources and crates are.
static: binaries
	ORK_COMMIT=$(COMMIT) RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$(CURDIR)=/src --remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=/cargo" \
	  cargo build --release --locked --package orkestra --bin ork --target $(HOST)

image: static ## build the image into dist/image and dist/image.tar, without a container runtime
	rm -rf $(DIST)/image
	@$(RELEASE) image --binary $(STATIC) --output $(DIST)/image

# Needs a commit without changes. The second build has its own target folder, so that everything is compiled again.
reproducible: image ## build the image again from a clone in another folder, and compare the digests (as long as a release build)
	@hack/reproducible $(DIST)/image

image-push: ## push dist/image with SBOM and provenance (REF=registry.example/orkestra:0.1.0; KEY=cosign.key signs it)
	@test -n "$(REF)" || { echo "make: REF is missing: make image-push REF=registry.example/orkestra:0.1.0"; exit 1; }
	@$(RELEASE) push --binary $(STATIC) --layout $(DIST)/image $(if $(KEY),--key $(KEY)) $(REF)

image-run: binaries control-plane image ## run the image as a container runtime does, and start its controller on a control plane
	@hack/image-run $(DIST)/image $(TESTBED) $(ORK)

release: static ## assemble a release in dist/, and check it as its users get it
	rm -rf $(DIST)
	@$(RELEASE) dist --binary $(STATIC) --output $(DIST)
	@hack/release-check $(DIST) $(COMMIT)

# One test at a time: what is measured is the handover from one controller to the next, which has a second.
helm-install: cargo control-plane ## the chart with the genuine helm (needs Go; builds helm once, 3 minutes)
	HELM=$$(hack/helm/build) HANDOVER_SECONDS=$${HANDOVER_SECONDS:-1} cargo test --workspace --test it --locked -- --include-ignored --nocapture --test-threads 1 install::helm install::upgrade

# One round of chaos takes as long as it is told and some minutes more, until everything has converged; its diary is printed.
chaos: cargo control-plane ## everything goes wrong at once, under churn (TIME=600 seconds; SEED, else a random one)
	CHAOS_SECONDS=$(or $(TIME),600) CHAOS_SEED=$(or $(SEED),$$RANDOM) cargo test --workspace --test it --locked -- --nocapture --exact chaos::after_chaos_everything_is_as_declared_and_each_job_ran_once

crds: binaries ## write crds/ from the API types
	$(ORK) crds --output crds

kube-schemas: binaries control-plane ## write the schemas of Kubernetes' own kinds, as the control plane has them
	$(TESTBED) schemas crates/core/src/schema/kubernetes.bin

control-plane: ## build etcd, kube-apiserver and the other binaries of the test control plane (6 minutes, once; needs Go)
	@hack/control-plane/build

registry-tools: ## build the registry, oras and cosign that the tests use (6 minutes, once; needs Go)
	@hack/registry/build

# Not part of `suite`: building the registry alone takes more than three minutes on two cores.
registry-test: binaries registry-tools ## ork, and the image, with genuine registries, oras and cosign
	cargo test --workspace --test registry --locked

gitops-tools: ## build the parts of Argo CD, Flux and Prometheus that the tests use (10 minutes, once; needs Go)
	@hack/gitops/build

# The judge of health that `suite` needs: half a minute.
gitops-health: ## build kstatus and the interpreter of Argo CD's health checks (once; needs Go)
	@hack/gitops/build health >/dev/null

# Not part of `suite`: building them takes more than five minutes on two cores.
gitops: binaries control-plane gitops-tools ## Argo CD's sync engine, Flux's kustomize-controller and promtool with what we ship
	cargo test --workspace --test it --locked -- --include-ignored --nocapture --test-threads 2 gitops_tools gitops_folder

cluster-up: binaries ## a Kubernetes control plane in the background (NODES=1: pods run, Jobs complete)
	@$(TESTBED) up --dir $(CLUSTER) $(if $(filter-out 0,$(NODES)),--nodes)

cluster-down: binaries ## end it and remove what it stored
	@$(TESTBED) down --dir $(CLUSTER)

demo: ## apply a Katalog and watch its operator work, in a cluster made for it
	@hack/demo

# One phase: said before, timed after.
define phase
@start=$$SECONDS; echo "== $(1)"; $(MAKE) --no-print-directory $(1) || { echo "== $(1): FAILED after $$((SECONDS - start)) s"; exit 1; }; echo "== $(1): $$((SECONDS - start)) s"

endef

test: cargo ## everything CI checks: formatting, clippy, documents, licences, every test
	$(foreach target,lint docs go-cases-check $(if $(wildcard $(or $(ORKESTRA_CACHE),$(HOME)/.cache/orkestra)/helm/*/helm),helm-cases-check) $(if $(shell command -v cargo-deny),deny) control-plane suite bench-smoke,$(call phase,$(target)))
	@command -v cargo-deny >/dev/null || echo "== deny: left out, cargo-deny is not installed (cargo install --locked cargo-deny)"

check: test ## exactly what CI runs: test, then demo
	$(call phase,demo)

# With one test, the smallest, so that dependencies have the features that the tests want of them: else each is built twice.
binaries: cargo
	@cargo build --workspace --bins --test cluster --locked --quiet

cargo:
	@command -v cargo >/dev/null || { echo "make: cargo is missing: install Rust (https://rustup.rs)"; exit 1; }
