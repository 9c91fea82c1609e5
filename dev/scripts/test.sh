#!/usr/bin/env bash
# Runs the tests of all modules, with what they need, and reports as
# docs/testing.md says. Arguments go to `go test`; packages among them replace
# the default of everything:
#
#	dev/scripts/test.sh -run TestClaim ./services/runner-api/...
#
# All tests get a real Kubernetes when the machine can run one: the one of
# `make kube` if it is up, or one that is started here and stopped at the end.
# Chosen packages get it only if there is one. Tests make and delete namespaces,
# so a KUBECONFIG of the shell is not taken: name another cluster by
# BERTH_TEST_KUBECONFIG.
#
# They also get a real S3 server (s3.sh) and public charts (public.sh); chosen packages
# if they are there.
#
# RACE=1 turns the race detector on, in a run of everything for what has concurrency: not for the command
# line and the engine, which do one job for one caller. The executables that tests start have it in
# some of the end-to-end tests, which run twice. RACE=all gives it to all tests and executables.
#
# BERTH_TEST_EVENTS=FILE keeps what `go test -json` printed, with the time of each test.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly workspace='./pkg/... ./services/... ./runner/... ./cli/...'

# Tests share with the executables what is compiled: only the race detector needs C.
flags=() packages=() detector=() cgo=0
for arg in "$@"; do
  case $arg in
  ./*) packages+=("$arg") ;;
  *) flags+=("$arg") ;;
  esac
done
all=
if [ ${#packages[@]} = 0 ]; then
  all=1
  read -ra packages <<<"$workspace"
fi

dev/scripts/need.sh go git node postgres shells
[ -z "$all" ] || dev/scripts/need.sh chromium
[ -z "$all" ] || dev/scripts/s3.sh start
if [ -n "${RACE:-}" ]; then
  dev/scripts/need.sh cc
  cgo=1
  # Else each process with the detector waits for a second before it ends.
  export GORACE="atexit_sleep_ms=0 ${GORACE:-}"
  detector=(-race)
fi
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
export BERTH_TERRAFORM

# The end-to-end tests start the real executables, found here.
readonly race=${RACE:-}
RACE='' dev/scripts/build.sh
if [ "$race" = all ] || { [ -n "$race" ] && [ -n "$all" ]; }; then
  dev/scripts/build.sh
fi
export BERTH_LIBEXEC=$PWD/.bin
[ "$race" != all ] || BERTH_LIBEXEC=$PWD/.bin/race

# with_cluster tells the tests of a cluster and of what belongs to it.
with_cluster() {
  export KUBECONFIG=$1
  dev/scripts/kube.sh build
  export HELM=$PWD/.bin/kube/helm KUBECTL=$PWD/.bin/kube/kubectl BERTH_DEV_REGISTRY=127.0.0.1:16452
}

# stop_cluster says nothing when all is well: the report is the last that is seen.
stop_cluster() {
  local log=.bin/kube-down.log
  dev/scripts/kube.sh down >"$log" 2>&1 || cat "$log" >&2
}

# can_deploy says whether tests may bring Berth up in the cluster; else why not.
can_deploy() {
  if [ -z "${BERTH_DEV_REGISTRY:-}" ]; then
    echo "BERTH_DEV_REGISTRY names no registry to push images to"
  elif "$KUBECTL" get namespace berth >/dev/null 2>&1; then
    echo "there is one in this cluster already, which is not touched (make undeploy deletes it)"
  else
    return 0
  fi
  return 1
}

# Tests wait as much as they compute: on two processors, three of a package at a time.
at_once=$(($(nproc) * 3 / 2))
readonly at_once

# failed PART says that a part of the suite failed outside of any test, as an event
# that the report counts.
failed() { printf '{"Action":"fail","Package":"%s"}\n' "$1"; }

# test_deployed runs the tests of services/e2e/deployed.txt on what `make deploy`,
# whose process is $1, makes.
test_deployed() {
  local list status=0 registry
  if ! wait "$1"; then
    echo "make deploy failed:"
    tail -n 40 "$deploy_log"
    failed 'make deploy'
    return 1
  fi
  list=$(awk '!/^(#|$)/{print $1}' services/e2e/deployed.txt | paste -sd'|')
  dev/scripts/deploy.sh registry >>"$deploy_log" 2>&1 &
  registry=$!
  BERTH_E2E_DEPLOYMENT=$BERTH_DEPLOY_DIR go_test -parallel "$at_once" -run "^($list)\$" "$e2e" || status=1
  kill "$registry"
  return "$status"
}

# clean_up ends what this script began.
clean_up() {
  if [ -n "$ours" ]; then
    stop_cluster
    rm -rf "$BERTH_DEPLOY_DIR"
  elif [ -n "$deploys" ]; then
    dev/scripts/deploy.sh down >>"$deploy_log" 2>&1 || cat "$deploy_log" >&2
  fi
}

readonly deploy_log=$PWD/.bin/deploy.log
export BERTH_DEPLOY_DIR=$PWD/.bin/deploy-test
unset BERTH_DEPLOY_NAMESPACE BERTH_DEPLOY_PORT
# What is this script's to end: the cluster, the deployment in it.
ours='' deploys=''
trap clean_up EXIT
unset KUBECONFIG
if [ -n "${BERTH_TEST_KUBECONFIG:-}" ]; then
  export KUBECONFIG=$BERTH_TEST_KUBECONFIG
  echo "tests use the cluster of BERTH_TEST_KUBECONFIG" >&2
  [ ! -x .bin/kube/helm ] || export HELM=${HELM:-$PWD/.bin/kube/helm} KUBECTL=${KUBECTL:-$PWD/.bin/kube/kubectl}
elif cluster=$(dev/scripts/kube.sh status 2>/dev/null); then
  with_cluster "$cluster"
elif [ -z "$all" ]; then
  echo "no cluster runs here: tests that need one skip (make kube starts one)" >&2
elif lacks=$(dev/scripts/kube.sh can); then
  ours=1
  # What a cluster left that ended with its machine is no cluster to test on.
  dev/scripts/kube.sh down
  cluster=$(dev/scripts/kube.sh up)
  with_cluster "$cluster"
else
  echo "NO KUBERNETES, its tests skip: $lacks" >&2
fi

if [ -n "$all" ] && [ -n "${KUBECONFIG:-}" ]; then
  if lacks=$(can_deploy); then
    deploys=1
  else
    echo "NO DEPLOYMENT, its tests skip: $lacks" >&2
  fi
fi

[ -z "$all" ] || dev/scripts/s3.sh build
if [ -n "$all" ] || [ -d .bin/public ]; then
  BERTH_TEST_PUBLIC=$(dev/scripts/public.sh)
  export BERTH_TEST_PUBLIC
fi
mkdir -p .bin/tools
(cd dev && GOWORK=off CGO_ENABLED=0 go build -o ../.bin/tools/testreport ./testreport)

# Never from Go's cache (-count=1): it does not know of the executables, of
# Postgres or of Terraform. Vet is a step of its own, and no debugger reads these executables.
go_test() { CGO_ENABLED=$cgo dev/scripts/in-memory.sh go test -json -count=1 -vet=off -ldflags=-w -timeout 45m "${detector[@]}" "${flags[@]}" "$@"; }

# run ends what it began also after a failure, which the report counts.
run() {
  if [ -z "$all" ]; then
    go_test "${packages[@]}"
    return
  fi
  local status=0 deploying=
  # Behind the other tests. What is tested there alone is left out elsewhere.
  if [ -n "$deploys" ]; then
    nice -n 10 dev/scripts/deploy.sh up >"$deploy_log" 2>&1 &
    deploying=$!
  fi
  readonly there='^(TestDeploymentPods|TestDeploymentSecrets|TestKubernetes)$'
  # What starts whole systems has the machine for itself: it has deadlines that
  # are promises to users.
  local -r e2e=github.com/berth-dev/berth/services/e2e
  # With the detector: each service, an agent and an engine, killed as well. They
  # search the logs of all their processes for races.
  local -r raced='^(TestMainJob|TestKill|TestZombie)$'
  local others
  # The longest come first, so that others run next to them and none is left alone at the end.
  others=$(go list "${packages[@]}" | grep -vFx "$e2e" | awk '/\/runner\/(agent|engine)$/ { print; next } { rest = rest $0 "\n" } END { printf "%s", rest }')
  mapfile -t packages <<<"$others"
  local without=()
  if [ "$race" = 1 ]; then
    readonly alone='/berth/(cli|runner/engine|runner/cmd/engine)(/|$)'
    mapfile -t without < <(printf '%s\n' "${packages[@]}" | grep -E "$alone")
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | grep -vE "$alone")
  fi
  go_test -parallel "$at_once" "${packages[@]}" || status=1
  if [ ${#without[@]} != 0 ]; then
    (detector=() cgo=0 && go_test -parallel "$at_once" "${without[@]}") || status=1
  fi
  if [ -n "${RACE:-}" ]; then # which leaves these out
    CGO_ENABLED=0 go test -json -count=1 -vet=off -run 'TestHostile|TestBombs' ./pkg/appconfig/check ./pkg/interpolate || status=1
  fi
  [ "$race" != 1 ] || BERTH_LIBEXEC=$PWD/.bin/race go_test -parallel "$at_once" -run "$raced" "$e2e" || status=1
  [ "$race" != 1 ] || detector=() cgo=0
  go_test -parallel "$at_once" ${deploys:+-skip "$there"} "$e2e" || status=1
  [ -z "$deploying" ] || test_deployed "$deploying" || status=1
  (cd dev && GOWORK=off CGO_ENABLED=0 go test -json ./...) || status=1
  (cd runner/policy && GOWORK=off CGO_ENABLED=0 go test -json ./...) || status=1
  (cd examples/shop/src/web && GOWORK=off CGO_ENABLED=0 go test -json ./...) || status=1
  return "$status"
}
run | tee ${BERTH_TEST_EVENTS:+"$BERTH_TEST_EVENTS"} | .bin/tools/testreport -skips dev/skips.txt
