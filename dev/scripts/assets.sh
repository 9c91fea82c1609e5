#!/usr/bin/env bash
# Gets the scripts of other projects that are embedded into services and are not
# in the repository, in the versions and with the contents that are named here.
# Usage: assets.sh. It does nothing when they are there.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Redoc renders the API reference. 3.0 cannot be installed: a package that it
# needs was never published.
readonly redoc=2.5.4
readonly sha256=dcaf76612bc4a3fbcc923a8966dee2f6146a5f32e5ce1b6f02dd60cbbf89500b
readonly to=services/internal/reference/assets/redoc.standalone.js

is_there() { [ "$(sha256sum "$to" 2>/dev/null | cut -d' ' -f1)" = "$sha256" ]; }

is_there && exit
dev/scripts/need.sh node
mkdir -p .bin
exec 9>.bin/assets.lock
flock 9
is_there && exit
echo "getting redoc $redoc" >&2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if ! (cd "$dir" && npm pack --silent "redoc@$redoc") >"$dir/log" 2>&1; then
  tail -n 5 "$dir/log" >&2
  echo "could not get redoc $redoc from the npm registry: see npm's message above, then try again" >&2
  exit 1
fi
tar -xzf "$dir"/redoc-*.tgz -C "$dir" package/bundles/redoc.standalone.js
if ! sha256sum --quiet --check - <<<"$sha256  $dir/package/bundles/redoc.standalone.js"; then
  echo "redoc $redoc is not what it was: its contents changed, so it is not used" >&2
  exit 1
fi
chmod 644 "$dir/package/bundles/redoc.standalone.js"
mv "$dir/package/bundles/redoc.standalone.js" "$to"
