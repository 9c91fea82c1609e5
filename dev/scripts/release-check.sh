#!/usr/bin/env bash
# Makes a release for this machine with a key for once, installs it with its own
# script into an empty folder, checks it with berth-verify, and runs examples/hello
# from there until it is healthy. It fails when that takes more than 20 s from
# `berth up` on (LIMIT=SECONDS says another limit).
set -euo pipefail
cd "$(dirname "$0")/../.."

# A short path: sockets are below it.
work=$(mktemp -d /tmp/berth-rel-XXXXXX)
berth=$work/berth/current/bin/berth
finish() {
  [ ! -d "$work/data" ] || "$berth" down --purge >/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work"

dev/scripts/need.sh go postgres
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
openssl genpkey -algorithm ed25519 -out "$work/key" 2>/dev/null
openssl pkey -in "$work/key" -pubout -out "$work/key.pub"
out=$(KEY=$work/key IMAGES=no PLATFORMS=$(go env GOOS)/$(go env GOARCH) dev/scripts/release.sh)
"$out/install.sh" --from "$out" --to "$work/berth" --key "$work/key.pub"
"$work/berth/current/bin/berth-verify" release "$out/release.json" --key "$work/key.pub"

# As on a machine that has never seen Berth; another one may run here.
mkdir "$work/home"
export HOME=$work/home BERTH_TERRAFORM BERTH_DATA=$work/data BERTH_CONTEXT=local BERTH_PORT=${BERTH_PORT:-18700}
unset BERTH_LIBEXEC XDG_CONFIG_HOME XDG_CACHE_HOME
cd "$work/berth/current"
began=$(date +%s%N)
"$berth" up --detach
"$berth" sync examples/hello --wait --timeout 5m
"$berth" installs create acme --app hello --customer acme --stack local --auto-approve --timeout 5m
"$berth" actions run acme files_intact --watch --timeout 2m
"$berth" installs show acme --json health | grep -q '"healthy"'
took=$((($(date +%s%N) - began) / 1000000))
echo "from berth up to a healthy install: $took ms"
[ "$took" -le $((${LIMIT:-20} * 1000)) ] || {
  echo "release-check.sh: that is more than ${LIMIT:-20} s" >&2
  exit 1
}
