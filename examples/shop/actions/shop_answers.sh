#!/usr/bin/env bash
# Asks through the cluster's API server, which works from outside of the cluster
# and from inside.
set -euo pipefail

answer=$(kubectl get --raw "/api/v1/namespaces/$NAMESPACE/services/http:web:80/proxy/healthz" --request-timeout 20s)
echo "$answer"

expect() {
  if ! grep -qxF "$1" <<<"$answer"; then
    echo "the shop does not answer \"$1\""
    exit 1
  fi
}

expect ok
expect "title: $TITLE"
expect "session: $SESSION"

echo "products=$(sed -n 's/^products: //p' <<<"$answer")" >>"$BERTH_ACTIONS_OUTPUT_FILEPATH"
