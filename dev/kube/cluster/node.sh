# shellcheck shell=bash
# Part of dev/scripts/kube.sh: the registry, containerd, kubelet, the services'
# network and names, network policies, and volumes.

prepare_node() {
  mkdir -p "$dir"/{cni,registry,volumes}
  : >"$dir/resolv.conf" # pods ask the cluster's DNS and nobody else
  fill network.conflist >"$dir/cni/10-berth.conflist"
  fill containerd.toml >"$dir/containerd.toml"
  fill kubelet.yaml >"$dir/kubelet.yaml"
  # Where the kernel has it as a module: without it a pod cannot reach itself,
  # or its neighbour, by the address of a service.
  modprobe -q br_netfilter 2>/dev/null || true
  modprobe -q overlay 2>/dev/null || true
  sysctl -qe -w net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
}

# run_node starts what does not run and waits until pods could.
run_node() {
  start devregistry "$bin/devregistry" --listen "$registry" --data "$dir/registry"
  await devregistry 10 curl -sf --noproxy '*' "http://$registry/v2/"
  "$bin/mkimage" "$registry/pause:1" "$bin/pause" >/dev/null
  start containerd containerd --config "$dir/containerd.toml" --log-level info
  await containerd 30 ctr --address "$run/containerd.sock" version
  start kubelet "$bin/kubelet" --config "$dir/kubelet.yaml" --kubeconfig "$dir/pki/kubelet.kubeconfig" \
    --hostname-override "$node" --node-ip "$node_ip" --root-dir "$dir/kubelet" --cert-dir "$dir/pki/kubelet"
  # Node ports answer on loopback too, where the kubelet pulls from: so a
  # registry in the cluster is 127.0.0.1:NODE-PORT in the names of images. The
  # settings of conntrack stay as the machine has them.
  start kube-proxy "$bin/kube-proxy" --kubeconfig "$dir/kubeconfig" --hostname-override "$node" \
    --proxy-mode iptables --cluster-cidr "$pods" --nodeport-addresses "127.0.0.0/8,$node_ip/32" \
    --healthz-bind-address 127.0.0.1:$((port + 7)) --metrics-bind-address 127.0.0.1:$((port + 8)) \
    --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0
  start kube-dns "$bin/kube-dns" --kubeconfig "$dir/kubeconfig" --listen "$node_ip:53"
  start kube-policies "$bin/kube-policies" --kubeconfig "$dir/kubeconfig"
  start kube-volumes "$bin/kube-volumes" --kubeconfig "$dir/kubeconfig" --dir "$dir/volumes"
  kubectl apply -f "$config/storage.yaml" >/dev/null
  await kube-controller-manager 60 api /api/v1/namespaces/default/serviceaccounts/default
  await kube-controller-manager 60 api /api/v1/namespaces/default/configmaps/kube-root-ca.crt
  await kubelet 60 node_ready
  await kube-policies 30 nft list table ip berth-policies
  await kube-proxy 30 curl -sf --noproxy '*' "http://127.0.0.1:$((port + 7))/healthz"
}
