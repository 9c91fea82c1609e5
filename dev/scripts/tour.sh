#!/usr/bin/env bash
# Records docs/tour/*.cast: a real Berth, in which the commands of dev/tour are
# typed. Usage: tour.sh. `asciinema play docs/tour/first-deploy.cast` shows one.
#
# Everything is in a data folder of its own, which is deleted at the end.
set -euo pipefail
cd "$(dirname "$0")/../.."

dev/scripts/need.sh postgres tour
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
dev/scripts/build.sh

home=$(mktemp -d /tmp/berth-tour.XXXXXX)
export BERTH_TERRAFORM BERTH_DATA=$home/data BERTH_PORT=8790 HOME=$home TOUR=$PWD/dev/tour PATH=$PWD/.bin:$PATH
export PS1='❯ ' PAGER=cat LC_ALL=C.UTF-8 TERM=xterm-256color PROMPT_COMMAND='' COLUMNS=100 LINES=32
unset BERTH_CONTEXT BERTH_URL BERTH_TOKEN BERTH_ORG KUBECONFIG DATABASE_URL BASH_ENV
end() {
  berth down --purge >/dev/null 2>&1 || true
  rm -rf "$home"
}
trap end EXIT

casts=$PWD/docs/tour
cp -r examples/hello "$home/hello"
cd "$home/hello"
git init -q
git -c user.name=Ann -c user.email=ann@example.com add -A
git -c user.name=Ann -c user.email=ann@example.com commit -qm "The smallest app that does something"
berth up --detach
for tour in first-deploy approve failure rollback; do
  echo "recording $tour" >&2
  asciinema rec --quiet --overwrite --cols 100 --rows 32 --idle-time-limit 2 --env TERM --title "Berth: ${tour//-/ }" \
    --command "expect $TOUR/$tour.exp" "$home/$tour.cast"
  # What was run to record it is nobody's business, and differs by machine.
  sed -i '1s/, "command": "[^"]*"//' "$home/$tour.cast"
  grep -q '"o"' "$home/$tour.cast"
  mv "$home/$tour.cast" "$casts/$tour.cast"
done
