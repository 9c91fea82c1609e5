#!/usr/bin/env bash
# A second real Terraform, built from its module into .bin/tools/terraform/VERSION/terraform,
# for tests of several versions in one app. Usage: terraform.sh build
#
# The module lacks the cloud backends for state, which are modules of their own, so
# they are left out. Berth keeps states in the http backend, which is there.
#
# BERTH_TERRAFORM_CACHE keeps builds, for all clones of a machine (default:
# berth/terraform in the user's cache).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly module=github.com/hashicorp/terraform version=v1.12.2 sum=h1:T4odtp8QALeKdoQLw4NhgBOQ7azLl4ZeIuOSH2aqjew=
readonly flags=(-mod=mod -buildvcs=false -trimpath "-ldflags=-s -w -X $module/version.dev=no")
readonly absent=azure,consul,cos,gcs,kubernetes,oci,oss,pg,s3
readonly out=$PWD/.bin/tools/terraform/${version#v}/terraform

. dev/scripts/once.sh

build() {
  once terraform "$out" "$module $version $sum ${flags[*]} $absent"
}

build_into() {
  local name names
  copy_module "$module" "$version" "$sum"
  IFS=, read -ra names <<<"$absent"
  for name in "${names[@]}"; do
    name=$module/internal/backend/remote-state/$name
    sed -i "/$(sed 's/[/.]/\\&/g' <<<"$name")\"$/d" "$copy/internal/backend/init/init.go"
    (cd "$copy" && GOWORK=off go mod edit -droprequire="$name" -dropreplace="$name")
  done
  sed -i -E '/return backend(Azure|Consul|Cos|GCS|Kubernetes|OCI|OSS|Pg|S3)\.New/d' "$copy/internal/backend/init/init.go"
  (cd "$copy" && GOWORK=off go mod edit -droprequire="$module/internal/legacy" -dropreplace="$module/internal/legacy")
  (cd "$copy" && GOWORK=off GOFLAGS='' go build "${flags[@]}" -o "$1" .)
}

case ${1:-} in
build) build ;;
*)
  echo "usage: terraform.sh build" >&2
  exit 2
  ;;
esac
