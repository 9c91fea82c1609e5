#!/usr/bin/env bash
# Runs an example on this machine: from the app folder to a healthy install. A
# second run finds everything as it should be and says so.
#
# The example is examples/hello. With KUBE=1 or with KUBECONFIG it is
# examples/shop, on the Kubernetes cluster of KUBECONFIG; without one, `make
# kube` makes one first.
#
# Its data is in BERTH_DATA (default: .berth in this clone); `make down` stops
# it, `make down ARGS=--purge` deletes the data too.
set -euo pipefail
cd "$(dirname "$0")/../.."

export BERTH_DATA=${BERTH_DATA:-$PWD/.berth}
export BERTH_CONTEXT=local # the one that `berth up` writes
began=$SECONDS

if [ -n "${KUBE:-}${KUBECONFIG:-}" ]; then
  readonly app=shop install=harbour check=shop_answers
else
  readonly app=hello install=acme check=files_intact
fi
readonly berth=$PWD/.bin/berth

# step says, and does, one command as the reader would type it.
step() {
  echo
  echo "\$ berth $*"
  "$berth" "$@"
}

# start_berth is `berth up`. One that runs already may not know the cluster.
start_berth() {
  local arguments=(--detach)
  if [ "$app" = shop ]; then
    arguments+=(--kubeconfig "$KUBECONFIG")
    if [ "$("$berth" up --status --json kubeconfig 2>/dev/null | tr -d ' "{}\n')" != "kubeconfig:$KUBECONFIG" ]; then
      "$berth" down >/dev/null
    fi
  fi
  step up "${arguments[@]}"
}

# scripts_only: the newest plan would do nothing but run scripts, which follow
# every deploy. What a plan would do ends as planned.
scripts_only() {
  local plan
  plan=$("$berth" workflows list --install "$install" --limit 1 -o name)
  ! "$berth" changes list --workflow "$plan" --state planned --json kind | grep '"kind"' | grep -qv '"script"'
}

# how_to_look_APP ends the demo of an app.
how_to_look_hello() {
  cat <<END
  berth logs $install/card              what Terraform said
  berth installs inputs $install --set greeting=Hello
END
}

how_to_look_shop() {
  cat <<END
  export KUBECONFIG=$KUBECONFIG
  kubectl -n shop-$install get all
  kubectl -n shop-$install port-forward service/web 8080:80
                                        the shop, on http://127.0.0.1:8080
  berth logs $install/web               what was waited for
  berth installs inputs $install --set title="Harbour & Sons"
END
}

dev/scripts/need.sh postgres
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
export BERTH_TERRAFORM
dev/scripts/build.sh
if [ "$app" = shop ]; then
  export PATH=$PWD/.bin/kube:$PATH # checks of the shop use kubectl
  KUBECONFIG=$(realpath "${KUBECONFIG:-$(dev/scripts/kube.sh up)}")
  export KUBECONFIG
  dev/scripts/shop-image.sh
fi

start_berth
step sync "examples/$app" --wait --timeout 10m

if [ "$("$berth" installs list --app "$app" -o name | grep -cx "$install")" = 0 ]; then
  step installs create "$install" --app "$app" --customer "$install" --stack local --auto-approve --timeout 10m
else
  case $("$berth" installs show "$install" --json state | tr -d ' "{}\n') in
  state:live)
    # Nothing is taken for granted: everything is planned again. 2: changes.
    planned=0
    step deploy "$install" --plan --timeout 10m || planned=$?
    if [ $planned = 0 ] || { [ $planned = 2 ] && scripts_only; }; then
      echo "$install is what release and inputs say: nothing is to be done"
    elif [ $planned = 2 ]; then
      step deploy "$install" --auto-approve --timeout 10m
    else
      exit "$planned"
    fi
    ;;
  *) step installs provision "$install" --auto-approve --timeout 10m ;; # was interrupted
  esac
fi

step actions run "$install" "$check" --watch --timeout 2m

is_healthy() { [ "$("$berth" installs show "$install" --json health | tr -d ' "{}\n')" = health:healthy ]; }
# A probe that looked before the deploy was done looks again within a minute.
for ((second = 0; second < 75; second++)); do
  if is_healthy; then break; fi
  [ $second != 0 ] || echo "waiting for the next look at the install's health, within a minute"
  sleep 1
done
step installs health "$install"
step status

if ! is_healthy; then
  echo "$install is not healthy; berth why $install says more" >&2
  "$berth" why "$install" >&2
  exit 1
fi

url=$("$berth" up --status | awk 'NR==1{print $1}')
link=$("$berth" ui --print)
cat <<END

$install is healthy, $((SECONDS - began)) s after the start.

The dashboard: $url/ui/; this link logs you in, once, within 60 seconds:
  $link
Later: berth ui

The API reference: $url/reference

Look further (with .bin${KUBECONFIG:+ and .bin/kube} on your PATH):
  berth installs show $install          what is live
$("how_to_look_$app")
  berth deploy $install --watch         one field changes, and waits for you
  berth installs deprovision $install --confirm $install --auto-approve

make down stops it all; make down ARGS=--purge also deletes its data.
END
