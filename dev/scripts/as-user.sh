#!/usr/bin/env bash
# Runs a test binary as a user who is not root, for `go test -exec`. The user is
# in no group but its own, and has a home, caches and temporary files below
# BERTH_USER_DIR, which test-as-user.sh prepares. The machine gets no account for
# that: only the test sees one (initdb wants it). Go's module cache may be in
# root's closed home: the test sees it at another path, read-only.
set -euo pipefail

: "${BERTH_USER_DIR:?is set by test-as-user.sh}" "${BERTH_USER_ID:?}"

# Go's own directory of test binaries is closed to others.
own=$(mktemp -d "$BERTH_USER_DIR/bin.XXXXXX")
trap 'rm -rf "$own"' EXIT
chmod 755 "$own"
binary=$own/$(basename "$1")
install -m 755 "$1" "$binary"
shift

# shellcheck disable=SC2016 # the inner shell expands them
unshare --mount --propagation private bash -c '
  set -e
  mount --bind "$1" "$2"
  mount -o remount,bind,ro "$2"
  mount --bind "$3" /etc/passwd
  shift 3
  exec "$@"' - "$(go env GOMODCACHE)" "$BERTH_USER_DIR/modules" "$BERTH_USER_DIR/passwd" \
  setpriv --reuid "$BERTH_USER_ID" --regid "$BERTH_USER_ID" --clear-groups --inh-caps=-all \
  env HOME="$BERTH_USER_DIR/home" TMPDIR="$BERTH_USER_DIR/tmp" GOCACHE="$BERTH_USER_DIR/home/go-build" \
  GOMODCACHE="$BERTH_USER_DIR/modules" GOTOOLCHAIN=local "$binary" "$@"
