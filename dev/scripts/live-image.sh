#!/usr/bin/env bash
# Makes the image of a service for development from .bin/tilt/NAME: it has dev/live
# and can be changed while it runs. Usage: live-image.sh NAME ENTRY push|docker
#
# Tilt says what it is called: EXPECTED_REF. push: it goes to the registry that is
# named there; docker: the local Docker makes it, as for a cluster without a registry.
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly name=$1 entry=/usr/local/bin/$2 how=$3 root=$PWD/.bin/tilt/image/$1
: "${EXPECTED_REF:?is set by Tilt}"

rm -rf "$root"
mkdir -p "$root"/{bin,usr/local/bin,etc/ssl/certs}
cp .bin/tilt/"$name"/* "$root/usr/local/bin/"
(cd dev && CGO_ENABLED=0 GOOS=linux GOARCH=${ARCH:-$(go env GOARCH)} GOWORK=off go build -ldflags='-s -w' -o "$root/usr/local/bin/live" ./live)
for program in tar rm; do ln "$root/usr/local/bin/live" "$root/bin/$program"; done
for bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
  if [ -s "$bundle" ]; then
    cp "$bundle" "$root/etc/ssl/certs/ca-certificates.crt"
    break
  fi
done
if [ "$how" = push ]; then
  .bin/kube/mkimage --arch "${ARCH:-$(go env GOARCH)}" --entry "$entry" "$EXPECTED_REF" "$root/usr:/usr" "$root/bin:/bin" "$root/etc:/etc"
else
  command -v docker >/dev/null || {
    echo "no registry was found for this cluster, and there is no Docker: set BERTH_DEV_REGISTRY to a registry that the nodes pull from" >&2
    exit 1
  }
  printf 'FROM scratch\nCOPY . /\nUSER 65532:65532\nENTRYPOINT ["%s"]\n' "$entry" | docker build -q -t "$EXPECTED_REF" -f - "$root"
fi
