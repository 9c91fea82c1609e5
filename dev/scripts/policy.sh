#!/usr/bin/env bash
# Builds the policy engine into .bin/berth-policy, which takes minutes the first time and is
# kept by what it is made of: once.sh. Its version is that, so that a commit which changes
# nothing of it builds nothing. A release has the release's version: reproducible.sh.
# Usage: policy.sh [build]
set -euo pipefail
cd "$(dirname "$0")/../.."
. dev/scripts/once.sh

# What it is made of, besides the modules of go.sum: pkg's packages are those that
# TestImports of the module allows.
sources() {
  find runner/policy pkg/policy pkg/version -name '*.go' ! -name '*_test.go'
  echo runner/policy/go.mod runner/policy/go.sum | tr ' ' '\n'
}
made_of=$(sources | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-12)
readonly made_of flags="-s -w -X github.com/berth-dev/berth/pkg/version.Version=dev-$made_of"

build_into() { # FILE
  (cd runner/policy && GOWORK=off GOFLAGS='' CGO_ENABLED=0 go build -buildvcs=false -ldflags "$flags" -o "$1" ./cmd/policy)
}

case ${1:-build} in
build) once policy "$PWD/.bin/berth-policy" "$flags" ;;
*)
  echo "usage: policy.sh [build]" >&2
  exit 2
  ;;
esac
