#!/usr/bin/env bash
# The real Tilt, built from its module. Usage: tilt.sh COMMAND
#
#	build     builds .bin/tools/tilt, unless it is there (minutes)
#	start     does that in the background; build then waits for it
#	check     evaluates the Tiltfile with it, on the cluster of KUBECONFIG
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly module=github.com/tilt-dev/tilt version=v0.33.0 sum=h1:fpjMzuHLMFaUeqNaUeLu2rTVCDg8vP6Od9hy3DYmmjk=
readonly out=$PWD/.bin/tools/tilt

fail() {
  echo "tilt.sh: $1" >&2
  exit 1
}

build() {
  local key got dir
  dev/scripts/need.sh go cc
  mkdir -p .bin/tools
  exec 9>.bin/tilt.lock
  flock 9
  key=$({ go version && cat "$0" && echo "$sum"; } | sha256sum | cut -d' ' -f1)
  if [ -x "$out" ] && [ "$(cat "$out.key" 2>/dev/null)" = "$key" ]; then return; fi
  got=$(cd / && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$module@$version") || fail "$module@$version cannot be downloaded: $got"
  [ "$(sed -n 's/.*"Sum": "\(.*\)".*/\1/p' <<<"$got")" = "$sum" ] || fail "$module@$version is not what it was: its sum differs from $sum"
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  cp -r --no-preserve=mode,ownership "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$got")/." "$dir"
  rm -rf "$dir/vendor" # modules.txt alone: the rest is not in a module
  (cd "$dir" && GOWORK=off GOFLAGS= go build -mod=mod -buildvcs=false -trimpath -ldflags='-s -w' -o "$out.new" ./cmd/tilt)
  mv "$out.new" "$out"
  echo "$key" >"$out.key"
}

start() {
  mkdir -p .bin
  nohup "$0" build >.bin/tilt.log 2>&1 </dev/null &
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
build | start | check) "$1" ;;
*)
  echo "usage: tilt.sh build|start|check" >&2
  exit 2
  ;;
esac
