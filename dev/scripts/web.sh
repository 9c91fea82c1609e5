#!/usr/bin/env bash
# Makes the dashboard of web/ into what ctl-api embeds, and checks it:
#
#	web.sh build    make it, when its sources changed since
#	web.sh check    types, lint, format, unused exports and unit tests
#	web.sh dev      serve the pages with live reloading, in front of the control plane at BERTH_URL
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly to=services/ctl-api/internal/web/dist/pages

# sources is the hash of all that goes into the pages.
sources() {
  { find web/src web/public web/scripts sdk/typescript/src -type f -not -name '*.test.*' &&
    printf '%s\n' dev/scripts/web.sh web/{index.html,vite.config.ts,tsconfig.json,package.json,package-lock.json}; } |
    LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum | cut -c1-32
}

build() {
  local hash bin out
  mkdir -p .bin
  exec 6>.bin/web.lock
  flock 6 # two at once would mix their files
  hash=$(sources)
  [ "$(cat "$to/hash" 2>/dev/null || true)" != "$hash" ] || return 0
  echo "making the dashboard" >&2
  bin=$(dev/scripts/npm.sh web link 6>&-)
  out=$PWD/.bin/web
  rm -rf "$out"
  if ! (cd web && BERTH_WEB_OUT=$out "$bin/vite" build --logLevel warn) >.bin/web.log 2>&1; then
    cat .bin/web.log >&2
    return 1
  fi
  node web/scripts/budget.js "$out" >&2
  # Packed once, here, and not by each replica at each request.
  find "$out/assets" -type f \( -name '*.js' -o -name '*.css' \) -exec gzip -9n {} +
  rm -rf "$out/.vite"
  echo "$hash" >"$out/hash"
  rm -rf "$to"
  mkdir -p "$(dirname "$to")"
  cp -R "$out" "$to"
}

case ${1:-} in
build) build ;;
check)
  bin=$(dev/scripts/npm.sh web link)
  cd web
  "$bin/tsc" --noEmit
  "$bin/eslint" --max-warnings 0 .
  "$bin/prettier" --log-level warn --check .
  "$bin/knip"
  "$bin/vitest" run --reporter=dot
  ;;
dev)
  bin=$(dev/scripts/npm.sh web link)
  cd web
  exec "$bin/vite"
  ;;
*)
  echo "usage: web.sh (build | check | dev)" >&2
  exit 2
  ;;
esac
