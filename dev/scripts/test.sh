#!/usr/bin/env bash
# Runs the tests of all modules, with what they need, and reports as
# docs/testing.md says. Arguments go to `go test`; packages among them replace
# the default of everything:
#
#	dev/scripts/test.sh -run TestClaim ./services/runner-api/...
#
# RACE=1 turns the race detector on.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly workspace='./pkg/... ./services/... ./runner/... ./cli/...'

flags=() packages=()
for arg in "$@"; do
  case $arg in
  ./*) packages+=("$arg") ;;
  *) flags+=("$arg") ;;
  esac
done
all=
if [ ${#packages[@]} = 0 ]; then
  all=1
  read -ra packages <<<"$workspace"
fi

dev/scripts/need.sh go git postgres
if [ -n "${RACE:-}" ]; then
  dev/scripts/need.sh cc
  export CGO_ENABLED=1
  flags+=(-race)
fi
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
export BERTH_TERRAFORM

# The end-to-end tests start the real executables, found here.
dev/scripts/build.sh
export BERTH_LIBEXEC=$PWD/.bin

mkdir -p .bin/tools
(cd dev && GOWORK=off CGO_ENABLED=0 go build -o ../.bin/tools/testreport ./testreport)

# Never from Go's cache (-count=1): it does not know of the executables, of
# Postgres or of Terraform.
run() {
  go test -json -count=1 -timeout 20m "${flags[@]}" "${packages[@]}"
  if [ -n "$all" ]; then (cd dev && GOWORK=off go test -json ./...); fi
}
run | .bin/tools/testreport -skips dev/skips.txt
