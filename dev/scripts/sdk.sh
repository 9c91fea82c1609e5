#!/usr/bin/env bash
# Makes and tests the TypeScript client, sdk/typescript:
#
#	sdk.sh modules    install what package-lock.json names; prints the folder
#	sdk.sh build      compile it, with its tests, into dist/
#	sdk.sh test       build it and run the tests that need no Berth
#
# Packages are kept by the hash of the lock file, in BERTH_NODE_CACHE (default:
# berth/node in the user's cache). Scripts of packages never run.
set -euo pipefail
cd "$(dirname "$0")/../../sdk/typescript"

modules() {
  ../../dev/scripts/need.sh node
  local cache hash into
  cache=${BERTH_NODE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/berth/node}
  hash=$(sha256sum package.json package-lock.json | sha256sum | cut -c1-16)
  into=$cache/$hash
  if [ ! -d "$into/node_modules" ]; then
    mkdir -p "$cache"
    local new
    new=$(mktemp -d "$cache/new.XXXXXX")
    cp package.json package-lock.json .npmrc "$new"
    # Whole or not at all, also when another one installs the same.
    if ! (cd "$new" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$new/npm.log" 2>&1; then
      cat "$new/npm.log" >&2
      rm -rf "$new"
      echo "cannot install the packages of sdk/typescript" >&2
      return 1
    fi
    chmod 755 "$new"
    mv -T "$new" "$into" 2>/dev/null || rm -rf "$new"
  fi
  if [ "$(readlink node_modules)" != "$into/node_modules" ]; then
    rm -rf node_modules
    ln -sfn "$into/node_modules" node_modules
  fi
  echo "$into/node_modules"
}

build() {
  modules >/dev/null
  node node_modules/typescript/bin/tsc
}

mkdir -p ../../.bin
exec 7>../../.bin/sdk.lock
flock 7 # two at once would mix their files
case ${1:-} in
modules) modules ;;
build) build ;;
test)
  build
  flock -u 7
  node --test dist/test/unit/
  ;;
*)
  echo "usage: sdk.sh (modules | build | test)" >&2
  exit 2
  ;;
esac
