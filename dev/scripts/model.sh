#!/usr/bin/env bash
# Lets people do anything in any order on the real services while everything is
# killed, once for each seed, and writes the outcomes down in docs/reports/model.md.
# Usage: model.sh [SEED]...
#
#	MINUTES=120 dev/scripts/model.sh 1
set -euo pipefail
cd "$(dirname "$0")/../.."

seeds=("$@")
[ ${#seeds[@]} != 0 ] || seeds=(1)
readonly minutes=${MINUTES:-10} report=docs/reports/model.md

dev/scripts/need.sh go git postgres
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
dev/scripts/build.sh
export BERTH_TERRAFORM BERTH_LIBEXEC=$PWD/.bin
export BERTH_MODEL_SECONDS=$((minutes * 60)) BERTH_MODEL_REPORT=$PWD/.bin/model.md
rm -f "$BERTH_MODEL_REPORT"

status=0
for seed in "${seeds[@]}"; do
  echo "== operations with seed $seed, $minutes minutes" >&2
  BERTH_MODEL_SEED=$seed go test ./services/e2e -run '^TestModel$' -count=1 -v -timeout "$((minutes + 20))m" || status=1
done

mkdir -p "$(dirname "$report")"
cat >"$report" <<END
# Random operations: the last long run

\`MINUTES=$minutes make model SEEDS="${seeds[*]}"\` of $(git describe --always --dirty), $(date -u +%F), $(nproc) cores. Each line is one run of \`TestModel\`
([services/e2e/model_test.go](../../services/e2e/model_test.go)): two installs, to which people do what the column says, at any time and in any
order, while services, agents and engines are killed. "held" means: after each operation no two attempts on one resource, nothing applied
that was not approved as it was shown, no lock of a change that does not execute, no scheduled tick twice; in the end everything came to rest,
with a reason for each wait, no lock, lease or lost wake-up, good chains, and both installs could be brought up to date and removed.

| seed | time | operations | of these | outcome |
|---|---|---|---|---|
END
cat "$BERTH_MODEL_REPORT" >>"$report"
cat "$report"
exit "$status"
