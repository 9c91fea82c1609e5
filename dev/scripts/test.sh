#!/usr/bin/env bash
# Runs the tests of all modules, with what they need, and reports as
# docs/testing.md says. Arguments go to `go test`; packages among them replace
# the default of everything:
#
#	dev/scripts/test.sh -run TestClaim ./services/runner-api/...
#
# RACE=1 turns the race detector on, in the executables too.
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
export BERTH_LIBEXEC=$PWD/.bin${RACE:+/race}

mkdir -p .bin/tools
(cd dev && GOWORK=off CGO_ENABLED=0 go build -o ../.bin/tools/testreport ./testreport)

# Never from Go's cache (-count=1): it does not know of the executables, of
# Postgres or of Terraform.
go_test() { go test -json -count=1 -timeout 20m "${flags[@]}" "$@"; }

# run ends what it began also after a failure, which the report counts.
run() {
  if [ -z "$all" ]; then
    go_test "${packages[@]}"
    return
  fi
  local status=0
  # What starts whole systems has the machine for itself: it has deadlines that
  # are promises to users.
  local -r e2e=github.com/berth-dev/berth/services/e2e
  local others
  others=$(go list "${packages[@]}" | grep -vFx "$e2e")
  mapfile -t packages <<<"$others"
  go_test "${packages[@]}" || status=1
  go_test "$e2e" || status=1
  (cd dev && GOWORK=off go test -json ./...) || status=1
  return "$status"
}
run | .bin/tools/testreport -skips dev/skips.txt
