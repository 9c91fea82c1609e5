#!/usr/bin/env bash
# Makes the container images of Berth's executables, without Docker, as OCI
# layouts .bin/images/NAME, and prints their digests. The same commit makes the
# same digests. Usage: images.sh [NAME]... (default: all images)
#
#	ARCH=amd64               only for this architecture (default: amd64,arm64)
#	PUSH=HOST[:PORT]/PREFIX  also push them there
#	OUT=DIR                  write the layouts there
#	SOURCE_DATE_EPOCH=N      their time (default: that of the commit)
#	BERTH_VERSION=1.4.0      their version (default: of git)
set -euo pipefail
cd "$(dirname "$0")/../.."
. dev/scripts/executables.sh
readonly root=$PWD/.bin/images arches=${ARCH:-amd64,arm64}
readonly epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

mkdir -p "$root"
exec 8>"$root/lock"
flock 8 # one at a time: they share the folder of executables

# The image maker says what it needs, so that this is said in one place.
(cd dev && GOWORK=off CGO_ENABLED=0 go build -o ../.bin/tools/images ./images)
needs=$(.bin/tools/images --needs "$@")

for arch in ${arches//,/ }; do
  # shellcheck disable=SC2046 # one argument each
  dev/scripts/reproducible.sh linux "$arch" "$root/build/$arch" $(awk '$1=="executable"{print $2}' <<<"$needs")
  ! grep -q ^packages <<<"$needs" || dev/scripts/image-packages.sh get "$arch"
done
.bin/tools/images --executables "$root/build" --packages "$root/packages" --out "${OUT:-$root}" --push "${PUSH:-}" \
  --version "$version" --revision "$commit" --epoch "$epoch" --arch "$arches" \
  --modules "$(go env GOMODCACHE)" --goroot "$(go env GOROOT)" "$@"
