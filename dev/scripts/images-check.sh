#!/usr/bin/env bash
# Makes the images of the last commit twice, in two clones in different folders
# under different circumstances, and fails unless the digests are the same. Then
# it looks into them: files, setuid, shells, and as root whether everything runs
# as any user. Usage: images-check.sh [NAME]... (default: all images)
#
# ARCH chooses architectures as for images.sh. COLD=1 compiles everything again
# for the second time, with an empty cache: many minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
dev/scripts/assets.sh

# A commit that is made meanwhile is another one.
head=$(git rev-parse HEAD)
readonly head

# images_in makes the images in a clone of that commit.
images_in() {
  local at=$1
  shift
  git clone -q --shared "$PWD" "$at"
  git -C "$at" checkout -q --detach "$head"
  # These are fetched by npm, by their checksums.
  cp services/internal/reference/assets/*.js "$at/services/internal/reference/assets/"
  [ ! -d .bin/npm ] || { mkdir -p "$at/.bin" && cp -a .bin/npm "$at/.bin/"; }
  mkdir -p .bin/images/packages "$at/.bin/images"
  cp -al "$PWD/.bin/images/packages" "$at/.bin/images/" 2>/dev/null || cp -a .bin/images/packages "$at/.bin/images/"
  (cd "$at" && dev/scripts/images.sh "$@")
}

first=$(images_in "$work/one" "$@")
export TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 GOFLAGS=-mod=mod HOSTNAME=elsewhere
[ -z "${COLD:-}" ] || export GOCACHE=$work/cache
umask 077
second=$(images_in "$work/a/much/longer/path/to/another clone" "$@")
unset GOFLAGS

if [ "$first" != "$second" ]; then
  echo "the same commit made different images:" >&2
  diff <(echo "$first") <(echo "$second") >&2 || true
  exit 1
fi
echo "$first"
"$work/one/.bin/tools/images" --check --out "$work/one/.bin/images" "$@"
