#!/usr/bin/env bash
# Makes and tests the TypeScript client, sdk/typescript:
#
#	sdk.sh build    compile it, with its tests, into dist/
#	sdk.sh test     build it and run the tests that need no control plane
set -euo pipefail
cd "$(dirname "$0")/../.."

build() {
  local packages
  packages=$(dev/scripts/npm.sh sdk/typescript link)
  exec 8>.bin/sdk.lock
  flock 8 # two at once would mix their files
  (cd sdk/typescript && "$packages/tsc")
  exec 8>&-
}

case ${1:-} in
build) build ;;
test)
  build
  cd sdk/typescript
  node --test dist/test/unit/
  ;;
*)
  echo "usage: sdk.sh (build | test)" >&2
  exit 2
  ;;
esac
