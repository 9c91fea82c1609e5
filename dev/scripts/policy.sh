#!/usr/bin/env bash
# Builds the policy engine into .bin/berth-policy, which takes minutes the first time and is
# kept by what it is made of: once.sh. Its version is that, so that a commit which changes
# nothing of it builds nothing. A release has the release's version: reproducible.sh.
# Usage: policy.sh [build | compare]
#
# compare builds Kyverno's own command too, from its module (minutes, once), and prints how
# fast both are, and whether they say the same of Kyverno's own tests: docs/reports/policy.md.
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

engine_into() { # FILE
  (cd runner/policy && GOWORK=off GOFLAGS='' CGO_ENABLED=0 go build -buildvcs=false -ldflags "$flags" -o "$1" ./cmd/policy)
}

# The module has a go.mod of its own, which a build outside of it would not follow.
kyverno_into() { # FILE
  copy_module github.com/kyverno/kyverno "$kyverno" "$kyverno_sum"
  (cd "$copy" && GOWORK=off GOFLAGS='' CGO_ENABLED=0 go build -buildvcs=false -ldflags '-s -w' -o "$1" ./cmd/cli/kubectl-kyverno)
}

compare() {
  local tests
  kyverno=$(awk '$1=="github.com/kyverno/kyverno"{print $2}' runner/policy/go.mod)
  kyverno_sum=$(awk -v v="$kyverno" '$1=="github.com/kyverno/kyverno" && $2==v{print $3}' runner/policy/go.sum)
  build_into() { kyverno_into "$1"; }
  once kyverno "$PWD/.bin/tools/kyverno" "$kyverno"
  copy_module github.com/kyverno/kyverno "$kyverno" "$kyverno_sum"
  tests=$copy
  (cd runner/policy && GOWORK=off GOFLAGS='' CGO_ENABLED=0 go build -buildvcs=false -o ../../.bin/tools/policy-measure ./measure)
  .bin/tools/policy-measure --engine .bin/berth-policy --kyverno .bin/tools/kyverno --tests "$tests/test"
}

build_into() { engine_into "$1"; }
case ${1:-build} in
build) once policy "$PWD/.bin/berth-policy" "$flags" ;;
compare)
  once policy "$PWD/.bin/berth-policy" "$flags"
  compare
  ;;
*)
  echo "usage: policy.sh [build | compare]" >&2
  exit 2
  ;;
esac
