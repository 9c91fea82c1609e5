#!/usr/bin/env bash
# Builds executables for another place than this machine: the same commit makes
# the same bytes in any folder, on any machine with the same version of Go.
# Usage: reproducible.sh OS ARCH DIR NAME... (a name of executables.sh, berth-policy, kubectl or buildctl)
set -euo pipefail
cd "$(dirname "$0")/../.."
. dev/scripts/executables.sh
readonly os=$1 arch=$2 out=$(realpath -m "$3")
shift 3

dev/scripts/need.sh go
dev/scripts/assets.sh
case " $* " in *' berth-ctl-api '*) dev/scripts/web.sh build ;; esac

# Whatever the shell has set, and each module with the versions of its own go.mod.
export GOWORK=off CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOAMD64=v1 GOARM64=v8.0 GOFLAGS='' GOEXPERIMENT='' GOFIPS140=off
mkdir -p "$out"

# build MODULE FLAGS PACKAGE FILE
build() {
  (cd "$1" && go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= $2" -o "$out/$4" "$3")
}

for name in "$@"; do
  if [ "$name" = kubectl ]; then # of the Kubernetes in dev/kube/k8s
    at=k8s.io/component-base/version
    kubernetes=$(cd dev/kube/k8s && go list -m -f '{{.Version}}' k8s.io/kubernetes)
    build dev/kube/k8s "-X $at.gitVersion=$kubernetes -X $at.gitTreeState=clean" k8s.io/kubernetes/cmd/kubectl kubectl
    continue
  fi
  if [ "$name" = buildctl ]; then # of the BuildKit in dev/buildkit
    buildkit=$(cd dev/buildkit && go list -m -f '{{.Version}}' github.com/moby/buildkit)
    build dev/buildkit "-X github.com/moby/buildkit/version.Version=$buildkit" github.com/moby/buildkit/cmd/buildctl buildctl
    continue
  fi
  if [ "$name" = berth-policy ]; then # of a module outside of the workspace
    build runner/policy "$version_flags" ./cmd/policy berth-policy
    continue
  fi
  package=$(package_of "$name")
  package=${package#./}
  build "${package%%/*}" "$version_flags" "./${package#*/}" "$name"
done
