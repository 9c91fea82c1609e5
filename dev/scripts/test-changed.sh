#!/usr/bin/env bash
# Runs the tests of the packages whose files differ from a commit, and not those
# of the packages that import them. Usage: test-changed.sh [COMMIT] (default: HEAD)
set -euo pipefail
cd "$(dirname "$0")/../.."

# The packages of the workspace with a changed file, one a line; a folder without
# Go, as testdata, counts as the package above it.
changed() {
  local file folder
  { git diff --name-only --relative "${1:-HEAD}" -- pkg services runner cli && git ls-files --others --exclude-standard -- pkg services runner cli; } |
    while read -r file; do
      folder=$(dirname "$file")
      while [ "$folder" != . ] && ! compgen -G "$folder/*.go" >/dev/null; do folder=$(dirname "$folder"); done
      case $folder in
      . | */testdata/* | services/e2e | services/bench) ;;
      *) echo "./$folder" ;;
      esac
    done | sort -u
}

mapfile -t packages < <(changed "$@")
if [ ${#packages[@]} = 0 ]; then
  echo "no package differs from ${1:-HEAD}"
  exit
fi
printf '%s\n' "${packages[@]}"
exec dev/scripts/test.sh "${packages[@]}"
