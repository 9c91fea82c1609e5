#!/bin/sh
# Builds the plugin for its platforms.
set -eu
cd "$(dirname "$0")"
for arch in amd64 arm64; do
  CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOWORK=off GOFLAGS= go build -trimpath -ldflags '-s -w' -o "bin/linux-$arch" .
done
