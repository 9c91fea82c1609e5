#!/usr/bin/env bash
# Builds executables for pods into .bin/tilt/NAME, where the Tiltfile takes them
# from. A file that would be the same is left alone, so that nothing restarts for
# it. Usage: live-build.sh NAME EXECUTABLE...
#
# ARCH is the architecture of the nodes (default: that of this machine).
set -euo pipefail
cd "$(dirname "$0")/../.."
. dev/scripts/executables.sh
readonly name=$1 out=$PWD/.bin/tilt/$1 built=$PWD/.bin/tilt/build/$1
shift

dev/scripts/need.sh go
dev/scripts/assets.sh
case " $* " in *' berth-ctl-api '*) dev/scripts/web.sh build ;; esac
mkdir -p "$out" "$built"
packages=()
for executable in "$@"; do packages+=("$(package_of "$executable")"); done
CGO_ENABLED=0 GOOS=linux GOARCH=${ARCH:-$(go env GOARCH)} \
  go build -buildvcs=false -ldflags "-s -w $version_flags" -o "$built/" "${packages[@]}"
for executable in "$@"; do
  from=$built/$(basename "$(package_of "$executable")")
  if ! cmp -s "$from" "$out/$executable"; then
    cp "$from" "$built/$executable.new"
    mv "$built/$executable.new" "$out/$executable"
  fi
done
