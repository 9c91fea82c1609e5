#!/usr/bin/env bash
# The real Tilt, built from its module into .bin/tools/tilt. Usage: tilt.sh COMMAND
#
#	build  builds it, unless it is there (minutes)
#	check  evaluates the Tiltfile with it, on the cluster of KUBECONFIG
#
# BERTH_TILT_CACHE keeps builds, for all clones of a machine (default: berth/tilt in
# the user's cache).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly module=github.com/tilt-dev/tilt version=v0.33.0 sum=h1:fpjMzuHLMFaUeqNaUeLu2rTVCDg8vP6Od9hy3DYmmjk=
# The module calls itself by an older version unless it is told. Its page is not in it.
readonly flags=(-mod=mod -buildvcs=false -trimpath "-ldflags=-s -w -X main.version=${version#v}")
readonly out=$PWD/.bin/tools/tilt

fail() {
  echo "tilt.sh: $1" >&2
  exit 1
}

build() {
  local key cache=${BERTH_TILT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/berth/tilt}
  dev/scripts/need.sh go cc
  key=$({ go version && echo "$module $version $sum ${flags[*]}"; } | sha256sum | cut -c1-16)
  [ "$(cat "$out.key" 2>/dev/null)" != "$key" ] || return 0
  mkdir -p .bin/tools "$cache"
  # Clones that share a cache build one after the other, and the second not at all.
  exec 9>"$cache/lock"
  flock 9
  if [ ! -x "$cache/$key" ]; then
    find "$cache" -type f ! -name lock -delete # older ones
    build_into "$cache/$key"
  fi
  ln -f "$cache/$key" "$out.new" 2>/dev/null || cp "$cache/$key" "$out.new"
  mv "$out.new" "$out"
  echo "$key" >"$out.key"
}

# build_into checks the module against its sum and builds it. Its vendor folder,
# of which the module has a list only, is left out.
build_into() {
  local got dir began=$SECONDS
  got=$(cd / && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$module@$version") || fail "$module@$version cannot be downloaded: $got"
  [ "$(sed -n 's/.*"Sum": "\(.*\)".*/\1/p' <<<"$got")" = "$sum" ] || fail "$module@$version is not what it was: its sum differs from $sum"
  dir=$(mktemp -d)
  # shellcheck disable=SC2064 # now: it is local
  trap "rm -rf '$dir'" EXIT
  cp -r --no-preserve=mode,ownership "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$got")/." "$dir"
  rm -rf "$dir/vendor"
  (cd "$dir" && GOWORK=off GOFLAGS='' go build "${flags[@]}" -o "$1.new" ./cmd/tilt)
  mv "$1.new" "$1"
  echo "built Tilt $version in $((SECONDS - began)) s" >&2
}

# check prints nothing when all is well: the result has secrets in it.
check() {
  local log=.bin/tilt-check.log
  build
  (umask 077 && TILT_DISABLE_ANALYTICS=1 PATH=$PWD/.bin/kube:$PATH "$out" alpha tiltfile-result -v >/dev/null 2>"$log") || {
    cat "$log" >&2
    fail "the Tiltfile cannot be evaluated"
  }
}

case ${1:-} in
build | check) "$1" ;;
*)
  echo "usage: tilt.sh build|check" >&2
  exit 2
  ;;
esac
