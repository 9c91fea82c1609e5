#!/usr/bin/env bash
# A real S3 server for the tests of the registry: versitygw, built from its
# module. Usage: s3.sh COMMAND
#
#	build     builds .bin/tools/versitygw, unless it is there (2 minutes of two cores)
#	start     does that in the background; build then waits for it
#
# BERTH_TOOLS_CACHE keeps it for other clones (default: berth/tools in the user's cache).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly module=github.com/versity/versitygw version=v1.8.0 sum=h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=
readonly out=$PWD/.bin/tools/versitygw
readonly cache=${BERTH_TOOLS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/berth/tools}

fail() {
  echo "s3.sh: $1" >&2
  exit 1
}

build() {
  local key got
  dev/scripts/need.sh go
  mkdir -p .bin/tools "$cache"
  # Clones that share a cache build one after the other, and the second not at all.
  exec 9>"$cache/versitygw.lock"
  flock 9
  key=$({ go version && echo "$version $sum"; } | sha256sum | cut -c1-16)
  if [ -x "$out" ] && [ "$(cat "$out.key" 2>/dev/null)" = "$key" ]; then return; fi
  if [ ! -x "$cache/versitygw-$key" ]; then
    got=$(cd / && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$module@$version") || fail "$module@$version cannot be downloaded: $got"
    [ "$(sed -n 's/.*"Sum": "\(.*\)".*/\1/p' <<<"$got")" = "$sum" ] || fail "$module@$version is not what it was: its sum differs from $sum"
    echo "building the S3 server of the tests, $module $version (once)" >&2
    rm -rf "$cache"/versitygw-*
    (cd / && GOWORK=off GOFLAGS='' CGO_ENABLED=0 GOBIN=$cache/new go install -buildvcs=false -trimpath -ldflags='-s -w' "$module/cmd/versitygw@$version")
    mv "$cache/new/versitygw" "$cache/versitygw-$key"
  fi
  cp "$cache/versitygw-$key" "$out.new"
  mv "$out.new" "$out"
  echo "$key" >"$out.key"
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
