#!/usr/bin/env bash
# Runs a command whose /tmp is in memory, and its own. Tests make and delete
# databases and data folders all the time: on a disk, that costs more than what
# they do there. Only root can have one, and only with enough memory; else the
# command has the machine's /tmp. Nothing changes for other processes.
#
#	dev/scripts/in-memory.sh COMMAND...
set -euo pipefail

# What tests keep there at a time, and what they and a cluster need besides.
readonly size_gb=8 needed_gb=14

roomy() {
  [ "$(uname)" = Linux ] && [ "$(id -u)" = 0 ] && command -v unshare >/dev/null &&
    awk -v gb=$needed_gb '$1 == "MemAvailable:" {exit $2 < gb * 1024 * 1024}' /proc/meminfo
}

if ! roomy || ! unshare --mount true 2>/dev/null; then
  exec "$@"
fi
unset TMPDIR
# shellcheck disable=SC2016 # the inner shell expands them
exec unshare --mount --propagation private bash -c '
  mount -t tmpfs -o "size=$1g,mode=1777" berth-tests /tmp || exit
  shift
  exec "$@"' - "$size_gb" "$@"
