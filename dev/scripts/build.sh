#!/usr/bin/env bash
# Builds executables into .bin/, with RACE=1 into .bin/race with the race
# detector. Usage: build.sh [NAME]... (default: all).
# Go decides what has to be rebuilt, so calling it again costs a second.
set -euo pipefail
cd "$(dirname "$0")/../.."

# name of the executable, its main package
readonly executables='
berth            ./cli/cmd/berth
berth-ctl-api    ./services/ctl-api
berth-runner-api ./services/runner-api
berth-builder    ./services/builder
berth-log-ingest ./services/log-ingest
berth-runner     ./runner/cmd/runner
berth-engine     ./runner/cmd/engine
berth-verify     ./pkg/cmd/berth-verify
'

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(awk 'NF{print $1}' <<<"$executables")
packages=()
for name in "${names[@]}"; do
  package=$(awk -v n="$name" '$1==n{print $2}' <<<"$executables")
  if [ -z "$package" ]; then
    echo "build.sh: no executable \"$name\"; there are: $(awk 'NF{printf "%s ", $1}' <<<"$executables")" >&2
    exit 2
  fi
  packages+=("$package")
done

dev/scripts/need.sh go
dev/scripts/assets.sh

# Without optional locks: a build must not disturb a commit in another terminal.
version=${BERTH_VERSION:-$(GIT_OPTIONAL_LOCKS=0 git describe --tags --always --dirty 2>/dev/null || true)}
commit=$(git rev-parse --verify -q HEAD 2>/dev/null || true)
readonly pkg=github.com/berth-dev/berth/pkg/version

# One `go build` for all of them: Go names the files after their directories
# and leaves alone what is up to date; they get their real names as links.
out=.bin flags=() cgo=0
if [ -n "${RACE:-}" ]; then
  dev/scripts/need.sh cc
  out=.bin/race flags=(-race) cgo=1
fi
mkdir -p "$out/build"
exec 7>"$out/build.lock"
flock 7
CGO_ENABLED=$cgo go build "${flags[@]}" -ldflags "-s -w -X $pkg.Version=$version -X $pkg.Commit=$commit" -o "$out/build/" "${packages[@]}"
for i in "${!names[@]}"; do
  from=$out/build/$(basename "${packages[$i]}") to=$out/${names[$i]}
  if [ ! "$from" -ef "$to" ]; then
    ln -f "$from" "$to.new" # a rename, so that a running executable is no obstacle
    mv -f "$to.new" "$to"
  fi
done
