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

fail() {
  echo "terraform.sh: $1" >&2
  exit 1
}

build() {
  local key cache=${BERTH_TERRAFORM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/berth/terraform}
  dev/scripts/need.sh go
  key=$({ go version && echo "$module $version $sum ${flags[*]} $absent"; } | sha256sum | cut -c1-16)
  [ "$(cat "$out.key" 2>/dev/null)" != "$key" ] || return 0
  mkdir -p "$(dirname "$out")" "$cache"
  # Clones that share a cache build one after the other, and the second not at all.
  exec 9>"$cache/lock"
  flock 9
  if [ ! -x "$cache/$key" ]; then
    find "$cache" -type f ! -name lock -delete # older ones
    build_into "$cache/$key"
  fi
  ln -f "$cache/$key" "$out.new" 2>/dev/null || cp "$cache/$key" "$out.new"
  mv "$out.new" "$out"
  echo "$key" >"$out.key"
}

# build_into checks the module against its sum and builds it.
build_into() {
  local got dir began=$SECONDS name names
  got=$(cd / && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$module@$version") || fail "$module@$version cannot be downloaded: $got"
  [ "$(sed -n 's/.*"Sum": "\(.*\)".*/\1/p' <<<"$got")" = "$sum" ] || fail "$module@$version is not what it was: its sum differs from $sum"
  dir=$(mktemp -d)
  # shellcheck disable=SC2064 # now: it is local
  trap "rm -rf '$dir'" EXIT
  cp -r --no-preserve=mode,ownership "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$got")/." "$dir"
  IFS=, read -ra names <<<"$absent"
  for name in "${names[@]}"; do
    name=$module/internal/backend/remote-state/$name
    sed -i "/$(sed 's/[/.]/\\&/g' <<<"$name")\"$/d" "$dir/internal/backend/init/init.go"
    (cd "$dir" && GOWORK=off go mod edit -droprequire="$name" -dropreplace="$name")
  done
  sed -i -E '/return backend(Azure|Consul|Cos|GCS|Kubernetes|OCI|OSS|Pg|S3)\.New/d' "$dir/internal/backend/init/init.go"
  (cd "$dir" && GOWORK=off go mod edit -droprequire="$module/internal/legacy" -dropreplace="$module/internal/legacy")
  (cd "$dir" && GOWORK=off GOFLAGS='' go build "${flags[@]}" -o "$1.new" .)
  mv "$1.new" "$1"
  echo "built Terraform $version in $((SECONDS - began)) s" >&2
}

case ${1:-} in
build) build ;;
*)
  echo "usage: terraform.sh build" >&2
  exit 2
  ;;
esac
