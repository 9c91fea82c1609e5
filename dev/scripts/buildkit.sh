#!/usr/bin/env bash
# The real BuildKit: buildkitd and buildctl, built from their module into
# .bin/tools. Usage: buildkit.sh COMMAND
#
#	build  builds them, unless they are there (minutes)
#
# BERTH_BUILDKIT_CACHE keeps builds, for all clones of a machine (default:
# berth/buildkit in the user's cache).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly names=(buildkitd buildctl)
readonly out=$PWD/.bin/tools

build() {
  local key name cache=${BERTH_BUILDKIT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/berth/buildkit}
  dev/scripts/need.sh go buildkit
  key=$({ go version && cat dev/buildkit/go.mod dev/buildkit/go.sum dev/buildkit/buildkit.go; } | sha256sum | cut -c1-16)
  [ "$(cat "$out/buildkit.key" 2>/dev/null)" != "$key" ] || return 0
  mkdir -p "$out" "$cache"
  # Clones that share a cache build one after the other, and the second not at all.
  exec 9>"$cache/lock"
  flock 9
  if [ ! -e "$cache/$key/done" ]; then
    find "$cache" -mindepth 1 ! -name lock -delete # older ones
    build_into "$cache/$key"
  fi
  for name in "${names[@]}"; do
    cp "$cache/$key/$name" "$out/$name.new"
    mv "$out/$name.new" "$out/$name"
  done
  echo "$key" >"$out/buildkit.key"
}

# build_into checks the module, and all that it needs, against dev/buildkit/go.sum.
build_into() {
  local name version began=$SECONDS
  version=$(awk '$2 == "github.com/moby/buildkit" { print $3; exit }' dev/buildkit/go.mod)
  mkdir -p "$1"
  for name in "${names[@]}"; do
    (cd dev/buildkit && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -buildvcs=false -trimpath \
      -ldflags="-s -w -X github.com/moby/buildkit/version.Version=$version" -o "$1/$name" "github.com/moby/buildkit/cmd/$name")
  done
  touch "$1/done"
  echo "built BuildKit $version in $((SECONDS - began)) s" >&2
}

case ${1:-} in
build) "$1" ;;
*)
  echo "usage: buildkit.sh build" >&2
  exit 2
  ;;
esac
