#!/usr/bin/env bash
# Copies the charts and Terraform modules of dev/public/list.txt into
# .bin/public/KIND/NAME, each checked against the sum of its Go module, and prints
# that directory. Tests get it as BERTH_TEST_PUBLIC. Usage: public.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly list=dev/public/list.txt out=$PWD/.bin/public
. dev/scripts/once.sh # for module_dir

fetch() {
  local name module sum path from
  while read -r name module sum path; do
    from=$(module_dir "${module%@*}" "${module##*@}" "$sum")/$path || exit 1
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
