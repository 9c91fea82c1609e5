#!/usr/bin/env bash
# Lints every module, or formats them: lint.sh [fmt | check-format].
set -euo pipefail
cd "$(dirname "$0")/../.."

dev/scripts/need.sh go
dev/scripts/tools.sh lint
readonly lint=$PWD/.bin/tools/golangci-lint config=$PWD/.golangci.yaml

status=0
# each runs a command in a module; the others still get their turn.
each() {
  local dir=$1
  shift
  echo "$dir"
  (cd "$dir" && "$@") || status=1
}

case ${1:-} in
fmt) each . "$lint" fmt --config "$config" pkg services runner cli dev examples/shop/src/web ;;
check-format) each . "$lint" fmt --config "$config" --diff pkg services runner cli dev examples/shop/src/web ;;
"")
  dev/scripts/openapi-lint.sh >.bin/openapi-lint.log 2>&1 & # it waits for others most of the time
  openapi=$!
  for dir in pkg services runner cli; do each "$dir" "$lint" run --allow-parallel-runners --config "$config" ./...; done
  export GOWORK=off
  each dev "$lint" run --allow-parallel-runners --config "$config" ./...
  CGO_ENABLED=0 each runner/policy "$lint" run --allow-parallel-runners --config "$config" ./...
  each examples/shop/src/web "$lint" run --allow-parallel-runners --config "$config" ./...
  each dev/tools "$lint" run --allow-parallel-runners --config "$config" ./bundle
  unset GOWORK
  each . dev/scripts/deadcode.sh
  echo "published API documents"
  if ! wait "$openapi"; then
    cat .bin/openapi-lint.log
    status=1
  fi
  ;;
*)
  echo "usage: lint.sh [fmt | check-format]" >&2
  exit 2
  ;;
esac
exit "$status"
