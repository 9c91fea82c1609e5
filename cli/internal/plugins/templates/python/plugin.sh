#!/bin/sh
# Starts plugin.py with the machine's Python, and says so where there is none. A plugin that
# is to run without it becomes an image: berth plugins pack.
if ! command -v python3 > /dev/null; then
  printf '{"outcome":"failed","error":"python3 is needed and not on PATH"}' > "$2/out/result.json"
  exit 1
fi
exec python3 "${0%/*}/plugin.py" "$@"
