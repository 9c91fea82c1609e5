#!/usr/bin/env bash
# A real Terraform provider in a mirror for tests, .bin/tools/providers: hashicorp/time,
# built from its module. Terraform and OpenTofu look below different registries, so it is
# there for both. Usage: provider.sh build
#
# BERTH_PROVIDER_CACHE keeps builds, for all clones of a machine (default: berth/provider
# in the user's cache).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly module=github.com/hashicorp/terraform-provider-time version=v0.14.2 sum=h1:yCAHwZj3huefsLZYoVQmup6qINSWk5QrspwVBxxIVPc=
readonly flags=(-buildvcs=false -trimpath "-ldflags=-s -w -X main.version=${version#v}")
readonly mirror=$PWD/.bin/tools/providers
. dev/scripts/once.sh

build() {
  local name=terraform-provider-time_$version platform owner dir
  platform=$(go env GOOS)_$(go env GOARCH)
  once provider "$mirror/$name" "$module $version $sum ${flags[*]}"
  # acme's is one that no test may take for a provider that it knows.
  for owner in registry.terraform.io/{hashicorp,acme} registry.opentofu.org/{hashicorp,acme}; do
    dir=$mirror/$owner/time/${version#v}/$platform
    mkdir -p "$dir"
    ln -f "$mirror/$name" "$dir/$name"
  done
}

build_into() {
  copy_module "$module" "$version" "$sum"
  (cd "$copy" && GOWORK=off GOFLAGS='' CGO_ENABLED=0 go build "${flags[@]}" -o "$1" .)
}

case ${1:-} in
build) build ;;
*)
  echo "usage: provider.sh build" >&2
  exit 2
  ;;
esac
