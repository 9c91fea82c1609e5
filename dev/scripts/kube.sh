#!/usr/bin/env bash
# A real Kubernetes of one node on this machine, built from its Go modules.
# Usage: kube.sh COMMAND
#
#	can                        what this machine lacks for it; nothing: it can
#	build                      build it into .bin/kube, unless it is there
#	up                         start what does not run, print the kubeconfig's path
#	down                       stop it, delete its data, put the machine back
#	status                     what runs; fails unless the cluster is ready
#	image NAME:TAG FILE[:PATH] make an image of files and push it to the
#	                           development registry, 127.0.0.1:16452
#
# BERTH_KUBE_DIR is its data (default: .berth-kube in this clone),
# BERTH_KUBE_CACHE keeps builds (default: berth/kube in the user's cache).
# docs/guides/kubernetes-dev.md says what it can do, dev/kube is what it is made of.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly bin=$PWD/.bin/kube config=$PWD/dev/kube/config
dir=$(realpath -m "${BERTH_KUBE_DIR:-.berth-kube}")
readonly dir

# There can be one such cluster on a machine: these are the machine's.
readonly run=/run/berth-kube # sockets, and the owner's $dir
readonly node=berth node_ip=10.99.99.1 bridge=berthkube0
readonly pods=10.244.77.0/24 services=10.96.0.0/16
readonly port=16443 registry=127.0.0.1:16452

# What must not go to a proxy, for everything that is started here.
export NO_PROXY=${NO_PROXY:+$NO_PROXY,}localhost,127.0.0.1,$node_ip,$pods,$services,.svc,.cluster.local
export no_proxy=$NO_PROXY

say() { echo "kube: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

. dev/kube/cluster/build.sh
. dev/kube/cluster/process.sh
. dev/kube/cluster/machine.sh
. dev/kube/cluster/control.sh
. dev/kube/cluster/node.sh
. dev/kube/cluster/clean.sh

# owner prints the data folder of the cluster that runs on this machine.
owner() {
  local at
  at=$(cat "$run/owner" 2>/dev/null) || return
  [ -d "$at/pid" ] && echo "$at"
}

up() {
  local began=$SECONDS other
  other=$(owner || true)
  if [ -n "$other" ] && [ "$other" != "$dir" ]; then
    say "the cluster of $other runs on this machine already"
    echo "$other/kubeconfig"
    return
  fi
  local lacks
  lacks=$(can) || fail "this machine cannot run a cluster: $lacks"
  [ ${#dir} -le 70 ] || fail "the path $dir is too long for sockets: set BERTH_KUBE_DIR to one of up to 70 characters"
  provide

  trap "$(after_failure)" EXIT
  remember_machine
  prepare_control
  prepare_node
  run_control
  run_node
  trap - EXIT
  say "is up after $((SECONDS - began)) s (registry $registry, node $node_ip); use it with"
  say "export KUBECONFIG=$dir/kubeconfig PATH=$bin:\$PATH"
  echo "$dir/kubeconfig"
}

# provide gets what a cluster is made of.
provide() {
  build
  dev/scripts/need.sh kube
}

# after_failure prints what up does when it fails: it deletes what it began, and
# never a cluster that was there before.
after_failure() {
  if [ -d "$dir/etcd/member" ]; then
    echo "say 'did not come up again; its data is still in $dir: try again, or delete it with kube.sh down'"
  else
    echo "say 'did not come up, stopping it'; down"
  fi
}

down() {
  if [ ! -d "$dir" ]; then
    say "nothing to stop: no cluster was started from here"
    return
  fi
  stop_all
  put_machine_back
  say "is down"
}

status() {
  local at
  at=$(owner) || fail "no cluster runs on this machine: make kube"
  list_processes "$at"
  node_ready "$at" || fail "the cluster of $at does not answer, or its node is not ready: kube.sh up starts what ended"
  echo "$at/kubeconfig"
}

image() {
  [ $# -ge 2 ] || fail "usage: kube.sh image NAME:TAG FILE[:PATH]..."
  local name=$1
  shift
  "$bin/mkimage" "$registry/$name" "$@"
}

# Sourced, as by its test, it only brings its functions.
(return 0 2>/dev/null) && return

case ${1:-} in
can | build | up | down | status | image) "$@" ;;
*)
  echo "usage: kube.sh can|build|up|down|status|image" >&2
  exit 2
  ;;
esac
