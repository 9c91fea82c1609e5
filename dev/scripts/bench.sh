#!/usr/bin/env bash
# Measures against the budgets of the design: first job dispatch on the real
# executables, then the Go benchmarks. Usage: bench.sh [FLAG | PACKAGE]...
#
#	dev/scripts/bench.sh                                # all
#	dev/scripts/bench.sh ./services/bench -samples 200  # only job dispatch
#	dev/scripts/bench.sh -count 5 ./pkg/redact          # only Go benchmarks of these
#
# docs/reference/benchmarks.md has the figures and says how to read them.
set -euo pipefail
cd "$(dirname "$0")/../.."

flags=() packages=()
for arg in "$@"; do
  case $arg in
  ./*) packages+=("$arg") ;;
  *) flags+=("$arg") ;;
  esac
done

dev/scripts/need.sh go postgres
dev/scripts/build.sh
export BERTH_LIBEXEC=$PWD/.bin

# Built rather than `go run`, which would not pass an interrupt on.
dispatch() {
  go build -o .bin/build/bench ./services/bench
  .bin/build/bench "$@"
}

if [ "${packages[*]}" = ./services/bench ]; then
  dispatch "${flags[@]}"
  exit
fi
if [ ${#packages[@]} = 0 ]; then
  dispatch
  packages=(./pkg/... ./services/... ./runner/... ./cli/...)
fi
go test -run '^$' -bench . -benchmem -timeout 30m "${flags[@]}" "${packages[@]}"
