#!/usr/bin/env bash
# Builds the pinned tools into .bin/tools. Usage: tools.sh [generate|lint]...
# (default: all). The versions are in dev/tools/go.mod and dev/lint/go.mod; a
# set is rebuilt only when its inputs changed.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly out=$PWD/.bin/tools
export GOWORK=off GOFLAGS=

# build SET DIR PACKAGE... builds packages of the module in DIR.
build() {
  local set=$1 dir=$2 key stamp
  shift 2
  stamp=$out/.$set
  key=$({ go version; find "$dir" -type f | LC_ALL=C sort | xargs sha256sum; } | sha256sum | cut -d' ' -f1)
  [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && return
  dev/scripts/need.sh go cc
  echo "building the $set tools (once; later only when $dir changes)"
  (cd "$dir" && go build -buildvcs=false -trimpath -ldflags='-s -w' -o "$out/" "$@")
  echo "$key" >"$stamp"
}

mkdir -p "$out"
exec 9>.bin/tools.lock
flock 9
[ $# -gt 0 ] || set -- generate lint
for set in "$@"; do
  case $set in
  generate)
    build generate dev/tools ./bundle \
      github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen \
      github.com/sqlc-dev/sqlc/cmd/sqlc
    ;;
  lint)
    build lint dev/lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint \
      golang.org/x/tools/cmd/deadcode
    ;;
  *)
    echo "tools.sh: no tool set \"$set\"; there are: generate lint" >&2
    exit 2
    ;;
  esac
done
