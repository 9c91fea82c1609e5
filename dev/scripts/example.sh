#!/usr/bin/env bash
# An example on the control plane that Tilt or deploy.sh runs in a cluster:
# examples/hello, installed by a runner in a namespace of its own.
# Usage: example.sh COMMAND
#
#	up    makes what is missing of the runner and the install, and waits until the
#	      install is live
#	demo  gives the install another greeting, deploys it, and checks the files
#	down  deletes the runner with its data
#
# It has the settings of deploy.sh. BERTH_EXAMPLE is the name of the install
# (default: acme), BERTH_EXAMPLE_PORT the port on the nodes' loopback for its images
# (default: 30500).
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(realpath -m "${BERTH_DEPLOY_DIR:-.berth-deploy}")
readonly dir install=${BERTH_EXAMPLE:-acme} port=${BERTH_EXAMPLE_PORT:-30500}
readonly runner=${BERTH_DEPLOY_NAMESPACE:-berth}-$install
readonly work=$runner-work # where engines may make objects
readonly berth=$PWD/.bin/berth
kubectl=${KUBECTL:-$(command -v kubectl || echo "$PWD/.bin/kube/kubectl")}

fail() {
  echo "example: $1" >&2
  exit 1
}

# step says, and does, one command as the reader would type it.
step() {
  echo
  echo "\$ berth $*"
  "$berth" "$@"
}

# log_in is what `deploy.sh token` says to do, with contexts of its own.
log_in() {
  dev/scripts/build.sh berth
  export XDG_CONFIG_HOME=$dir/config BERTH_CONTEXT=dev
  local commands
  commands=$(dev/scripts/deploy.sh token)
  PATH=$PWD/.bin:$PATH
  eval "$commands"
}

# stack_state is active once a runner has come; without a code, there is no stack.
stack_state() {
  { "$berth" installs stack "$install" --json state 2>/dev/null || true; } | tr -d ' "{}\n'
}

# run_runner does what a customer does with the printed commands.
run_runner() {
  local pushed registry image flags
  read -r pushed registry <<<"$(dev/scripts/registry.sh)"
  [ -n "$pushed" ] || fail "this cluster has no registry for the runner's image: set BERTH_DEV_REGISTRY to one that its nodes pull from"
  dev/scripts/build.sh berth-runner berth-engine berth-policy
  image=$(BERTH_DEV_REGISTRY=$pushed dev/scripts/runner-image.sh)
  flags="--ca $SSL_CERT_FILE --namespace $runner --namespaces $work"
  (
    umask 077
    at=$(mktemp -d)
    trap 'rm -rf "$at"' EXIT
    "$berth" installs stack "$install" --new "$@" >"$at/printed"
    sed -E "s#^berth-runner preflight#& $flags#; s#^berth-runner manifest#& $flags --registry-node-port $port --image $registry/${image#"$pushed"/}#; s# --image IMAGE##; s#kubectl apply#\"$kubectl\" apply#" "$at/printed" >"$at/run"
    cd "$at"
    bash -euo pipefail run
  )
  "$kubectl" --namespace "$runner" rollout status deployment/berth-runner --timeout 180s
}

up() {
  log_in
  step sync examples/hello --wait --timeout 5m
  if [ "$("$berth" installs list --app hello -o name | grep -cx "$install")" = 0 ]; then
    down # what an earlier control plane left
    step installs create "$install" --app hello --customer "$install" --stack kubernetes --approve-all
  fi
  if [ "$(stack_state)" != state:active ]; then
    run_runner
  elif ! "$kubectl" --namespace "$runner" get deployment berth-runner >/dev/null 2>&1; then
    run_runner --replaces
  fi
  step workflows watch "$install" --timeout 10m
  step status
}

demo() {
  log_in
  step installs inputs "$install" --set "greeting=Ahoy at $(date +%T)"
  step deploy "$install" --auto-approve --timeout 5m
  step actions run "$install" files_intact --watch --timeout 2m
  step outputs "$install"
}

down() {
  "$kubectl" delete namespace "$runner" "$runner-relay" "$work" --ignore-not-found >&2
}

case ${1:-} in
up | demo | down) "$1" ;;
*)
  echo "usage: example.sh up|demo|down" >&2
  exit 2
  ;;
esac
