#!/usr/bin/env bash
# Runs Berth's control plane in a Kubernetes cluster for development: that of
# `make kube`, or that of KUBECONFIG. Usage: deploy.sh COMMAND
#
#	up      builds and pushes images, makes keys and passwords unless they are
#	        there, applies deploy/k8s/overlays/local, waits until all is ready, and
#	        says how to log in
#	down    deletes all of it, with its data
#	prepare makes the keys and passwords, and the overlay for Tilt, without images
#	token   makes the first admin's token unless there is one, and says how to log in
#	registry serves the registry of make kube over TLS to builder, until Ctrl-C:
#	        examples/shop takes its image from there
#	psql    says how to open the database while Tilt forwards its port, and tries it
#	reset   deletes the workloads with their data; Tilt makes them again
#
# BERTH_DEPLOY_DIR keeps keys, passwords and the first token (default:
# .berth-deploy in this clone). BERTH_DEV_REGISTRY is where images are pushed to,
# and where the nodes pull from (default: that of make kube). For a second one in
# the same cluster, give it a BERTH_DEPLOY_DIR, a BERTH_DEPLOY_NAMESPACE (default:
# berth) and a BERTH_DEPLOY_PORT of the nodes for its front (default: 30443).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly namespace=${BERTH_DEPLOY_NAMESPACE:-berth} port=${BERTH_DEPLOY_PORT:-30443}
readonly services=(ctl-api runner-api log-ingest builder front)
dir=$(realpath -m "${BERTH_DEPLOY_DIR:-.berth-deploy}")
readonly dir

