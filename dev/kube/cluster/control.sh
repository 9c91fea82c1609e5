# shellcheck shell=bash
# Part of dev/scripts/kube.sh: etcd, the API server and its controllers.

# token prints a new secret.
token() { head -c 24 /dev/urandom | base64 | tr '+/' '-_'; }

# secret FILE makes a file that only we can read, from standard input.
secret() { (umask 077 && cat >"$1"); }

# prepare_control makes keys, unless they are there.
prepare_control() {
  ip addr replace "$node_ip/32" dev lo
  # Without a route to services a machine that is offline could not reach them,
  # and on another one what kube-proxy does not know would go to the gateway.
  ip route replace "$services" dev lo src "$node_ip"
  mkdir -p "$dir"/{pki,etcd}
  [ ! -e "$dir/pki/tokens.csv" ] || return 0
  local admin kubelet
  admin=$(token)
  kubelet=$(token)
  openssl genrsa 2048 2>/dev/null | secret "$dir/pki/accounts.key"
  openssl rsa -in "$dir/pki/accounts.key" -pubout -out "$dir/pki/accounts.pub" 2>/dev/null
  printf 'Authorization: Bearer %s\n' "$admin" | secret "$dir/pki/admin.header"
  echo "$admin" | secret "$dir/pki/admin.token"
  echo "$kubelet" | secret "$dir/pki/kubelet.token"
  secret "$dir/pki/tokens.csv" <<END
$admin,admin,admin,"system:masters"
$kubelet,system:node:$node,node,"system:nodes"
END
}

# kubeconfig TOKEN-FILE prints one that works wherever it is copied to.
kubeconfig() {
  cat <<END
apiVersion: v1
kind: Config
current-context: berth-kube
contexts: [{name: berth-kube, context: {cluster: berth-kube, user: berth-kube}}]
clusters:
  - name: berth-kube
    cluster:
      server: https://$node_ip:$port
      certificate-authority-data: $(base64 -w0 "$dir/pki/apiserver.crt")
users: [{name: berth-kube, user: {token: $(cat "$1")}}]
END
}

# api PATH [DIR] asks the API server of the cluster whose data is in DIR.
api() {
  local at=${2:-$dir}
  curl -sf --max-time 5 --noproxy '*' --cacert "$at/pki/apiserver.crt" -H "@$at/pki/admin.header" "https://$node_ip:$port$1"
}

# node_ready [DIR] succeeds when pods could run.
node_ready() { api "/api/v1/nodes/$node" "$@" | tr -d ' \n' | grep -q '"type":"Ready","status":"True"'; }

kubectl() { KUBECONFIG=$dir/kubeconfig "$bin/kubectl" "$@"; }

# run_control starts what does not run and waits until it works.
run_control() {
  local peers=http://127.0.0.1:$((port + 2)) clients=http://127.0.0.1:$((port + 1))
  # Without fsync a busy disk does not stop the cluster; what a crash of the
  # machine loses is of no value.
  start etcd "$bin/etcd" --data-dir "$dir/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls "$clients" --advertise-client-urls "$clients" \
    --listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" --initial-cluster "default=$peers"
  start kube-apiserver "$bin/kube-apiserver" --etcd-servers "$clients" --cert-dir "$dir/pki" \
    --bind-address "$node_ip" --advertise-address "$node_ip" --secure-port "$port" \
    --service-cluster-ip-range "$services" --token-auth-file "$dir/pki/tokens.csv" \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged \
    --service-account-issuer https://kubernetes.default.svc --api-audiences https://kubernetes.default.svc \
    --service-account-key-file "$dir/pki/accounts.pub" --service-account-signing-key-file "$dir/pki/accounts.key" \
    --kubelet-preferred-address-types InternalIP --profiling=false --v 1
  await kube-apiserver 90 test -s "$dir/pki/apiserver.crt"
  kubeconfig "$dir/pki/admin.token" | secret "$dir/kubeconfig"
  kubeconfig "$dir/pki/kubelet.token" | secret "$dir/pki/kubelet.kubeconfig"
  await kube-apiserver 90 api /readyz
  start kube-controller-manager "$bin/kube-controller-manager" --kubeconfig "$dir/kubeconfig" --cert-dir "$dir/pki/controllers" \
    --bind-address 127.0.0.1 --secure-port $((port + 3)) --leader-elect=false --profiling=false \
    --service-account-private-key-file "$dir/pki/accounts.key" --root-ca-file "$dir/pki/apiserver.crt"
  start kube-scheduler "$bin/kube-scheduler" --kubeconfig "$dir/kubeconfig" --cert-dir "$dir/pki/scheduler" \
    --bind-address 127.0.0.1 --secure-port $((port + 4)) --leader-elect=false --profiling=false
}
