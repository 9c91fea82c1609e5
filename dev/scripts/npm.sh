#!/usr/bin/env bash
# Installs the npm packages that a folder's package-lock.json names, once for
# each lock, without running their scripts, and prints where their executables
# are. With link, the folder has them as node_modules, where Node and editors look.
# Usage: npm.sh FOLDER [link]
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$1
dev/scripts/need.sh node
hash=$(cat "$folder/package.json" "$folder/package-lock.json" | sha256sum | cut -c1-16)
to=$PWD/.bin/npm/$(basename "$folder")-$hash
mkdir -p .bin/npm
exec 9>.bin/npm/lock
flock 9
if [ ! -e "$to/installed" ]; then
  echo "installing the npm packages of $folder" >&2
  rm -rf "$to"
  mkdir -p "$to"
  cp "$folder/package.json" "$folder/package-lock.json" "$to/"
  if ! (cd "$to" && npm ci --ignore-scripts --no-fund --no-audit --no-update-notifier) >"$to/log" 2>&1; then
    tail -n 5 "$to/log" >&2
    echo "could not install the npm packages of $folder; the whole story is in $to/log" >&2
    exit 1
  fi
  touch "$to/installed"
fi
if [ "${2:-}" = link ]; then
  [ -L "$folder/node_modules" ] || rm -rf "$folder/node_modules"
  ln -sfn "$to/node_modules" "$folder/node_modules"
fi
echo "$to/node_modules/.bin"
