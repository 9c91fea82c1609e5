#!/usr/bin/env bash
# A real S3 server for the tests of the registry: versitygw, built from its
# module. Usage: s3.sh COMMAND
#
#	build     builds .bin/tools/versitygw, unless it is there (2 minutes of two cores)
#	start     does that in the background; build then waits for it
#
# BERTH_VERSITYGW_CACHE keeps it for other clones (default: berth/versitygw in the user's
# cache).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly module=github.com/versity/versitygw version=v1.8.0 sum=h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=
readonly out=$PWD/.bin/tools/versitygw
. dev/scripts/once.sh

build() {
  once versitygw "$out" "$module $version $sum"
}

build_into() {
  module_dir "$module" "$version" "$sum" >/dev/null
  (cd / && GOWORK=off GOFLAGS='' CGO_ENABLED=0 GOBIN=$1.bin go install -buildvcs=false -trimpath -ldflags='-s -w' "$module/cmd/versitygw@$version")
  mv "$1.bin/versitygw" "$1"
}

start() {
  mkdir -p .bin
  nohup nice -n 10 "$0" build >.bin/s3.log 2>&1 </dev/null &
}

case ${1:-} in
build | start) "$1" ;;
*)
  echo "usage: s3.sh build|start" >&2
  exit 2
  ;;
esac
