#!/usr/bin/env bash
# Builds executables into .bin/, with RACE=1 into .bin/race with the race
# detector. Usage: build.sh [NAME]... (default: all).
# Go decides what has to be rebuilt, so calling it again costs a second. The policy engine
# is kept by what it is made of (policy.sh); with BERTH_POLICY=behind somebody else builds it.
set -euo pipefail
cd "$(dirname "$0")/../.."

. dev/scripts/executables.sh

wanted=("$@") names=() policy=
[ $# -gt 0 ] || mapfile -t wanted < <(awk 'NF{print $1}' <<<"$executables" && echo berth-policy)
packages=()
for name in "${wanted[@]}"; do
  if [ "$name" = berth-policy ]; then
    [ "${BERTH_POLICY:-}" = behind ] || policy=1
    continue
  fi
  names+=("$name")
  package=$(package_of "$name") || exit 2
  packages+=("$package")
done

dev/scripts/need.sh go
dev/scripts/assets.sh
case " ${names[*]} " in *' berth-ctl-api '*) dev/scripts/web.sh build ;; esac

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
# The race detector costs it too much; its own tests look for races.
if [ -n "$policy" ]; then
  dev/scripts/policy.sh build 7>&-
  [ "$out" = .bin ] || ln -f .bin/berth-policy "$out/berth-policy"
fi
[ ${#names[@]} -gt 0 ] || exit 0
CGO_ENABLED=$cgo go build -buildvcs=false "${flags[@]}" -ldflags "-s -w $version_flags" -o "$out/build/" "${packages[@]}"
for i in "${!names[@]}"; do
  from=$out/build/$(basename "${packages[$i]}") to=$out/${names[$i]}
  if [ ! "$from" -ef "$to" ]; then
    ln -f "$from" "$to.new" # a rename, so that a running executable is no obstacle
    mv -f "$to.new" "$to"
  fi
done
