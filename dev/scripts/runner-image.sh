#!/usr/bin/env bash
# Makes the image of the runner and pushes it to a registry for development:
# berth-runner, berth-engine, berth-policy, terraform and kubectl on a root file system of
# Debian packages with what scripts expect. Prints the image's name with its
# digest. Usage: runner-image.sh [NAME:TAG] (default berth/runner:dev)
#
# BERTH_LIBEXEC is the folder of the executables (default: .bin),
# BERTH_DEV_REGISTRY where it goes (default: that of make kube).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly name=${1:-berth/runner:dev} libexec=${BERTH_LIBEXEC:-$PWD/.bin}
readonly packages=(bash coreutils ca-certificates curl jq grep sed mawk tar gzip)
readonly root=$PWD/.bin/runner-image

fail() {
  echo "runner-image.sh: $1" >&2
  exit 1
}

for program in berth-runner berth-engine berth-policy; do
  [ -x "$libexec/$program" ] || fail "$libexec has no $program: make build"
done
[ -x .bin/kube/kubectl ] || fail "there is no kubectl: make kube builds it"
command -v dpkg-deb >/dev/null || fail "this needs apt-get and dpkg-deb, so a machine with Debian or its like"
terraform=$(dev/scripts/need.sh terraform)

# rootfs unpacks the packages with all that they need into a tar file. No script
# of a package is run: what theirs would make is made here.
rootfs() {
  local -r at=$root/rootfs debs=$root/debs
  rm -rf "$at" "$debs"
  mkdir -p "$debs/partial" "$at/etc/ssl/certs"
  # With an empty list of installed packages apt resolves everything.
  : >"$root/status"
  local -r download=(apt-get -qq -y --download-only --no-install-recommends -o Debug::NoLocking=1
    -o Dir::State::status="$root/status" -o Dir::Cache::archives="$debs" -o APT::Sandbox::User=root install "${packages[@]}")
  if ! "${download[@]}" >"$root/log" 2>&1; then # perhaps this machine has never looked what there is
    { apt-get -qq update && "${download[@]}"; } >"$root/log" 2>&1 || fail "the packages could not be downloaded, see $root/log"
  fi
  local deb
  for deb in "$debs"/*.deb; do dpkg-deb -x "$deb" "$at"; done
  cat "$at"/usr/share/ca-certificates/mozilla/*.crt >"$at/etc/ssl/certs/ca-certificates.crt"
  printf 'root:x:0:0:root:/root:/bin/bash\nengine:x:61000:61000:engine:/tmp:/bin/bash\n' >"$at/etc/passwd"
  printf 'root:x:0:\nengine:x:61000:\n' >"$at/etc/group"
  ln -sf bash "$at/bin/sh"
  ln -sf mawk "$at/usr/bin/awk"
  rm -rf "$at/usr/share/"{doc,man,locale,info} "$at/var/cache" "$debs"
  # The same packages make the same file.
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$at" -cf "$root/rootfs.tar.new" .
  rm -rf "$at"
  mv "$root/rootfs.tar.new" "$root/rootfs.tar"
}

mkdir -p "$root"
exec 8>"$root.lock"
flock 8
[ -s "$root/rootfs.tar" ] || rootfs

# kubectl is a link into the one executable of all; the copy is an own file.
readonly kubectl=$(realpath .bin/kube/kubectl) reference=${BERTH_DEV_REGISTRY:-127.0.0.1:16452}/$name
files=("$libexec/berth-runner" "$libexec/berth-engine" "$libexec/berth-policy" "$terraform" "$kubectl" "$root/rootfs.tar" .bin/kube/mkimage)

# Build Runners that are pods build images with it, where it was built.
readonly buildctl=$PWD/.bin/tools/buildctl
more=()
if [ -x "$buildctl" ]; then
  files+=("$buildctl")
  more=("$buildctl:/usr/local/bin/buildctl")
fi

# What has been made of the same files is not made again while the registry has it.
key=$(printf '%s\n' "$reference" "$(stat -Lc '%n %i %s %Y' "${files[@]}")" | sha256sum | cut -d' ' -f1)
readonly key made=$root/made
if [ -f "$made" ] && read -r made_key image <"$made" && [ "$made_key" = "$key" ] &&
  curl -sf -o /dev/null -I -H 'Accept: application/vnd.oci.image.manifest.v1+json' "http://${image%%/*}/v2/${name%:*}/manifests/${image##*@}"; then
  echo "$image"
  exit
fi
image=$(.bin/kube/mkimage --base "$root/rootfs.tar" --entry /usr/local/bin/berth-runner --user 0:0 "$reference" \
  "$libexec/berth-runner:/usr/local/bin/berth-runner" "$libexec/berth-engine:/usr/local/bin/berth-engine" "$libexec/berth-policy:/usr/local/bin/berth-policy" \
  "$terraform:/usr/local/bin/terraform" "$kubectl:/usr/local/bin/kubectl" "${more[@]}")
echo "$key $image" >"$made.new"
mv "$made.new" "$made"
echo "$image"
