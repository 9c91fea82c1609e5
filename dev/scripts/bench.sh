#!/usr/bin/env bash
# Measures against the budgets of the design: first job dispatch on the real
# executables, then deploys on the cluster of KUBECONFIG or of `make kube`, then
# the Go benchmarks. Usage: bench.sh [FLAG | PACKAGE]...
#
#	dev/scripts/bench.sh                                    # all
#	dev/scripts/bench.sh ./services/bench -samples 200      # only job dispatch
#	dev/scripts/bench.sh ./services/bench -components 1,10  # only deploys
#	dev/scripts/bench.sh ./services/bench -modules 50       # only of Terraform modules
#	dev/scripts/bench.sh ./services/bench -shapes 50        # only how tight the schedule of a deploy is
#	dev/scripts/bench.sh ./services/bench -idle 50          # only what a runner costs that looks at 50 components
#	dev/scripts/bench.sh ./services/bench -reports 1000     # only how soon reports of checks count
#	dev/scripts/bench.sh ./dev/ocibench -rounds 9           # only artifacts, against crane, oras and skopeo
#	dev/scripts/bench.sh -count 5 ./pkg/redact              # only Go benchmarks of these
#
# docs/reference/benchmarks.md has the figures and says how to read them.
set -euo pipefail
cd "$(dirname "$0")/../.."

flags=() packages=()
for arg in "$@"; do
  case $arg in
  ./*) packages+=("$arg") ;;
  *) flags+=("$arg") ;;
  esac
done

dev/scripts/need.sh go postgres
dev/scripts/build.sh
export BERTH_LIBEXEC=$PWD/.bin

# with_terraform finds the Terraform of sandboxes and modules.
with_terraform() {
  BERTH_TERRAFORM=$(dev/scripts/need.sh terraform) || exit # it says why
  export BERTH_TERRAFORM TERRAFORM=$BERTH_TERRAFORM
}

# with_cluster finds the cluster to measure on, and the tools to compare with.
with_cluster() {
  with_terraform
  if [ -z "${KUBECONFIG:-}" ]; then
    KUBECONFIG=$(dev/scripts/kube.sh status 2>/dev/null) || return 1
    export KUBECONFIG
    export NO_PROXY=${NO_PROXY:+$NO_PROXY,}localhost,127.0.0.1,10.0.0.0/8
  fi
  [ ! -x .bin/kube/helm ] || export HELM=${HELM:-$PWD/.bin/kube/helm} KUBECTL=${KUBECTL:-$PWD/.bin/kube/kubectl}
}

# Built rather than `go run`, which would not pass an interrupt on.
measure() {
  go build -o .bin/build/bench ./services/bench
  .bin/build/bench "$@"
}

if [ "${packages[*]}" = ./dev/ocibench ]; then
  exec dev/scripts/oci.sh bench "${flags[@]}"
fi
if [ "${packages[*]}" = ./services/bench ]; then
  if [[ " ${flags[*]}" = *" -components"* || " ${flags[*]}" = *" -idle"* ]]; then
    with_cluster || true # it says itself what is missing
  fi
  [[ " ${flags[*]}" != *" -modules"* && " ${flags[*]}" != *" -shapes"* ]] || with_terraform
  measure "${flags[@]}"
  exit
fi
if [ ${#packages[@]} = 0 ]; then
  measure
  with_terraform
  measure -modules 1,10,50
  measure -shapes 50
  dev/scripts/oci.sh bench
  if with_cluster; then
    measure -components 1,10,50
  else
    echo "NO CLUSTER, deploys are not measured: make kube starts one, or set KUBECONFIG" >&2
  fi
  packages=(./pkg/... ./services/... ./runner/... ./cli/...)
fi
go test -run '^$' -bench . -benchmem -timeout 30m "${flags[@]}" "${packages[@]}"
