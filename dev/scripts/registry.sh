#!/usr/bin/env bash
# Prints the registry that images for the cluster of KUBECONFIG go to: what it is
# called here and, after a space, what it is called by the nodes. It prints nothing
# when there is none, as with clusters that run what the local Docker has.
#
# BERTH_DEV_REGISTRY names it, the same for both; make kube has one of its own;
# kind, k3d, minikube and others announce theirs as
# https://github.com/kubernetes/enhancements/tree/master/keps/sig-cluster-lifecycle/generic/1755-communicating-a-local-registry
# says.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -n "${BERTH_DEV_REGISTRY:-}" ]; then
  echo "$BERTH_DEV_REGISTRY $BERTH_DEV_REGISTRY"
  exit
fi
kubectl=${KUBECTL:-$(command -v kubectl || echo "$PWD/.bin/kube/kubectl")}
if [ "$("$kubectl" config current-context)" = berth-kube ]; then
  echo "127.0.0.1:16452 127.0.0.1:16452"
  exit
fi
said=$("$kubectl" --namespace kube-public get configmap local-registry-hosting --ignore-not-found --output 'jsonpath={.data.localRegistryHosting\.v1}')
# value KEY prints a value of the announcement, which is YAML with one key a line.
value() {
  sed -nE "s/^$1:[[:space:]]*[\"']?([^\"'[:space:]]+)[\"']?[[:space:]]*\$/\1/p" <<<"$said"
}
host=$(value host)
inside=$(value hostFromContainerRuntime)
if [ -n "$host" ]; then echo "$host ${inside:-$host}"; fi
