#!/usr/bin/env bash
# The OCI clients of others and the official conformance suite, built from their modules
# into .bin/tools/oci. Usage: oci.sh COMMAND
#
#	build    builds the suite, crane and oras (half a minute)
#	all      builds docker and cosign too (minutes)
#	bench    compares pushes, pulls and copies with crane, oras, skopeo and their libraries
#	         (FLAGS of dev/ocibench)
#	report   tries everything with both registries, and writes docs/reports/registry.md
#
# Each is checked against its sum here, and what it needs against its own go.sum. Builds
# are kept for all clones of a machine (see once.sh).
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly out=$PWD/.bin/tools/oci flags=(-buildvcs=false -trimpath "-ldflags=-s -w")
. dev/scripts/once.sh

# tool NAME MODULE VERSION SUM PACKAGE builds one.
tool() {
  local name=$1
  module=$2 version=$3 sum=$4 package=$5
  (once "oci_$name" "$out/$name" "$module $version $sum $package ${flags[*]}")
  echo "${version%+*}" >"$out/$name.version"
}

build_into() {
  local place=${package#./cmd/}
  copy_module "$module" "$version" "$sum"
  # Docker's has its requirements under another name.
  [ ! -f "$copy/vendor.mod" ] || { cp "$copy/vendor.mod" "$copy/go.mod" && cp "$copy/vendor.sum" "$copy/go.sum"; }
  (cd "$copy" && GOWORK=off GOFLAGS='' CGO_ENABLED=0 go build "${flags[@]}" -o "$1" "$package") || fail "$place cannot be built"
}

build() {
  tool conformance github.com/opencontainers/distribution-spec/conformance v0.0.0-20260831232431-97274622c111 h1:ppZPU0CrEPzyJhVggYwUIZrqh0w2lIT0esw+9ABNPA4= .
  tool crane github.com/google/go-containerregistry v0.22.1 h1:RZuuSYhTvlDvtsK+NkutoCZ//C0X2ebLK8X8l3ULs84= ./cmd/crane
  tool oras oras.land/oras v1.3.6 h1:Lhsfr2tQLjsu/+CJZp6vYatwKT+62fbIUTlp4lUrfOA= ./cmd/oras
}

all() {
  build
  tool docker github.com/docker/cli v28.5.2+incompatible h1:XmG99IHcBmIAoC1PPg9eLBZPlTrNUAijsHLm8PjhBlg= ./cmd/docker
  tool cosign github.com/sigstore/cosign/v3 v3.1.3 h1:001JQRI/PJ/5T+g/kJ1KTvKFbb322+fomc+pHDZ/6sg= ./cmd/cosign
}

bench() {
  build
  go test -c -o .bin/build/registry.test ./services/builder/internal/registry
  (cd dev && GOWORK=off go build -o ../.bin/build/ocibench ./ocibench)
  .bin/build/ocibench -registry .bin/build/registry.test -tools "$out" "$@"
}

report() {
  local rows
  rows=$(mktemp -d)
  # shellcheck disable=SC2064 # now
  trap "rm -rf '$rows'" EXIT
  all
  dev/scripts/build.sh
  BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
  export BERTH_TERRAFORM BERTH_LIBEXEC=$PWD/.bin BERTH_OCI_TOOLS=$out BERTH_CLIENTS_REPORT=$rows/clients BERTH_CONFORMANCE_REPORT=$rows
  [ ! -x .bin/kube/helm ] || export HELM=${HELM:-$PWD/.bin/kube/helm}
  go test -count=1 -run 'TestOfficialConformance/files|TestOfficialConformance$' ./services/builder/internal/registry ./runner/agent/registry
  go test -count=1 -run 'TestRegistryClients$' ./services/e2e
  {
    sed '/^## Clients/,$d' docs/reports/registry.md
    printf '## Clients\n\n| client | version | ways to read | ways to write, refused |\n|---|---|---|---|\n'
    cat "$rows/clients"
    printf '\n## Conformance\n\n'
    for name in org install; do
      printf '### The %s'"'"'s registry\n\n```\n' "$name"
      cat "$rows/$name"
      printf '```\n\n'
    done
  } >"$rows/page"
  sed -e '${/^$/d}' "$rows/page" >docs/reports/registry.md
}

case ${1:-} in
build | all | report) "$1" ;;
bench) "$@" ;;
*)
  echo "usage: oci.sh build | all | bench [FLAG]... | report" >&2
  exit 2
  ;;
esac
