#!/bin/sh
# Builds the image for its platforms, with BuildKit, and brings it into the plugin.
set -eu
cd "$(dirname "$0")"
../plugin-go/build.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
docker buildx build --platform linux/amd64,linux/arm64 --output "type=oci,tar=false,dest=$out" -f Dockerfile ../plugin-go
berth plugins pack . "$out"
