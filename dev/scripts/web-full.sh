#!/usr/bin/env bash
# Goes through all journeys of the dashboard, short and long, with a real browser against the
# real system, and writes how each went to docs/reports/dashboard.md. With a cluster (the one
# of KUBECONFIG or of make kube; KUBE=1 starts one and leaves it) examples/shop takes part;
# without one it is left out, and the report says so. It takes about 15 minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

dev/scripts/need.sh go git node postgres chromium
if ! command -v ssh-agent >/dev/null; then
  echo "a customer signs with ssh-agent: install openssh-client" >&2
  exit 1
fi
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
dev/scripts/build.sh
export BERTH_TERRAFORM BERTH_LIBEXEC=$PWD/.bin BERTH_WEB_FULL=1 BERTH_WEB_REPORT=$PWD/.bin/journeys.md BERTH_PICTURES=$PWD/.bin/journeys
unset BERTH_JOURNEYS BERTH_SCREENSHOTS
readonly report=docs/reports/dashboard.md said=.bin/journeys.log

if [ -z "${KUBECONFIG:-}" ]; then
  if [ -n "${KUBE:-}" ]; then
    KUBECONFIG=$(dev/scripts/kube.sh up)
  else
    KUBECONFIG=$(dev/scripts/kube.sh status 2>/dev/null) || echo "there is no cluster, so examples/shop is left out: KUBE=1 starts one" >&2
  fi
fi
export KUBECONFIG
if [ -n "$KUBECONFIG" ]; then
  export PATH=$PWD/.bin/kube:$PATH NO_PROXY=${NO_PROXY:+$NO_PROXY,}localhost,127.0.0.1,10.0.0.0/8
fi

rm -rf "$BERTH_WEB_REPORT" "$BERTH_PICTURES"
mkdir -p "$BERTH_PICTURES"
status=0
# Two at a time: they wait more than they work.
CGO_ENABLED=0 go test ./services/e2e -run '^Test(Dashboard|DashboardLife|KubernetesDashboard)$' -count=1 -parallel=2 -v -timeout 90m >"$said" 2>&1 || status=1

{
  cat <<END
# Journeys through the dashboard: the last run

\`make web-full\` of $(git describe --always --dirty), $(date -u +%F): $(nproc) cores, $(awk '/MemTotal/{printf "%.0f", $2/1048576}' /proc/meminfo) GiB, $("${BERTH_CHROMIUM:-chromium}" --version 2>/dev/null | awk '{print $1, $2}'),
$([ -n "$KUBECONFIG" ] && echo "with examples/shop on a real cluster" || echo "without a cluster: examples/shop was left out").

Chromium goes through the pages of a real Berth, with runners that really run jobs. A journey also fails on an error of a page, on anything that its content security policy refuses, and
on a request to anybody else; those that follow something live also fail when the page is loaded again.

**$(grep -c . "$BERTH_WEB_REPORT") journeys, $(grep -c '| passed |$' "$BERTH_WEB_REPORT") passed, $(awk -F'|' '{s+=$(NF-2)} END {printf "%d min %d s", s/60, s%60}' "$BERTH_WEB_REPORT") in all.**

| journeys | what happens | seconds | outcome |
|---|---|--:|---|
END
  sort -s -t'|' -k2,2 "$BERTH_WEB_REPORT"
  printf '\nWhat they measured:\n\n'
  sed 's/\x1b\[[0-9;]*m//g' "$said" | awk '/stdout \| .*journey/ {f = 1; next} /✓|✗|×|❯/ || !NF {f = 0} f {sub(/^ +/, ""); print "- " $0}'
} >"$report"
echo "$(tail -n 1 "$said"); written to $report, the whole story is in $said"
exit "$status"
