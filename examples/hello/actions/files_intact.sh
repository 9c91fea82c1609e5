#!/usr/bin/env sh
set -eu

compare() {
  if [ ! -f "$1" ]; then
    echo "missing: $1"
    exit 1
  fi
  actual=$(sha256sum "$1" | cut -d ' ' -f 1)
  if [ "$actual" != "$2" ]; then
    echo "changed: $1 has sha256 $actual, the component wrote $2"
    exit 1
  fi
  echo "intact: $1"
}

compare "$GREETING_FILE" "$GREETING_SHA256"
compare "$CARD_FILE" "$CARD_SHA256"

echo "files=2" >> "${BERTH_ACTIONS_OUTPUT_FILEPATH:-/dev/null}"
