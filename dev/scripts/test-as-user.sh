#!/usr/bin/env bash
# Runs tests as a user who is not root, and reports as docs/testing.md says.
# Arguments are those of test.sh:
#
#	dev/scripts/test-as-user.sh                       all modules
#	dev/scripts/test-as-user.sh -run TestX ./runner/...
#	dev/scripts/test-as-user.sh differ                what differs between the two, in less than a minute
#
# RACE=1 is for the race detector in the tests, not in the executables that they start. Started by root, it builds as root and runs as BERTH_USER_ID (default 61998),
# without any account. Kubernetes stays out: its tests run as root.
set -euo pipefail
cd "$(dirname "$0")/../.."

# All of it, as its folders are in /tmp.
if [ -z "${BERTH_IN_MEMORY:-}" ]; then
  BERTH_IN_MEMORY=1 exec dev/scripts/in-memory.sh "$PWD/dev/scripts/test-as-user.sh" "$@"
fi

readonly workspace='./pkg/... ./services/... ./runner/... ./cli/...'
export BERTH_USER_ID=${BERTH_USER_ID:-61998}

differ=
if [ "${1:-}" = differ ]; then
  differ=1
  shift
fi
flags=() packages=()
for arg in "$@"; do
  case $arg in
  ./*) packages+=("$arg") ;;
  *) flags+=("$arg") ;;
  esac
done
[ ${#packages[@]} != 0 ] || read -ra packages <<<"$workspace"

dev/scripts/need.sh go git postgres
BERTH_TERRAFORM=$(dev/scripts/need.sh terraform)
export BERTH_TERRAFORM
if [ -n "${RACE:-}" ]; then
  dev/scripts/need.sh cc
  export CGO_ENABLED=1
  # Else each process with the detector waits for a second before it ends.
  export GORACE="atexit_sleep_ms=0 ${GORACE:-}"
  flags+=(-race)
fi
RACE='' dev/scripts/build.sh
export BERTH_LIBEXEC=$PWD/.bin
unset KUBECONFIG

# tidy waits for Postgres, which outlives the last test by some seconds.
tidy() {
  for _ in {1..40}; do
    [ -n "$(find /proc -maxdepth 1 -user "$BERTH_USER_ID" -print -quit 2>/dev/null)" ] || break
    sleep 0.5
  done
  rm -rf "$BERTH_USER_DIR"
}

if [ "$(id -u)" = 0 ]; then
  # Short: Postgres has its socket below it.
  BERTH_USER_DIR=$(mktemp -d /tmp/berth-user.XXXX)
  export BERTH_USER_DIR
  trap tidy EXIT
  chmod 755 "$BERTH_USER_DIR"
  mkdir "$BERTH_USER_DIR/modules"
  { cat /etc/passwd && echo "berth-test:x:$BERTH_USER_ID:$BERTH_USER_ID::$BERTH_USER_DIR/home:/bin/sh"; } >"$BERTH_USER_DIR/passwd"
  install -d -m 711 -o "$BERTH_USER_ID" -g "$BERTH_USER_ID" "$BERTH_USER_DIR/home" "$BERTH_USER_DIR/tmp"
  flags+=(-exec "$PWD/dev/scripts/as-user.sh")
fi

mkdir -p .bin/tools
(cd dev && GOWORK=off CGO_ENABLED=0 go build -o ../.bin/tools/testreport ./testreport)

go_test() { go test -json -count=1 -vet=off -ldflags=-w -timeout 20m "${flags[@]}" "$@"; }

# run ends what it began also after a failure, which the report counts.
run() {
  local status=0
  if [ -n "$differ" ]; then
    # What runs as its own user, or shares it with what it starts. The attacks on
    # engines have an agent that is not root in any run of the tests.
    go_test ./runner/agent/process ./runner/agent/job ./runner/agent/users ./services/internal/pgtest || status=1
    # The last pattern is that of services/e2e: both packages wait a lot, so they run side by side.
    go_test -run 'TestKilledAgentIsSucceeded|TestResultOfAnEngineThatEndedAlone|TestEnrolsAndWorks|TestWithout|TestAttackNeighbour|TestAttackEngine' \
      ./runner/agent ./services/e2e || status=1
    return "$status"
  fi
  # What starts whole systems has the machine for itself, as in test.sh.
  local -r e2e=github.com/berth-dev/berth/services/e2e
  local others own
  others=$(go list "${packages[@]}" | grep -vFx "$e2e" || true)
  own=$(go list "${packages[@]}" | grep -Fx "$e2e" || true)
  # shellcheck disable=SC2086 # one package a word
  [ -z "$others" ] || go_test $others || status=1
  [ -z "$own" ] || go_test "$own" || status=1
  return "$status"
}
run | .bin/tools/testreport -skips dev/skips.txt
