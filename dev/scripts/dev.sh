#!/usr/bin/env bash
# Runs Berth on this machine and keeps it built: what a saved file belongs to is
# rebuilt and restarted. Usage: dev.sh. Ctrl-C stops all of it.
#
# BERTH_DATA is the data folder (default: .berth in this clone), KUBECONFIG the
# cluster of local installs at the first start. docs/guides/develop.md says more.
set -euo pipefail
cd "$(dirname "$0")/../.."

export BERTH_DATA=${BERTH_DATA:-$PWD/.berth}
dev/scripts/need.sh go postgres
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
export BERTH_TERRAFORM
dev/scripts/build.sh
mkdir -p .bin/tools
(cd dev && GOWORK=off CGO_ENABLED=0 go build -o ../.bin/tools/loop ./loop)
exec .bin/tools/loop "$PWD"
