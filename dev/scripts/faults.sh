#!/usr/bin/env bash
# Deploys to three installs while everything is killed at random and the disk is
# full or slow for a while, once for each seed, and writes the outcomes down in
# docs/reports/faults.md. Usage: faults.sh [SEED]...
#
#	MINUTES=10 dev/scripts/faults.sh 1 2 3
#
# Full and slow disks take root, mkfs.ext4, losetup and control groups.
set -euo pipefail
cd "$(dirname "$0")/../.."

seeds=("$@")
[ ${#seeds[@]} != 0 ] || seeds=(1 2 3)
readonly minutes=${MINUTES:-10} report=docs/reports/faults.md

dev/scripts/need.sh go git postgres
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
dev/scripts/build.sh
export BERTH_TERRAFORM BERTH_LIBEXEC=$PWD/.bin
export BERTH_FAULTS_SECONDS=$((minutes * 60)) BERTH_FAULTS_REPORT=$PWD/.bin/faults.md
rm -f "$BERTH_FAULTS_REPORT"

status=0
for seed in "${seeds[@]}"; do
  echo "== faults with seed $seed, $minutes minutes" >&2
  BERTH_FAULTS_SEED=$seed go test ./services/e2e -run '^TestFaults$' -count=1 -v -timeout "$((minutes + 20))m" || status=1
done

mkdir -p "$(dirname "$report")"
cat >"$report" <<END
# Faults: the last long run

\`make faults\` of $(git describe --always --dirty), $(date -u +%F), $(nproc) cores. Each line is one run of \`TestFaults\`
([services/e2e/faults_test.go](../../services/e2e/faults_test.go)): three installs are deployed to again and again while what
the column says is killed (Postgres by an immediate shutdown), the disk is full or slow. "held" means: every deploy happened,
no effect more often than an uncertain outcome explains, no line of a log missing or twice, every chain good by
\`berth-verify\`, no lock or lease left, and nobody did anything but ask for a retry where one was offered.

| seed | time | faults | deploys | retries | slowest | effects | lines | outcome |
|---|---|---|---|---|---|---|---|---|
END
cat "$BERTH_FAULTS_REPORT" >>"$report"
cat "$report"
exit "$status"
