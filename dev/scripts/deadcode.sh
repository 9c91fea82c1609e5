#!/usr/bin/env bash
# Names the functions of the workspace that no executable reaches. What only
# tests use counts as dead, but in packages that are there for tests: their
# names end in "test", and in pkg/berth, which is for programs of others.
# dev/deadcode.txt lists what may stay, with a reason, * for all of a package; a
# line that is no longer needed is an error too.
set -euo pipefail
cd "$(dirname "$0")/../.."

dev/scripts/need.sh go
dev/scripts/tools.sh lint

# It type-checks the whole program from source, in about 5 GB of memory;
# collecting garbage less often saves some time.
found=$(GOGC=200 .bin/tools/deadcode -filter='^github.com/berth-dev/berth/' \
  -f '{{$path := .Path}}{{range .Funcs}}{{printf "%s %s %s\n" $path .Name .Position}}{{end}}' \
  ./pkg/... ./runner/... ./services/... ./cli/...)

awk '
  FNR == NR {
    if ($0 ~ /^(#|$)/) next
    if (NF < 3) { print FILENAME ": no reason is given: " $0; bad = 1 }
    allowed[$1 " " $2] = 1
    next
  }
  $1 ~ /test$/ || $1 ~ /\/pkg\/berth$/ || NF == 0 { next }
  ($1 " " $2) in allowed { used[$1 " " $2] = 1; next }
  ($1 " *") in allowed { used[$1 " *"] = 1; next }
  { print $3 ": no executable reaches " $2; bad = 1 }
  END {
    for (name in allowed) if (!(name in used)) { print "dev/deadcode.txt: not needed any more: " name; bad = 1 }
    exit bad
  }
' dev/deadcode.txt <(echo "$found")
