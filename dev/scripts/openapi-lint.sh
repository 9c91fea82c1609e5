#!/usr/bin/env bash
# Holds the API documents that services publish to the rules of Redocly CLI and
# of Spectral. Usage: openapi-lint.sh. Both must find nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly rules=dev/openapi/lint out=.bin/openapi
dev/scripts/need.sh go node
tools=$(dev/scripts/npm.sh $rules)
mkdir -p $out
(cd services && CGO_ENABLED=0 go build -o ../.bin/tools/publish ./internal/reference/publish)

status=0
documents=()
for service in ctl-api log-ingest; do
  (cd services && ../.bin/tools/publish $service) >$out/$service.json
  documents+=("$out/$service.json")
done
# Neither asks anybody for news of itself.
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
if ! "$tools/redocly" lint --config $rules/redocly.yaml "${documents[@]}" >$out/redocly.log 2>&1; then
  grep -v '^$' $out/redocly.log
  status=1
fi
"$tools/spectral" lint --ruleset $rules/spectral.yaml --fail-severity hint --quiet "${documents[@]}" || status=1
[ $status = 0 ] || echo "correct openapi/*.yaml or services/internal/reference; the documents are in $out" >&2
exit $status
