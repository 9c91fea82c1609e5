# shellcheck shell=bash
# Sourced: the executables of Berth, and which version they are. berth-policy is not among
# them: it is of a module outside of the workspace, see policy.sh.

# name of the executable, its main package
readonly executables='
berth            ./cli/cmd/berth
berth-ctl-api    ./services/ctl-api
berth-runner-api ./services/runner-api
berth-builder    ./services/builder
berth-log-ingest ./services/log-ingest
berth-runner     ./runner/cmd/runner
berth-engine     ./runner/cmd/engine
berth-verify     ./pkg/cmd/berth-verify
'

# package_of prints the main package of an executable.
package_of() {
  local package
  package=$(awk -v n="$1" '$1==n{print $2}' <<<"$executables")
  if [ -z "$package" ]; then
    echo "${0##*/}: no executable \"$1\"; there are: $(awk 'NF{printf "%s ", $1}' <<<"$executables")" >&2
    return 2
  fi
  echo "$package"
}

# Without optional locks: a build must not disturb a commit in another terminal.
version=${BERTH_VERSION:-$(GIT_OPTIONAL_LOCKS=0 git describe --tags --always --dirty 2>/dev/null || true)}
commit=$(git rev-parse --verify -q HEAD 2>/dev/null || true)
readonly version commit
readonly version_flags="-X github.com/berth-dev/berth/pkg/version.Version=$version -X github.com/berth-dev/berth/pkg/version.Commit=$commit"
