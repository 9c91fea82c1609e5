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

version=$(git describe --always --dirty) # before the report is written
status=0
for seed in "${seeds[@]}"; do
  echo "== operations with seed $seed, $minutes minutes" >&2
  BERTH_MODEL_SEED=$seed go test ./services/e2e -run '^TestModel$' -count=1 -v -timeout "$((minutes + 20))m" || status=1
done

mkdir -p "$(dirname "$report")"
cat >"$report" <<END
# Random operations: the last long run

\`MINUTES=$minutes make model SEEDS="${seeds[*]}"\` of $version, $(date -u +%F), $(nproc) cores. Each line is one run of \`TestModel\`
([services/e2e/model_test.go](../../services/e2e/model_test.go)): three installs at a time, to which people do what the column says, at any time and in
any order, two in three by the API and the others by the command line, while services, agents, engines and the Build Runner are killed. "held" means that the laws of
[model_laws_test.go](../../services/e2e/model_laws_test.go) held after each operation: one attempt on a resource, nothing applied that was not approved as it
was shown (by the rows and by the runner's own chain), no lock of a change that does not execute, no scheduled tick lost or twice, no lost wake-up, nothing open that
nothing moves or that has no reason, no secret in logs, rows or arguments. In the end everything came to rest with no lock or lease, good chains, and all
installs could be brought up to date and removed.

| seed | time | operations | not refused | installs | of these | what came of them | outcome |
|---|---|---|---|---|---|---|---|
END
cat "$BERTH_MODEL_REPORT" >>"$report"
cat "$report"
exit "$status"
