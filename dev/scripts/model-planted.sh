#!/usr/bin/env bash
# Shows that the test of random operations finds bugs: builds ctl-api with three known
# ones (services/internal/planted), lets TestModel run on each until a law is broken, and writes
# down after how many operations that was, in docs/reports/model-planted.md. It fails when
# a bug is not found within SECONDS_EACH, or by another law. Usage: model-planted.sh [BUG]...
set -euo pipefail
cd "$(dirname "$0")/../.."
. dev/scripts/executables.sh

# bug, the laws one of which it has to break
readonly expected='
lost-wake-up   a lost wake-up
kept-lock      a lock of a change that is not executing
kept-approval  an approval kept over a changed effect
'
readonly each=${SECONDS_EACH:-1200} seed=${SEED:-1} out=$PWD/.bin/planted report=docs/reports/model-planted.md

mapfile -t bugs < <(awk 'NF{print $1}' <<<"$expected")
[ $# = 0 ] || bugs=("$@")

dev/scripts/need.sh go git postgres
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
dev/scripts/build.sh
mkdir -p "$out"
while read -r name _; do ln -f ".bin/$name" "$out/$name"; done < <(awk 'NF' <<<"$executables" && echo berth-policy)
CGO_ENABLED=0 go build -buildvcs=false -tags planted -ldflags "-s -w $version_flags" -o "$out/ctl-api.new" "$(package_of berth-ctl-api)"
mv -f "$out/ctl-api.new" "$out/berth-ctl-api"
grep -q BERTH_PLANTED_BUG "$out/berth-ctl-api" # what TestNothingPlanted looks for
go test -c -o "$out/e2e.test" ./services/e2e

lines=() status=0
for bug in "${bugs[@]}"; do
  law=$(awk -v b="$bug" '$1 == b {sub(/^[^ ]+ +/, ""); print}' <<<"$expected")
  [ -n "$law" ] || { echo "model-planted.sh: there is no bug \"$bug\"" >&2; exit 2; }
  log=$out/$bug.log
  rm -f "$out/outcome.md"
  echo "== $bug, seed $seed, at most $each seconds" >&2
  # It has to fail.
  (cd services/e2e && BERTH_PLANTED_BUG=$bug BERTH_LIBEXEC=$out BERTH_TERRAFORM=$BERTH_TERRAFORM BERTH_MODEL_SEED=$seed BERTH_MODEL_SECONDS=$each \
    BERTH_MODEL_REPORT=$out/outcome.md "$out/e2e.test" -test.run '^TestModel$' -test.v -test.timeout "$((each + 900))s" >"$log" 2>&1) || true
  outcome=$(cat "$out/outcome.md" 2>/dev/null || true)
  operations=$(awk -F' *[|] *' '{print $4}' <<<"$outcome") took=$(awk -F' *[|] *' '{print $3}' <<<"$outcome")
  if [[ $outcome == *"FAILED: $law |" ]]; then
    found="found after $operations operations, $took"
  else
    found="NOT FOUND (see $log)"
    status=1
  fi
  lines+=("| \`$bug\` | $law | $found |")
  echo "${lines[-1]}" >&2
done

if [ $# = 0 ]; then
  cat >"$report" <<END
# Random operations find planted bugs: the last run

\`SEED=$seed make model-planted\` of $(git describe --always --dirty), $(date -u +%F), $(nproc) cores. ctl-api is built with the tag \`planted\`, which ordinary
executables are not (\`TestNothingPlanted\`), and has one of the bugs of [services/internal/planted](../../services/internal/planted/planted.go). \`TestModel\` runs on it
until a law is broken, at most $each seconds for each.

| bug | law that it broke | outcome |
|---|---|---|
END
  printf '%s\n' "${lines[@]}" >>"$report"
fi
exit "$status"
