# shellcheck shell=bash
# Part of dev/scripts/kube.sh: ends what was started and puts the machine back
# to what remember_machine noted. All of it may be done again after it was
# interrupted.

stop_all() {
  local name
  stop kubelet # first: it would start pods again
  end_pods
  for name in kube-scheduler kube-controller-manager kube-proxy kube-dns kube-policies kube-volumes containerd; do stop "$name"; done
  end_shims
  for name in devregistry kube-apiserver etcd; do stop "$name"; done
}

# end_pods ends every process in the pods' control groups: nothing else is in
# there, and nothing that a pod started is elsewhere.
end_pods() {
  local pids groups
  groups=$(cgroup_root)/kubepods
  [ -d "$groups" ] || return 0
  for _ in {1..50}; do
    # A 0 stands for a process that we cannot see: not one of ours.
    pids=$(find "$groups" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u | grep -vx 0 || true)
    [ -n "$pids" ] || return 0
    # shellcheck disable=SC2086 # a list of numbers
    kill -KILL $pids 2>/dev/null || true
    sleep 0.1
  done
  say "some processes of pods do not end: $pids"
}

# end_shims ends containerd's helpers, one per pod, that outlived their pods;
# they are told from those of another containerd by its socket.
end_shims() {
  local at
  for at in /proc/[0-9]*; do
    if { tr '\0' ' ' <"$at/cmdline"; } 2>/dev/null | grep -q "containerd-shim.* -address $run/containerd.sock "; then
      kill -KILL "${at#/proc/}" 2>/dev/null || true
    fi
  done
}

put_machine_back() {
  local at
  if [ "$(cat "$run/owner" 2>/dev/null)" = "$dir" ]; then
    unmount_below "$run"
    remove_network
    remove_leftovers
    if [ -s "$dir/before/sysctl.conf" ]; then sysctl -qe -p "$dir/before/sysctl.conf" >/dev/null 2>&1 || true; fi
  fi
  unmount_below "$dir"
  # A mount that stayed could lead the deletion into the files of somebody else.
  for at in "$dir" "$run"; do
    if mounts_below "$at" | grep -q .; then fail "mounts are left below $at, so it is not deleted: run down again"; fi
  done
  if [ "$(cat "$run/owner" 2>/dev/null)" = "$dir" ]; then rm -rf --one-file-system "$run"; fi
  rm -rf --one-file-system "$dir"
}

# mounts_below DIR prints mount points, deepest first.
mounts_below() { awk -v d="$1/" 'index($2, d) == 1 {print $2}' /proc/mounts | LC_ALL=C sort -r; }

unmount_below() {
  local point
  mounts_below "$1" | while read -r point; do umount -l "$(printf '%b' "$point")" 2>/dev/null || true; done
}

remove_network() {
  local table
  if [ -x "$bin/kube-proxy" ]; then "$bin/kube-proxy" --cleanup >/dev/null 2>&1 || true; fi
  for table in iptables ip6tables; do
    if command -v "$table-save" >/dev/null; then remove_chains "$table"; fi
  done
  nft delete table ip berth-policies 2>/dev/null || true
  ip route del "$services" 2>/dev/null || true
  ip link del "$bridge" 2>/dev/null || true
  ip addr del "$node_ip/32" dev lo 2>/dev/null || true
}

# remove_chains removes the chains of Kubernetes and of its network plugins, and
# the rules that lead there, except for chains that were there before.
remove_chains() {
  local table=$1 save chain chains=() part=""
  save=$("$table-save" 2>/dev/null || true)
  local -A kept=()
  while read -r chain; do kept[$chain]=1; done < <(cat "$dir/before/$table" 2>/dev/null)
  while read -r line; do
    case $line in
    \**) part=${line#\*} ;;
    :KUBE-* | :CNI-*)
      chain=${line%% *} chain=${chain#:}
      [ -n "${kept[$chain]:-}" ] || chains+=("$part $chain")
      ;;
    esac
  done <<<"$save"
  local each rule args
  for each in "${chains[@]}"; do
    read -r part chain <<<"$each"
    while read -r rule; do
      # The rule is quoted as for a shell.
      eval "args=(${rule/#-A/-D})"
      "$table" -t "$part" "${args[@]}" 2>/dev/null || true
    done < <("$table" -t "$part" -S 2>/dev/null | grep -E -- "-[jg] $chain( |$)")
    "$table" -t "$part" -F "$chain" 2>/dev/null || true
  done
  for each in "${chains[@]}"; do
    read -r part chain <<<"$each"
    "$table" -t "$part" -X "$chain" 2>/dev/null || true
  done
}

# remove_leftovers removes what kubelet, containerd and the network plugins
# leave in folders of the machine, and the folders that were not there before.
remove_leftovers() {
  local path group result pod
  for group in /sys/fs/cgroup/*/kubepods /sys/fs/cgroup/kubepods; do
    if [ -d "$group" ]; then find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
  done
  rm -rf --one-file-system /var/lib/kubelet/device-plugins /var/lib/kubelet/plugins_registry
  rm -f /etc/cni/net.d/cni.lock
  for result in /var/lib/cni/results/berth-kube-*-eth0; do
    pod=${result#*/berth-kube-} pod=${pod%-eth0}
    rm -f "$result" "/var/lib/cni/results/cni-loopback-$pod-lo"
  done
  if [ -d /var/log/containers ]; then find /var/log/containers -lname "$dir/*" -delete; fi
  while read -r path; do
    [ ! -d "$path" ] || find "$path" -depth \( -type d -empty -o -type s \) -delete
  done <"$dir/before/absent"
}
