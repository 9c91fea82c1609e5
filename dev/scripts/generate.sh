#!/usr/bin/env bash
# Regenerates everything that is generated. Usage: generate.sh [openapi|typescript|sqlc]...
# (default: all). BERTH_GENERATE_ROOT generates into another copy of the tree,
# which is how `make verify` compares.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly tools=$PWD/.bin/tools config=$PWD/dev/openapi npm=$PWD/dev/scripts/npm.sh
readonly root=${BERTH_GENERATE_ROOT:-$PWD}

mkdir -p .bin
exec 8>.bin/generate.lock
flock 8 # runs that overlap would mix their files
dev/scripts/tools.sh generate
cd "$root"

# api SERVICE CLIENT bundles one contract, then generates both of its sides.
api() {
  local spec=openapi/$1.yaml dir=services/$1/internal/apigen client=pkg/$2
  if [ ! -f "$spec" ]; then
    echo "skip $spec: not there"
    return
  fi
  "$tools/bundle" "$spec" "$dir/openapi.json"
  "$tools/oapi-codegen" -config "$config/server.yaml" -package apigen -o "$dir/apigen.gen.go" "$dir/openapi.json"
  # Handlers get the request's context, not gin's: gin gives its own to the next
  # request, and anyone who still holds it then (a pool that goes on connecting, a
  # writer of a stream) would read that one's values.
  sed -i 's/return sh\.ssi\.\([A-Za-z]*\)(ctx, /return sh.ssi.\1(ctx.Request.Context(), /' "$dir/apigen.gen.go"
  mkdir -p "$client"
  "$tools/oapi-codegen" -config "$config/client.yaml" -package "$2" -o "$client/client.gen.go" "$dir/openapi.json"
  echo "generated $dir, $client"
}

openapi() {
  api ctl-api ctlapi
  api runner-api runnerapi
  api log-ingest logapi
}

# After openapi, whose bundle it reads.
typescript() {
  local modules types=sdk/typescript/src/api.gen.ts
  modules=$("$npm" sdk/typescript)
  mkdir -p "${types%/*}"
  # From there, because it takes rules for documents from where it runs. What has
  # a default may be left out of a request.
  (cd sdk/typescript && "$modules/openapi-typescript" ../../services/ctl-api/internal/apigen/openapi.json \
    --default-non-nullable=false -o src/api.gen.ts) >/dev/null
  echo "generated $types"
}

sqlc() {
  local store=services/internal/store
  if ! compgen -G "$store/migrations/*.sql" >/dev/null || ! compgen -G "$store/queries/*/*.sql" >/dev/null; then
    echo "skip $store: no migrations or no queries"
    return
  fi
  # A query file that went away must not leave its Go file behind.
  rm -f "$store"/*db/*.sql.go
  (cd services && "$tools/sqlc" generate)
  echo "generated" "$store"/*db
}

[ $# -gt 0 ] || set -- openapi typescript sqlc
for target in "$@"; do
  case $target in
  openapi | typescript | sqlc) "$target" ;;
  *)
    echo "generate.sh: no target \"$target\"; there are: openapi typescript sqlc" >&2
    exit 2
    ;;
  esac
done
