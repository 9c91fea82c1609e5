#!/usr/bin/env bash
# A real OpenTofu, built from its module into .bin/tools/tofu. Usage: tofu.sh build
#
# BERTH_TOFU_CACHE keeps builds, for all clones of a machine (default: berth/tofu in the
# user's cache). A build is five minutes of a core.
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly module=github.com/opentofu/opentofu version=v1.12.6 sum=h1:0VT4P8pMmGcCUnQ9JDrJ+Qg2d35Vzm4FFd/9+H7oF98=
# Without the flag it calls itself a development version.
readonly flags=(-mod=mod -buildvcs=false -trimpath "-ldflags=-s -w -X $module/version.dev=no")
readonly out=$PWD/.bin/tools/tofu
. dev/scripts/once.sh

build() { once tofu "$out" "$module $version $sum ${flags[*]}"; }

build_into() {
  copy_module "$module" "$version" "$sum"
  (cd "$copy" && GOWORK=off GOFLAGS='' CGO_ENABLED=0 go build "${flags[@]}" -o "$1" ./cmd/tofu)
}

case ${1:-} in
build) build ;;
*)
  echo "usage: tofu.sh build" >&2
  exit 2
  ;;
esac
