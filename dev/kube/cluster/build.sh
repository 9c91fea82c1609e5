# shellcheck shell=bash
# Part of dev/scripts/kube.sh: the executables in $bin, kept by what they are
# built from.

# build_key changes when what would be built changes.
build_key() {
  {
    go version
    find dev/kube/k8s dev/kube/helm dev/kube/cluster/build.sh -type f | LC_ALL=C sort | xargs sha256sum
  } | sha256sum | cut -c1-16
}

# build makes sure of $bin: as it is, from the cache, or built from scratch. It leaves
# what it built in the cache, so that the next clone has it at once.
build() {
  dev/scripts/need.sh go
  local key cache=${BERTH_KUBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/berth/kube}
  key=$(build_key)
  mkdir -p "$cache" .bin
  # Clones that share a cache build one after the other, and the second not at all.
  exec 9>"$cache/lock"
  flock 9
  if [ "$(cat "$bin/.key" 2>/dev/null)" != "$key" ]; then
    if [ ! -e "$cache/$key/.key" ]; then
      build_into "$cache/.new"
      echo "$key" >"$cache/.new/.key"
      rm -rf "${cache:?}/$key"
      mv "$cache/.new" "$cache/$key"
    fi
    rm -rf "$bin.new"
    cp -al "$cache/$key" "$bin.new" 2>/dev/null || { rm -rf "$bin.new" && cp -a "$cache/$key" "$bin.new"; }
    # A running cluster goes on with the files that it has open.
    rm -rf "$bin"
    mv "$bin.new" "$bin"
    touch "$cache/$key"
    prune "$cache"
  fi
  exec 9>&-
}

# prune keeps the two builds of a cache that were used last.
prune() {
  local old
  find "$1" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | cut -d' ' -f2- | tail -n +3 |
    while read -r old; do rm -rf "$old"; done
}

# build_into builds everything into a directory. The two modules are alone, each
# with the flags that let it share Go's cache with what else compiles the same.
build_into() {
  local out=$1 kubernetes helm client program began=$SECONDS
  local -x GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath
  echo "building Kubernetes (once: 5 minutes of two cores, 5 GB of disk for Go's cache)" >&2
  rm -rf "$out"
  mkdir -p "$out"

  pushd dev/kube/k8s >/dev/null
  kubernetes=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  go build -buildvcs=false -ldflags="-s -w" -o "$out/" ./cmd/devregistry ./cmd/mkimage ./cmd/pause
  go build -buildvcs=false -ldflags="-s -w $(kubernetes_version "$kubernetes")" -o "$out/" ./cmd/kube
  # Without vet, which would first look at all of Kubernetes.
  go test -vet=off ./cmd/devregistry ./cmd/mkimage ./dns ./policies ./volumes >&2
  popd >/dev/null
  for program in etcd kube-apiserver kube-controller-manager kube-dns kube-policies kube-proxy kube-scheduler kube-volumes kubectl kubelet; do
    ln -s kube "$out/$program"
  done

  pushd dev/kube/helm >/dev/null
  GOFLAGS=''
  helm=$(go list -m -f '{{.Version}}' helm.sh/helm/v3)
  client=$(go list -m -f '{{.Version}}' k8s.io/client-go)
  go build -buildvcs=false -ldflags="-s -w $(helm_version "$helm" "$client")" -o "$out/" helm.sh/helm/v3/cmd/helm
  go build -buildvcs=false -ldflags="-s -w" -o "$out/" sigs.k8s.io/kubectl-validate
  crds "$out/crds"
  popd >/dev/null
  echo "built Kubernetes $kubernetes and Helm $helm in $((SECONDS - began)) s" >&2
}

# crds copies the definitions of custom resources that crds.txt names.
crds() {
  local out=$1 module version sum file found
  mkdir "$out"
  while read -r module version sum file; do
    found=$(go mod download -json "$module@$version")
    grep -qF "\"Sum\": \"$sum\"" <<<"$found" || fail "$module $version is not what dev/kube/helm/crds.txt says"
    cp "$(sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"$found")/$file" "$out/"
  done < <(grep -v '^#' crds.txt)
  chmod 0644 "$out"/*
}

# kubernetes_version stamps a version: an API server without one says that it
# is v0.0.0, which charts refuse.
kubernetes_version() {
  local at=k8s.io/component-base/version parts
  IFS=. read -ra parts <<<"${1#v}"
  echo "-X $at.gitVersion=$1 -X $at.gitMajor=${parts[0]} -X $at.gitMinor=${parts[1]} -X $at.gitTreeState=clean"
}

# helm_version does for Helm what its own Makefile does: without the version of
# its client, v0.MINOR, `helm template` takes the cluster for a Kubernetes 1.20.
helm_version() {
  local at=helm.sh/helm/v3 minor package
  minor=$(cut -d. -f2 <<<"$2")
  echo "-X $at/internal/version.version=$1"
  for package in pkg/lint/rules pkg/chartutil; do
    echo "-X $at/$package.k8sVersionMajor=1 -X $at/$package.k8sVersionMinor=$minor"
  done
}
