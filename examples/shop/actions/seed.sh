#!/usr/bin/env bash
# The API server's proxy does not pass a bearer token on, so this goes through a
# forwarded port.
set -euo pipefail

offers='{"name": "Fishing net", "cents": 4500}
{"name": "Ship in a bottle", "cents": 2995}'

forward=$(mktemp)
forwarder=
trap 'rm -f "$forward"; [ -z "$forwarder" ] || kill "$forwarder" 2>/dev/null || true' EXIT

# address prints where the forwarded port is once it is there.
address() {
  local deadline=$((SECONDS + 20)) found
  while [ $SECONDS -lt $deadline ] && kill -0 "$forwarder" 2>/dev/null; do
    found=$(sed -n 's/^Forwarding from \(127\.0\.0\.1:[0-9]*\) .*/\1/p' "$forward")
    if [ -n "$found" ]; then
      echo "$found"
      return
    fi
    sleep 0.1
  done
  echo "no way to the pod: $(cat "$forward")" >&2
  return 1
}

# add posts one product; the token goes through a pipe, not into the arguments.
add() {
  curl --noproxy "*" --silent --show-error --fail-with-body --max-time 10 -H @- --data "$2" "http://$1/products" \
    <<<"Authorization: Bearer $ADMIN_TOKEN"
}

# seed adds the offers to one pod.
seed() {
  local at status=0
  kubectl --namespace "$NAMESPACE" port-forward "pod/$1" :8080 >"$forward" 2>&1 &
  forwarder=$!
  if at=$(address); then
    while read -r offer; do add "$at" "$offer" || status=1; done <<<"$offers"
  else
    status=1
  fi
  kill "$forwarder" 2>/dev/null || true
  wait "$forwarder" 2>/dev/null || true
  forwarder=
  return "$status"
}

# going tells whether a pod is on its way out: a rollout may still end pods.
going() {
  local at
  at=$(kubectl --namespace "$NAMESPACE" get pod "$1" --output jsonpath='{.metadata.deletionTimestamp}' 2>/dev/null) || return 0
  [ -n "$at" ]
}

pods=$(kubectl --namespace "$NAMESPACE" get pods --selector app.kubernetes.io/name=web --field-selector status.phase=Running \
  --output go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}')
seeded=0
for pod in $pods; do
  tries=1
  until seed "$pod"; do
    if going "$pod"; then continue 2; fi
    [ "$tries" -lt 5 ] || exit 1
    tries=$((tries + 1))
    sleep 1
  done
  echo "seeded $pod"
  seeded=$((seeded + 1))
done
if [ "$seeded" = 0 ]; then
  echo "no pod of the shop runs in $NAMESPACE"
  exit 1
fi
echo "pods=$seeded" >>"$BERTH_ACTIONS_OUTPUT_FILEPATH"
