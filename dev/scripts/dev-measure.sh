#!/usr/bin/env bash
# Measures how long it takes from a save until the saved code runs: ten saves of
# each service, in a scratch clone of the last commit. Prints the table of
# docs/reports/inner-loop.md. Usage: dev-measure.sh [dev|tilt]... (default: dev)
#
# dev is `make dev`, and tilt is Tilt in the cluster of KUBECONFIG, in a namespace
# of its own, berth-measure. BERTH_MEASURE_PORT is the first of the ports that
# `make dev` has meanwhile (default: 18700), SAVES how often it saves (default: 10).
# BERTH_MEASURE_DIR is where the clone is made (default: /tmp/berth-measure): always
# the same place, for Go caches what it compiles by place.
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly port=${BERTH_MEASURE_PORT:-18700} saves=${SAVES:-10} namespace=berth-measure
[ $# -gt 0 ] || set -- dev
# name of a service and its offset from the first port
readonly services=$'log-ingest 2\nctl-api 0'

readonly top=$PWD dir=${BERTH_MEASURE_DIR:-/tmp/berth-measure}
readonly clone=$dir/clone
log=$top/.bin/dev-measure.log

clean() {
  if [ -x "$clone/.bin/berth" ]; then BERTH_DATA=$dir/data "$clone/.bin/berth" down --purge >>"$log" 2>&1 || true; fi
  if [ -n "${proxy:-}" ]; then
    kill "$proxy" 2>/dev/null || true
    kubectl delete namespace "$namespace" --ignore-not-found >>"$log" 2>&1 || true
  fi
  rm -rf "$dir"
}
mkdir "$dir" || {
  echo "dev-measure.sh: somebody measures there; if nobody does, delete $dir" >&2
  exit 1
}
trap clean EXIT

# measure LOOP SERVICE URL COMMAND... prints a line of the table.
measure() {
  local loop=$1 service=$2 url=$3
  shift 3
  (cd "$clone" && "$dir/innerloop" -loop "$loop" -file "services/$service/saved.go" -ready "$url" -times "$saves" "$@" 2>>"$log") || {
    tail -n 20 "$log" >&2
    echo "dev-measure.sh: $loop, $service: see $log" >&2
    return 1
  }
}

dev() {
  local service offset
  export BERTH_DATA=$dir/data BERTH_PORT=$port
  while read -r service offset; do
    measure 'make dev' "$service" "http://127.0.0.1:$((port + offset))/readyz" dev/scripts/dev.sh
  done <<<"$services"
}

tilt() {
  local service offset address
  dev/scripts/tilt.sh build
  export PATH=$top/.bin/tools:$top/.bin/kube:$PATH TILT_DISABLE_ANALYTICS=1
  export BERTH_DEPLOY_NAMESPACE=$namespace BERTH_DEPLOY_PORT=${BERTH_DEPLOY_PORT:-30643} BERTH_DEPLOY_DIR=$clone/.berth-deploy
  # The API server leads to pods, which have no port here.
  kubectl proxy --port 0 >"$dir/proxy" 2>>"$log" &
  proxy=$!
  until address=$(sed -n 's/^Starting to serve on //p' "$dir/proxy") && [ -n "$address" ]; do
    kill -0 "$proxy"
    sleep 0.1
  done
  while read -r service offset; do
    measure Tilt "$service" "http://$address/api/v1/namespaces/$namespace/services/$service:$((8700 + offset))/proxy/readyz" \
      tilt up --stream --port 0 "$service"
  done <<<"$services"
}

dev/scripts/need.sh go git
: >"$log"
git clone -q --shared . "$clone"
cp services/internal/reference/assets/*.js "$clone/services/internal/reference/assets/" 2>/dev/null || true # else it gets them
(cd dev && GOWORK=off CGO_ENABLED=0 go build -o "$dir/innerloop" ./innerloop)
if [ -d .bin/kube ]; then mkdir -p "$clone/.bin" && cp -al .bin/kube "$clone/.bin/kube"; fi
echo '| loop | service | median | fastest | slowest | all, in s | load |'
echo '|---|---|---|---|---|---|---|'
for loop in "$@"; do
  case $loop in
  dev | tilt) "$loop" ;;
  *)
    echo "usage: dev-measure.sh [dev|tilt]..." >&2
    exit 2
    ;;
  esac
done
