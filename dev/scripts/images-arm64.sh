#!/usr/bin/env bash
# Makes the images for arm64, looks into them, and runs every executable in them
# once, to say its version, under qemu's emulation of a user's program: what an
# amd64 machine can find out. Usage: images-arm64.sh [NAME]... (default: all images)
#
# qemu is Debian's qemu-user-static, unpacked into .bin/tools: nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly emulator=$PWD/.bin/tools/qemu-aarch64-static

if [ ! -x "$emulator" ]; then
  command -v apt-get >/dev/null || {
    echo "images-arm64.sh: this needs apt-get, so a machine with Debian" >&2
    exit 1
  }
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p .bin/tools
  (cd "$work" && apt-get -q download qemu-user-static >&2 && dpkg-deb -x qemu-user-static_*.deb .)
  mv "$work/usr/bin/qemu-aarch64-static" "$emulator"
fi
ARCH=arm64 dev/scripts/images.sh "$@"
.bin/tools/images --check --emulator "$emulator" --out "${OUT:-.bin/images}" "$@"
