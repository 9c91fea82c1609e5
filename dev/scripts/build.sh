#!/usr/bin/env bash
# Builds executables into .bin/, with RACE=1 into .bin/race with the race
# detector. Usage: build.sh [NAME]... (default: all).
# Go decides what has to be rebuilt, so calling it again costs a second.
set -euo pipefail
cd "$(dirname "$0")/../.."

. dev/scripts/executables.sh

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(awk 'NF{print $1}' <<<"$executables")
packages=()
for name in "${names[@]}"; do
  package=$(package_of "$name") || exit 2
  packages+=("$package")
done

dev/scripts/need.sh go
dev/scripts/assets.sh

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
CGO_ENABLED=$cgo go build -buildvcs=false "${flags[@]}" -ldflags "-s -w $version_flags" -o "$out/build/" "${packages[@]}"
for i in "${!names[@]}"; do
  from=$out/build/$(basename "${packages[$i]}") to=$out/${names[$i]}
  if [ ! "$from" -ef "$to" ]; then
    ln -f "$from" "$to.new" # a rename, so that a running executable is no obstacle
    mv -f "$to.new" "$to"
  fi
done
