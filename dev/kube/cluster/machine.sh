# shellcheck shell=bash
# Part of dev/scripts/kube.sh: whether this machine can run a cluster, and what
# has to be known of it to put it back.

# Folders that kubelet, containerd and the network plugins use whatever they
# are told.
readonly host_dirs=(
  /var/lib/kubelet /var/log/containers /var/log/pods /run/containerd
  /etc/cni/net.d /etc/cni /var/lib/cni/results /var/lib/cni
)

# Settings of the kernel that kubelet, kube-proxy or we change.
readonly sysctls=(
  vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops
  kernel.keys.root_maxkeys kernel.keys.root_maxbytes
  net.ipv4.ip_forward net.ipv4.conf.all.route_localnet
  net.bridge.bridge-nf-call-iptables
)

# can prints what is missing and fails, or says nothing.
can() {
  [ "$(uname -s)" = Linux ] || { echo "it is not Linux" && return 1; }
  [ "$(id -u)" = 0 ] || { echo "only root can make nodes" && return 1; }
  unshare --net --mount true 2>/dev/null || { echo "namespaces are not allowed here" && return 1; }
  mkdir -p "$(cgroup_root)/berth-probe" 2>/dev/null || { echo "control groups cannot be written" && return 1; }
  rmdir "$(cgroup_root)/berth-probe"
  if [ -z "$(owner || true)" ] && [ ! -d "$dir/before" ] && [ -d "$(cgroup_root)/kubepods" ]; then
    echo "another Kubernetes has pods on it: set KUBECONFIG to use that one" && return 1
  fi
  command -v apt-get >/dev/null || dev/scripts/need.sh kube 2>&1
}

# cgroup_root is where control groups are made: of the one hierarchy, or of one
# that each machine with several has.
cgroup_root() {
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo /sys/fs/cgroup; else echo /sys/fs/cgroup/pids; fi
}

# remember_machine notes how the machine is, once, before anything is changed.
remember_machine() {
  mkdir -p "$dir"/{log,pid} "$run"
  chmod 700 "$dir" "$run"
  echo "$dir" >"$run/owner"
  [ ! -d "$dir/before" ] || return 0
  local before=$dir/before.new path
  rm -rf "$before"
  mkdir -p "$before"
  for path in "${host_dirs[@]}"; do [ -e "$path" ] || echo "$path"; done >"$before/absent"
  sysctl -e "${sysctls[@]}" 2>/dev/null | sed 's/ = /=/' >"$before/sysctl.conf" || true
  for table in iptables ip6tables; do
    { "$table-save" 2>/dev/null || true; } | grep -oE '^:(KUBE|CNI)-[A-Z0-9-]+' | cut -c2- >"$before/$table" || true
  done
  mv "$before" "$dir/before"
}

# fill prints a file of dev/kube/config with the values of this cluster.
fill() {
  sed -e "s|@DIR@|$dir|g" -e "s|@RUN@|$run|g" -e "s|@NODE_IP@|$node_ip|g" -e "s|@BRIDGE@|$bridge|g" \
    -e "s|@PODS@|$pods|g" -e "s|@REGISTRY@|$registry|g" -e "s|@CNI_BIN@|$(cni_bin)|g" \
    -e "s|@SNAPSHOTTER@|$(snapshotter)|g" "$config/$1"
}

# cni_bin is where the network plugins are: Debian's folder, or the one that
# everybody else has.
cni_bin() {
  if [ -x /usr/lib/cni/bridge ]; then echo /usr/lib/cni; else echo /opt/cni/bin; fi
}

# snapshotter is overlayfs, unless $dir cannot be below an overlay (as in most
# containers): then each layer is a copy.
snapshotter() {
  local probe=$dir/probe kind=native
  mkdir -p "$probe"/{lower,upper,work,merged}
  if mount -t overlay overlay -o "lowerdir=$probe/lower,upperdir=$probe/upper,workdir=$probe/work" "$probe/merged" 2>/dev/null; then
    umount "$probe/merged"
    kind=overlayfs
  fi
  rm -rf "$probe"
  echo "$kind"
}