say() { echo "deploy: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

# reach finds the cluster and what talks to it.
reach() {
  if [ -z "${KUBECONFIG:-}" ]; then
    KUBECONFIG=$(dev/scripts/kube.sh status 2>/dev/null) || fail "no cluster runs here: make kube starts one, or set KUBECONFIG"
    export KUBECONFIG
    kubectl=$PWD/.bin/kube/kubectl
  else
    kubectl=${KUBECTL:-$(command -v kubectl || echo "$PWD/.bin/kube/kubectl")}
  fi
  registry=${BERTH_DEV_REGISTRY:-127.0.0.1:16452}
  [ -x .bin/kube/mkimage ] || dev/scripts/kube.sh build
}

random() { head -c 24 /dev/urandom | base64 | tr '+/' '-_'; }

# keep FILE makes a file that only we read, from standard input, unless it is there.
keep() {
  if [ ! -s "$dir/$1" ]; then (umask 077 && cat >"$dir/$1.new" && mv "$dir/$1.new" "$dir/$1"); else cat >/dev/null; fi
}

# secrets are made once; the database learns the passwords by `migrate`.
secrets() {
  (umask 077 && mkdir -p "$dir")
  random | keep postgres.password
  echo "postgres://postgres:$(cat "$dir/postgres.password")@postgres:5432/postgres" | keep admin.url
  local role
  for role in migrate ctl runner builder log; do
    echo "postgres://berth_$role:$(random)@postgres:5432/berth" | keep "$role.dsn"
  done
  echo "berth-master-key-v1:$(head -c 32 /dev/urandom | base64)" | keep master.key
  # The certificate is its own authority, and is for this address.
  if ! openssl x509 -in "$dir/tls.crt" -noout -checkend 86400 >/dev/null 2>&1 ||
    ! openssl x509 -in "$dir/tls.crt" -noout -checkip "$address" | grep -q 'does match'; then
    (umask 077 && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 -subj /CN=berth \
      -addext "subjectAltName=DNS:localhost,DNS:front.$namespace.svc.cluster.local,IP:127.0.0.1,IP:$address" \
      -keyout "$dir/tls.key" -out "$dir/tls.crt" 2>/dev/null)
  fi
}

# images builds and pushes, and prints an entry of kustomize for each.
images() {
  local name digest list postgres
  list=$(ARCH=$(go env GOARCH) PUSH="$registry/berth" dev/scripts/images.sh ctl-api runner-api log-ingest builder berth) || return 1
  while read -r name digest; do
    echo "  - {name: berth/$name, newName: $registry/berth/$name, digest: \"${digest##*@}\"}"
  done <<<"$list"
  postgres=$(dev/scripts/postgres-image.sh "$registry/berth/postgres:dev") || return 1
  echo "  - {name: berth/postgres, newName: $registry/berth/postgres, digest: \"${postgres##*@}\"}"
}

# runner_image prints the image that installs in this cluster have.
runner_image() {
  [ "$registry" = 127.0.0.1:16452 ] || return 0 # customers say one with --image
  [ -n "${BERTH_LIBEXEC:-}" ] || dev/scripts/build.sh berth-runner berth-engine berth-policy >&2
  dev/scripts/runner-image.sh
}

# overlay NAME [IMAGES] writes what is of this machine, and of nobody else. With
# images Build Runners are pods, which have that of builder.
overlay() {
  local role builder build_runners=
  builder=$(sed -n 's|.*newName: \([^,]*/builder\), digest: "\(.*\)".*|\1@\2|p' <<<"${2:-}")
  [ -z "$builder" ] || build_runners="components: [\"$(realpath --relative-to="$dir" deploy/k8s/components/build-runners)\"]"
  cat >"$dir/kustomization.yaml" <<END
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: $namespace
resources: ["$(realpath --relative-to="$dir" deploy/k8s/overlays/$1)"]
$build_runners
images: ${2:+
$2}
patches:
  - target: {kind: Service, name: front}
    patch: |
      - {op: replace, path: /spec/ports/0/nodePort, value: $port}
configMapGenerator:
  - {name: berth-settings, behavior: replace, literals: ["public-url=$url"${runner:+, "runner-image=$runner"}${builder:+, "build-runner-url=https://front.$namespace.svc.cluster.local", "build-runner-image=$builder"}]}
  - {name: berth-trust, files: [ca.crt=tls.crt]}
generatorOptions: {disableNameSuffixHash: true}
secretGenerator:
  - {name: berth-postgres, files: [password=postgres.password]}
  - {name: berth-admin-url, files: [url=admin.url]}
  - {name: berth-master-key, files: [master.key]}
  - {name: berth-front-tls, type: kubernetes.io/tls, files: [tls.crt, tls.key]}
$(for role in migrate ctl runner builder log; do echo "  - {name: berth-dsn-$role, files: [dsn=$role.dsn]}"; done)
END
}

# first_token keeps a token of the first admin that works.
first_token() {
  local text
  if [ -s "$dir/token" ] && logged_in; then return; fi
  text=$("$kubectl" -n $namespace exec deploy/ctl-api -c ctl-api -- /usr/local/bin/berth-ctl-api bootstrap --org dev --token-file -)
  rm -f "$dir/token"
  echo "$text" | keep token
  logged_in || fail "the new token does not open $url/api"
}

logged_in() {
  printf 'Authorization: Bearer %s\n' "$(cat "$dir/token")" |
    curl -sf -o /dev/null --max-time 10 --noproxy '*' --cacert "$dir/tls.crt" -H @- "$url/api/me"
}

# locate finds the address that people and runners use.
locate() {
  address=$("$kubectl" get nodes -o jsonpath='{.items[0].status.addresses[?(@.type=="InternalIP")].address}')
  url=https://$address:$port
  (umask 077 && mkdir -p "$dir" && echo "$url" >"$dir/url") # for tests
}

say_how() {
  echo "export SSL_CERT_FILE=$dir/tls.crt"
  echo "berth context add dev --url $url/api --token-file $dir/token"
}

prepare() {
  reach
  locate
  secrets
  overlay tilt
}

token() {
  reach
  locate
  first_token
  say_how
}

# registry is where builder, which trusts the certificate, may read images.
registry() {
  reach
  locate
  dev/scripts/build.sh berth
  exec .bin/berth front --listen "$address:16453" --tls-cert "$dir/tls.crt" --tls-key "$dir/tls.key" --registry "http://$registry"
}

psql() {
  local -r words=(psql -h 127.0.0.1 -p 15432 -U postgres berth)
  echo "PGPASSWORD=\$(cat $dir/postgres.password) ${words[*]}"
  if [ -n "$(type -P psql)" ]; then PGPASSWORD=$(cat "$dir/postgres.password") command "${words[@]}" -c '\conninfo'; fi
}

reset() {
  reach
  "$kubectl" -n $namespace delete deployments,jobs,persistentvolumeclaims --all >&2
  rm -f "$dir/token"
}

up() {
  local began=$SECONDS name pushed runner
  reach
  locate
  secrets
  pushed=$(images) || fail "the images were not made"
  runner=$(runner_image) || say "installs here need --image: the runner's image was not made"
  overlay local "$pushed"
  say "images are pushed after $((SECONDS - began)) s"
  # A Job cannot be changed; its work can be done again.
  "$kubectl" -n $namespace delete job migrate --ignore-not-found >/dev/null 2>&1
  "$kubectl" apply -k deploy/k8s/overlays/local-builds >/dev/null
  "$kubectl" apply -k "$dir" >/dev/null
  "$kubectl" -n $namespace wait job/migrate --for=condition=Complete --timeout=300s >/dev/null || fail "the schema was not migrated: kubectl -n $namespace logs job/migrate"
  for name in "${services[@]}"; do "$kubectl" -n $namespace rollout status "deploy/$name" --timeout=300s >/dev/null; done
  first_token
  say "is ready after $((SECONDS - began)) s at $url; log in with"
  say_how
}

down() {
  reach
  "$kubectl" delete namespace $namespace berth-builds --ignore-not-found >&2
  rm -f "$dir"/{postgres.password,admin.url,master.key,tls.crt,tls.key,token,url,kustomization.yaml} "$dir"/*.dsn
  rmdir "$dir" 2>/dev/null || true # somebody else's files may be there
}

case ${1:-} in
up | down | prepare | token | registry | psql | reset) "$1" ;;
*)
  echo "usage: deploy.sh up|down|prepare|token|registry|psql|reset" >&2
  exit 2
  ;;
esac
