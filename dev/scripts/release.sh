#!/usr/bin/env bash
# Makes what is published of a version, in .bin/release/VERSION: an archive of all
# executables per platform, the install script, checksums, and the signed list of
# them and of the images. Usage: release.sh
#
#	KEY=FILE                   the private key that signs: Ed25519 in PEM, as
#	                           `openssl genpkey -algorithm ed25519` makes it; or
#	                           the key itself in BERTH_RELEASE_KEY
#	PLATFORMS="linux/amd64"    only these (default: linux/amd64 linux/arm64)
#	IMAGES=no                  without images; else as for images.sh: PUSH, ARCH
#	BERTH_VERSION, SOURCE_DATE_EPOCH   as for images.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. dev/scripts/executables.sh
readonly root=$PWD/.bin/release
readonly out=$root/$version epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

key=${KEY:-} work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$key" ]; then
  if [ -z "${BERTH_RELEASE_KEY:-}" ]; then
    echo "release.sh: KEY=FILE or BERTH_RELEASE_KEY says what signs; openssl genpkey -algorithm ed25519 makes a key" >&2
    exit 2
  fi
  key=$work/key
  (umask 077 && printf '%s\n' "$BERTH_RELEASE_KEY" >"$key")
fi
unset BERTH_RELEASE_KEY # nothing that is started here needs it

(cd dev && GOWORK=off CGO_ENABLED=0 go build -o ../.bin/tools/release ./release)
rm -rf "$root/build"
mapfile -t names < <(awk 'NF{print $1}' <<<"$executables" && echo berth-policy)
for platform in ${PLATFORMS:-linux/amd64 linux/arm64}; do
  dev/scripts/reproducible.sh "${platform%/*}" "${platform#*/}" "$root/build/${platform/\//_}" "${names[@]}"
done
images=()
if [ "${IMAGES:-}" != no ]; then
  dev/scripts/images.sh >"$root/images"
  images=(--images "$root/images")
fi
.bin/tools/release --executables "$root/build" --key "$key" --version "$version" --commit "$commit" --epoch "$epoch" --out "$out" \
  --modules "$(go env GOMODCACHE)" --goroot "$(go env GOROOT)" "${images[@]}"
echo "$out"
