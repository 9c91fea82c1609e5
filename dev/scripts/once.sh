# shellcheck shell=bash
# Builds a tool of the tests from its Go module, once per machine and version. A script
# sources it from the root of the repository, and has two functions of its own:
#
#	. dev/scripts/once.sh
#	build() { once tilt "$PWD/.bin/tools/tilt" "$module $version $sum ${flags[*]}"; }
#	build_into() { # FILE
#	  copy_module "$module" "$version" "$sum"       # sets $copy
#	  (cd "$copy" && GOWORK=off GOFLAGS='' go build "${flags[@]}" -o "$1" ./cmd/tilt)
#	}
#
# once NAME OUT TEXT calls build_into unless OUT was built from the same TEXT by the same
# Go. Builds are kept for all clones of a machine in BERTH_NAME_CACHE (default: berth/NAME
# in the user's cache), the last one only; a build that is killed leaves nothing that counts.

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

once() {
  # Names of its own: a script's readonly ones cannot be local here.
  local name=$1 at=$2 text=$3 kept key began=$SECONDS
  kept=BERTH_${name^^}_CACHE
  kept=${!kept:-${XDG_CACHE_HOME:-$HOME/.cache}/berth/$name}
  dev/scripts/need.sh go
  key=$({ go version && echo "$text"; } | sha256sum | cut -c1-16)
  if [ -x "$at" ] && [ "$(cat "$at.key" 2>/dev/null)" = "$key" ]; then return 0; fi
  mkdir -p "$(dirname "$at")" "$kept"
  # Clones that share a cache build one after the other, and the second not at all.
  exec 9>"$kept/lock"
  flock 9
  if [ ! -x "$kept/$key" ]; then
    find "$kept" -type f ! -name lock -delete # older ones
    echo "building $name (once)" >&2
    build_into "$kept/new"
    mv "$kept/new" "$kept/$key"
    echo "built $name in $((SECONDS - began)) s" >&2
  fi
  # Another process of this clone may have put it there while this one waited.
  if ! [ "$kept/$key" -ef "$at" ]; then
    ln -f "$kept/$key" "$at.new" 2>/dev/null || cp "$kept/$key" "$at.new"
    mv "$at.new" "$at"
  fi
  echo "$key" >"$at.key"
  exec 9>&-
}

# module_dir MODULE VERSION SUM prints the folder of a module that has that sum.
module_dir() {
  local got
  got=$(cd / && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$1@$2") || fail "$1@$2 cannot be downloaded: $got"
  [ "$(sed -n 's/.*"Sum": "\(.*\)".*/\1/p' <<<"$got")" = "$3" ] || fail "$1@$2 is not what it was: its sum differs from $3"
  sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$got"
}

# copy_module MODULE VERSION SUM sets copy to a folder with a copy of the module, without
# its vendor folder, of which a module has a list only. It goes when the script ends.
copy_module() {
  local from
  from=$(module_dir "$@") || exit 1
  copy=$(mktemp -d)
  # shellcheck disable=SC2064 # now: another copy has another name
  trap "rm -rf '$copy'" EXIT
  cp -r --no-preserve=mode,ownership "$from/." "$copy"
  rm -rf "$copy/vendor"
}
