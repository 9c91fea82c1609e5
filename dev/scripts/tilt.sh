#!/usr/bin/env bash
# The real Tilt, built from its module into .bin/tools/tilt. Usage: tilt.sh COMMAND
#
#	build  builds it, unless it is there (minutes)
#	check  evaluates the Tiltfile with it, on the cluster of KUBECONFIG
#
# BERTH_TILT_CACHE keeps builds, for all clones of a machine (default: berth/tilt in
# the user's cache).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly module=github.com/tilt-dev/tilt version=v0.33.0 sum=h1:fpjMzuHLMFaUeqNaUeLu2rTVCDg8vP6Od9hy3DYmmjk=
# The module calls itself by an older version unless it is told. Its page is not in it.
readonly flags=(-mod=mod -buildvcs=false -trimpath "-ldflags=-s -w -X main.version=${version#v}")
readonly out=$PWD/.bin/tools/tilt

. dev/scripts/once.sh

build() {
  dev/scripts/need.sh cc
  once tilt "$out" "$module $version $sum ${flags[*]}"
}

build_into() {
  copy_module "$module" "$version" "$sum"
  (cd "$copy" && GOWORK=off GOFLAGS='' go build "${flags[@]}" -o "$1" ./cmd/tilt)
}

# check prints nothing when all is well: the result has secrets in it.
check() {
  local log=.bin/tilt-check.log
  build
  (umask 077 && TILT_DISABLE_ANALYTICS=1 PATH=$PWD/.bin/kube:$PATH "$out" alpha tiltfile-result -v >/dev/null 2>"$log") || {
    cat "$log" >&2
    fail "the Tiltfile cannot be evaluated"
  }
}

case ${1:-} in
build | check) "$1" ;;
*)
  echo "usage: tilt.sh build|check" >&2
  exit 2
  ;;
esac
