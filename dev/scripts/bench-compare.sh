#!/usr/bin/env bash
# Measures job dispatch of this tree against another one, a worktree of an
# earlier commit: builds both and lets them take turns, so that a busy machine
# is busy for both. With KUBECONFIG set it then measures deploys of both.
# Prints Markdown for docs/reference/benchmarks.md.
# Usage: bench-compare.sh BASE_TREE [ROUNDS]
#
#	git worktree add --detach ../base 94beca4
#	dev/scripts/bench-compare.sh ../base          # 4 rounds, about 8 minutes
#	RUN_WITH="chrt -r 1" dev/scripts/bench-compare.sh ../base
#
# RUN_WITH is a command that starts all that is measured, such as chrt, which
# keeps other work of the machine away from it. WAITING (1,100), SAMPLES (100),
# ENGINES (80) and COMPONENTS (1,10) are flags of the benchmark.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -ge 1 ] && [ -f "$1/services/bench/main.go" ] || {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
base=$(cd "$1" && pwd) rounds=${2:-4} here=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/bench-compare-XXXXXX")
trap 'rm -rf "$work"' EXIT
read -ra run_with <<<"${RUN_WITH:-}"

# The real agent's job has to be the same in both. It was a check before there
# were signed orders, and is a plan since: the agent has more to do after it.
overlay() {
  local file=$1/services/bench/dispatch.go
  if ! grep -q 'Kind: jobspec.KindAction, Operation: jobspec.OperationRun,' "$file"; then
    echo '{}'
    return
  fi
  awk '
    /body, err := json.Marshal\(spec\)/ {
      print "\tif planned[r.id] {\n\t\tspec.Operation, spec.ChangeID = jobspec.OperationPlan, id.New(id.Change)\n\t}"
    }
    { print }
    /^func toEngine\(/ { print "\tplanned[r.id] = true" }
    END { print "\n// planned are the runners whose jobs are plans.\nvar planned = map[string]bool{}" }
  ' "$file" >"$work/dispatch.go"
  printf '{"Replace": {"%s": "%s"}}\n' "$file" "$work/dispatch.go"
}

for tree in "$base" "$here"; do
  echo "building $tree" >&2
  (cd "$tree" && dev/scripts/build.sh && overlay "$tree" >"$work/overlay.json" &&
    go build -overlay "$work/overlay.json" -o .bin/build/bench ./services/bench)
done

measure() { # NAME TREE FLAG...
  local name=$1 tree=$2
  shift 2
  BERTH_LIBEXEC=$tree/.bin "${run_with[@]}" "$tree/.bin/build/bench" "$@" >"$work/out" 2>"$work/err" || {
    cat "$work/err" >&2
    exit 1
  }
  sed -n "s/^| /$name | /p" "$work/out" >>"$work/rows"
}

began=$(cut -d' ' -f1 /proc/loadavg)
flags=(-waiting "${WAITING:-1,100}" -samples "${SAMPLES:-100}" -engines "${ENGINES:-80}")
for ((i = 1; i <= rounds; i++)); do
  echo "round $i of $rounds, load $(cut -d' ' -f1 /proc/loadavg)" >&2
  if ((i % 2)); then
    measure before "$base" "${flags[@]}"
    measure after "$here" "${flags[@]}"
  else
    measure after "$here" "${flags[@]}"
    measure before "$base" "${flags[@]}"
  fi
done

echo "Before is $(git -C "$base" describe --tags --always), after $(git describe --tags --always --dirty). $rounds rounds in turns, ${ENGINES:-80} engines and ${SAMPLES:-100} other samples"
echo "in each; $(nproc) CPUs, load $began before and $(cut -d' ' -f1 /proc/loadavg) after${RUN_WITH:+; started with \`$RUN_WITH\`}. p50 is the median of the rounds' p50, best the"
echo "smallest of them, p99 the median of the rounds' p99; in milliseconds."
echo
awk -F' *[|] *' '
  function middle(list, n, a, i, j, t) {
    n = split(list, a, " ")
    for (i = 2; i <= n; i++) { t = a[i] + 0; for (j = i - 1; j > 0 && a[j] + 0 > t; j--) a[j + 1] = a[j]; a[j + 1] = t }
    least = a[1] + 0
    return n % 2 ? a[(n + 1) / 2] + 0 : (a[n / 2] + a[n / 2 + 1]) / 2
  }
  $2 ~ /^[0-9]+$/ {
    key = $2 "|" $3
    if (!(key in seen)) { seen[key] = 1; order[++keys] = key }
    p50[$1, key] = p50[$1, key] " " $5
    p99[$1, key] = p99[$1, key] " " $6
  }
  END {
    print "| waiting | what | p50 before | after | difference | ratio | best before | after | p99 before | after |"
    print "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for (i = 1; i <= keys; i++) {
      key = order[i]; split(key, name, "|")
      b = middle(p50["before", key]); bestb = least
      a = middle(p50["after", key]); besta = least
      printf "| %s | %s | %.1f | %.1f | %+.1f | × %.2f | %.1f | %.1f | %.1f | %.1f |\n", name[1], name[2], b, a, a - b, b ? a / b : 0,
        bestb, besta, middle(p99["before", key]), middle(p99["after", key])
    }
  }' "$work/rows"

[ -n "${KUBECONFIG:-}" ] || exit 0
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
export BERTH_TERRAFORM
for tree in "$base" "$here"; do
  echo
  echo "Deploys of $(git -C "$tree" describe --tags --always):"
  BERTH_LIBEXEC=$tree/.bin "${run_with[@]}" "$tree/.bin/build/bench" -components "${COMPONENTS:-1,10}" -rounds 3
done
