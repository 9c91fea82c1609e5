#!/usr/bin/env bash
# Runs examples/hello on this machine: from the app folder to a healthy install.
# A second run finds everything as it should be and says so.
#
# Its data is in BERTH_DATA (default: .berth in this clone); `make down` stops
# it, `make down ARGS=--purge` deletes the data too.
set -euo pipefail
cd "$(dirname "$0")/../.."

export BERTH_DATA=${BERTH_DATA:-$PWD/.berth}
export BERTH_CONTEXT=local # the one that `berth up` writes
readonly berth=$PWD/.bin/berth app=hello install=acme
began=$SECONDS

# step says, and does, one command as the reader would type it.
step() {
  echo
  echo "\$ berth $*"
  "$berth" "$@"
}

dev/scripts/need.sh postgres
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
export BERTH_TERRAFORM
dev/scripts/build.sh

step up --detach
step sync "examples/$app" --wait --timeout 10m

if [ "$("$berth" installs list --app "$app" -o name | grep -cx "$install")" = 0 ]; then
  step installs create "$install" --app "$app" --customer "$install" --stack local --auto-approve --timeout 10m
else
  case $("$berth" installs show "$install" --json state | tr -d ' "{}\n') in
  state:live)
    # Nothing is taken for granted: everything is planned anew. 2: changes.
    if step deploy "$install" --plan --timeout 10m; then
      echo "$install is what release and inputs say: nothing is to be done"
    elif [ $? = 2 ]; then
      step deploy "$install" --auto-approve --timeout 10m
    else
      exit 1
    fi
    ;;
  *) step installs provision "$install" --auto-approve --timeout 10m ;; # was interrupted
  esac
fi

step actions run "$install" files_intact --watch --timeout 2m
step installs health "$install"
step status

verdict=$("$berth" installs show "$install" --json health | tr -d ' "{}\n')
if [ "$verdict" != health:healthy ]; then
  echo "$install is not healthy; berth why $install says more" >&2
  "$berth" why "$install" >&2
  exit 1
fi

url=$("$berth" up --status | awk 'NR==1{print $1}')
cat <<END

$install is healthy, $((SECONDS - began)) s after the start.

The API reference: $url/reference

Look further (with .bin on your PATH):
  berth installs show $install          what is live
  berth logs $install/card              what Terraform said
  berth installs inputs $install --set greeting=Hello
  berth deploy $install --watch         one field changes, and waits for you
  berth installs deprovision $install --auto-approve

make down stops it all; make down ARGS=--purge also deletes its data.
END
