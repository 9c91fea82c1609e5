#!/usr/bin/env bash
set -euo pipefail

answer=$(kubectl get --raw "/api/v1/namespaces/$NAMESPACE/services/http:web:80/proxy/healthz" --request-timeout 20s)
products=$(sed -n 's/^products: //p' <<<"$answer")
if [ -z "$products" ]; then
  echo "the shop does not say what is on sale"
  exit 1
fi

# The key goes through a pipe, not into the arguments.
seal=$(printf '%s products=%s' "$REPORT_KEY" "$products" | sha256sum | cut -d ' ' -f 1)
echo "$products products are on sale"
{
  echo "products=$products"
  echo "seal=$seal"
} >>"$BERTH_ACTIONS_OUTPUT_FILEPATH"
