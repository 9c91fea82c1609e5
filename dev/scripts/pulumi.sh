#!/usr/bin/env bash
# What the tests of the Pulumi engine need, in .bin/tools/pulumi: the real pulumi
# command, built from its module, and dev/pulumi, which is a language host for
# programs that are built already, a provider of files, and a program. Their vendor
# publishes no module of a language host. Usage: pulumi.sh build
#
# BERTH_PULUMI_CACHE keeps builds, for all clones of a machine (default: berth/pulumi
# in the user's cache).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly module=github.com/pulumi/pulumi/pkg/v3 version=v3.150.0 sum=h1:Ne8Ew8t6qAqrMqgkR33tULLqQ/SVhtk0LeWyUQ2+6q4=
# Its vendor builds it with these tags; the first one finds the user also where
# /etc/passwd does not name him, as those of engines. The module knows its own version
# by a flag only.
readonly sdk=github.com/pulumi/pulumi/sdk/v3
readonly flags=(-tags=osusergo,grpcnotrace -mod=mod -buildvcs=false -trimpath "-ldflags=-s -w -X $sdk/go/common/version.Version=$version")
readonly out=$PWD/.bin/tools/pulumi
. dev/scripts/once.sh # for copy_module; once itself keeps one file

build() {
  local key cache=${BERTH_PULUMI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/berth/pulumi}
  dev/scripts/need.sh go
  key=$({ go version && echo "$module $version $sum ${flags[*]}" && cat dev/pulumi/*.go dev/pulumi/go.*; } | sha256sum | cut -c1-16)
  [ "$(cat "$out/key" 2>/dev/null)" != "$key" ] || return 0
  mkdir -p "$out" "$cache"
  # Clones that share a cache build one after the other, and the second not at all.
  exec 9>"$cache/lock"
  flock 9
  if [ ! -d "$cache/$key" ]; then
    find "$cache" -mindepth 1 -maxdepth 1 -type d -exec rm -r {} + # older ones
    build_into "$cache/$key"
  fi
  # By name, the one executable of dev/pulumi is each of its three parts.
  cp -f "$cache/$key/pulumi" "$out/pulumi"
  for name in pulumi-language-go pulumi-resource-lab program; do
    cp -f "$cache/$key/lab" "$out/$name"
  done
  echo "$key" >"$out/key"
}

# build_into checks the module against its sum and builds it. In the vendor's tree
# the module next to it takes the place of the published one.
build_into() {
  local began=$SECONDS
  copy_module "$module" "$version" "$sum"
  rm -rf "$1.new" # of one that was killed
  mkdir -p "$1.new"
  (cd "$copy" && GOWORK=off go mod edit -dropreplace="$sdk" && GOWORK=off GOFLAGS='' go build "${flags[@]}" -o "$1.new/pulumi" ./cmd/pulumi)
  (cd dev/pulumi && GOWORK=off GOFLAGS='' go build -buildvcs=false -trimpath '-ldflags=-s -w' -o "$1.new/lab" .)
  mv "$1.new" "$1"
  echo "built Pulumi $version in $((SECONDS - began)) s" >&2
}

case ${1:-} in
build) build ;;
*)
  echo "usage: pulumi.sh build" >&2
  exit 2
  ;;
esac
