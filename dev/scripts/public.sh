#!/usr/bin/env bash
# Copies the charts and Terraform modules of dev/public/list.txt into
# .bin/public/KIND/NAME, each checked against the sum of its Go module, and prints
# that directory. Tests get it as BERTH_TEST_PUBLIC. Usage: public.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly list=dev/public/list.txt out=$PWD/.bin/public

fail() {
  echo "public.sh: $1" >&2
  exit 1
}

fetch() {
  local name module sum path got from
  while read -r name module sum path; do
    got=$(cd / && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$module" 2>&1) || fail "$module cannot be downloaded: $got"
    [ "$(sed -n 's/.*"Sum": "\(.*\)".*/\1/p' <<<"$got")" = "$sum" ] || fail "$module is not what it was: its sum differs from $sum"
    from=$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$got")/$path
    if [ -d "$from" ]; then
      mkdir -p "$1/${name%/*}"
      cp -r --no-preserve=mode,ownership "$from" "$1/$name"
    else # a module of one file
      mkdir -p "$1/$name"
      cp --no-preserve=mode,ownership "$from" "$1/$name/main.tf"
    fi
  done < <(grep -v '^#' "$list")
}

dev/scripts/need.sh go
mkdir -p .bin
exec 9>.bin/public.lock
flock 9
key=$(sha256sum <"$list")
if [ "$(cat "$out.key" 2>/dev/null)" != "$key" ]; then
  rm -rf "$out" "$out.new"
  mkdir "$out.new"
  fetch "$out.new"
  mv "$out.new" "$out"
  echo "$key" >"$out.key"
fi
echo "$out"
