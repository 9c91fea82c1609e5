# Every target is one line of `make help`. What a target does lives in
# dev/scripts, so that it can be read, run and checked by itself.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.PHONY: help demo dev dev-measure tour up down kube kube-down test test-user lint fmt generate verify check web web-full build deploy undeploy images images-check images-arm64 release release-check collector-check bench faults health-faults model model-planted registry-check policy-check tools

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What runs in a clone keeps its data there.
demo dev up down: export BERTH_DATA ?= $(CURDIR)/.berth

demo: ## run examples/hello, from app folder to healthy install (KUBE=1: examples/shop on Kubernetes)
	@dev/scripts/demo.sh

dev: ## run Berth here, and rebuild and restart what a saved file belongs to (Ctrl-C stops it)
	@dev/scripts/dev.sh

dev-measure: ## measure how long a save takes until it runs (LOOPS="dev tilt", SAVES=10)
	@dev/scripts/dev-measure.sh $(LOOPS)

tour: ## record docs/tour/*.cast from a real run
	@dev/scripts/tour.sh

up: build ## start Berth on this machine
	@dev/scripts/need.sh postgres
	@BERTH_TERRAFORM=$$(dev/scripts/need.sh terraform) .bin/berth up $(ARGS)

down: ## stop it, and the cluster of make kube; ARGS=--purge deletes its data
	@if [ -x .bin/berth ]; then .bin/berth down $(ARGS); else echo "nothing to stop: Berth was not built here"; fi
	@if [ -d "$${BERTH_KUBE_DIR:-.berth-kube}" ]; then dev/scripts/kube.sh down; fi

kube: ## build and start a real Kubernetes on this machine (Linux, root)
	@dev/scripts/kube.sh up

kube-down: ## stop it and put the machine back
	@dev/scripts/kube.sh down

deploy: ## run the control plane in that cluster, or in that of KUBECONFIG (deploy/k8s/overlays/local)
	@dev/scripts/deploy.sh up

undeploy: ## delete it from there, with its data
	@dev/scripts/deploy.sh down

test: ## run all tests, with what they need (RACE=1: with the race detector)
	@dev/scripts/test.sh $(ARGS)

test-user: ## run them as a user who is not root (ARGS=differ: only what differs)
	@dev/scripts/test-as-user.sh $(ARGS)

lint: ## find mistakes: vet and golangci-lint on every module
	@dev/scripts/lint.sh

fmt: ## format Go code and imports
	@dev/scripts/lint.sh fmt

generate: ## regenerate code from openapi/ and the SQL of services/
	@dev/scripts/generate.sh $(ARGS)

web: ## check the dashboard of web/: types, lint, format, unit tests (ARGS=dev: serve it with live reloading)
	@dev/scripts/web.sh $(or $(ARGS),check)

web-full: ## go through all journeys of the dashboard with a browser (15 minutes; KUBE=1: on a cluster too; docs/reports/dashboard.md)
	@dev/scripts/web-full.sh

verify: ## fail when generated files or go.mod files are not up to date
	@dev/scripts/verify.sh

check: ## what must be green before a commit: verify, lint, test
	@$(MAKE) --no-print-directory verify
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory test

build: ## build all executables into .bin/
	@dev/scripts/build.sh

images: ## make container images without Docker (NAMES="ctl-api runner", ARCH=amd64, PUSH=HOST:PORT/PREFIX)
	@dev/scripts/images.sh $(NAMES)

images-check: ## make them twice in two clones, compare the digests, look into them and run them
	@dev/scripts/images-check.sh $(NAMES)

images-arm64: ## make those for arm64 and run each program in them once, under qemu
	@dev/scripts/images-arm64.sh $(NAMES)

release: ## make archives, images and one signed list of them (KEY=FILE, PLATFORMS=linux/amd64, IMAGES=no)
	@dev/scripts/release.sh

release-check: ## install a release with its script and run examples/hello from it in 20 s
	@dev/scripts/release-check.sh

collector-check: ## run a real OpenTelemetry collector with the configuration of deploy/k8s (compiles it: minutes)
	@cd dev/collector && GOWORK=off go test -count=1 ./...

bench: ## measure against the budgets of the design (PKG=./pkg/redact: only that)
	@dev/scripts/bench.sh $(ARGS) $(PKG)

faults: ## kill everything at random for long, full and slow disks included (SEEDS="1 2 3", MINUTES=10)
	@dev/scripts/faults.sh $(SEEDS)

health-faults: ## let components go wrong in a real cluster, and hold the verdicts against it (15 minutes; docs/reports/health-faults.md)
	@dev/scripts/health-faults.sh

model: ## let people do anything in any order while everything is killed, for long (SEEDS="1", MINUTES=120)
	@dev/scripts/model.sh $(SEEDS)

model-planted: ## show that these operations find three bugs that ctl-api is built with (BUGS="kept-lock", SECONDS_EACH=1200)
	@dev/scripts/model-planted.sh $(BUGS)

registry-check: ## try docker, skopeo, crane, oras, helm and cosign, and the official suite, with both registries (docs/reports/registry.md)
	@dev/scripts/oci.sh report

policy-check: ## compare the policy engine with Kyverno's own command, in speed and in verdicts (docs/reports/policy.md)
	@dev/scripts/policy.sh compare

tools: ## build the pinned development tools into .bin/tools/
	@dev/scripts/tools.sh
