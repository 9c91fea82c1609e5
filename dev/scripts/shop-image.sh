#!/usr/bin/env bash
# Builds the web service of examples/shop and pushes it as an image to the
# registry of the development cluster, where the app folder looks for it. Prints
# the image's name with its digest; the same source gives the same digest.
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly web=$PWD/.bin/shop/web

dev/scripts/need.sh go
tag=$(sed -n 's/^tag *= "\(.*\)"$/\1/p' examples/shop/components/web_image.toml)
(cd examples/shop/src/web && GOWORK=off CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid=" -o "$web" .)
if ! dev/scripts/kube.sh image "shop/web:$tag" "$web"; then
  echo "shop-image.sh: the image was not pushed; make kube starts the registry that it goes to" >&2
  exit 1
fi
