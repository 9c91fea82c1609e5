#!/usr/bin/env bash
# The Debian packages of the runner's image, each with its version and SHA256 in
# dev/images/packages.lock. Usage:
#
#	image-packages.sh get ARCH      download what the list names, into
#	                                .bin/images/packages/ARCH
#	image-packages.sh update        write that list from what Debian has now
#
# It needs apt-get, on a Debian machine of the release that the list is for.
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly lock=dev/images/packages.lock root=$PWD/.bin/images/packages

# What scripts expect, and what of its dependencies no script needs. gcc-12-base is
# there for the license of libgcc.
readonly wanted=(bash coreutils curl jq grep sed mawk tar gzip)
readonly unwanted=(dpkg)

fail() {
  echo "image-packages.sh: $1" >&2
  exit 1
}

command -v apt-get >/dev/null || fail "this needs apt-get, so a machine with Debian"

# apt ARCH ARGUMENT... runs apt-get for an architecture, with lists of its own and
# no package installed, so that it resolves everything.
apt() {
  local arch=$1 state=$root/apt/$1
  shift
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  : >"$state/status"
  apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 \
    -o APT::Install-Recommends=false -o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status" \
    -o Dir::Cache="$state/cache" "$@"
}

# get downloads the versions of the list, and checks each file against it.
get() {
  local arch=$1 to=$root/$1 name version sum file
  local -a missing=()
  mkdir -p "$to"
  while read -r _ name version sum; do
    file=$to/${name}_$sum.deb
    sha256sum --status -c <<<"$sum  $file" 2>/dev/null || missing+=("$name=$version")
  done < <(grep "^$arch " "$lock")
  if [ ${#missing[@]} -gt 0 ]; then
    local new=$to.new
    rm -rf "$new"
    mkdir "$new"
    apt "$arch" update
    (cd "$new" && apt "$arch" download "${missing[@]}") ||
      fail "Debian no longer has all versions of $lock: image-packages.sh update"
    while read -r _ name version sum; do
      for file in "$new/${name}_"*.deb; do
        [ ! -e "$file" ] || ! sha256sum --status -c <<<"$sum  $file" || mv "$file" "$to/${name}_$sum.deb"
      done
    done < <(grep "^$arch " "$lock")
    for file in "$new"/*.deb; do
      [ ! -e "$file" ] || fail "${file##*/} is not what $lock says"
    done
    rmdir "$new"
  fi
  # What an older list named.
  for file in "$to"/*.deb; do
    name=${file##*/} sum=${file##*_}
    grep -q "^$arch ${name%_*} .* ${sum%.deb}$" "$lock" || rm "$file"
  done
}

# update resolves the wanted packages for each architecture.
update() {
  local arch dir file name version
  {
    echo "# Debian packages of the runner's image: architecture, name, version, SHA256."
    echo "# dev/scripts/image-packages.sh update writes this."
    for arch in amd64 arm64; do
      dir=$(mktemp -d)
      apt "$arch" update
      apt "$arch" -y --download-only -o Dir::Cache::archives="$dir" install "${wanted[@]}" >/dev/null
      for file in "$dir"/*.deb; do
        read -r name version < <(dpkg-deb -W --showformat='${Package} ${Version}\n' "$file")
        [[ " ${unwanted[*]} " == *" $name "* ]] || echo "$arch $name $version $(sha256sum "$file" | cut -d' ' -f1)"
      done | LC_ALL=C sort
      rm -rf "$dir"
    done
  } >"$lock.new"
  mv "$lock.new" "$lock"
}

case ${1:-} in
get) get "${2:?which architecture?}" ;;
update) update ;;
*)
  echo "usage: image-packages.sh get ARCH | update" >&2
  exit 2
  ;;
esac
