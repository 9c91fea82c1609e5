#!/usr/bin/env bash
# Makes sure that this machine has what a target needs, and installs what it
# can. Usage: need.sh (go | cc | git | node | postgres | terraform | kube | buildkit | shells | chromium | tour)...
#
# For terraform it prints the path of the one to use; everything else that it
# says goes to stderr. When something cannot be had it prints one line with the
# remedy and exits with 1.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
  echo "$1" >&2
  exit 1
}

# can_apt: packages are ours to install on a Debian-like machine as root.
can_apt() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

apt_lock() {
  mkdir -p .bin
  exec 9>.bin/apt.lock
  flock 9 # apt itself fails when it runs already
}

apt_install() {
  echo "installing $*" >&2
  local log=.bin/apt.log
  apt_lock
  if ! { DEBIAN_FRONTEND=noninteractive apt-get -q update &&
    DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends "$@"; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "could not install $*; the whole story is in $log"
  fi
  exec 9>&-
}

need_go() {
  local want have
  want=$(awk '$1=="go"{print $2; exit}' go.work)
  if ! command -v go >/dev/null; then
    [ -x /usr/local/go/bin/go ] && fail "Go is in /usr/local/go/bin, which is not on PATH: export PATH=\$PATH:/usr/local/go/bin"
    fail "Go $want or newer is needed: see https://go.dev/doc/install"
  fi
  have=$(go env GOVERSION)
  have=${have#go}
  [ "$(printf '%s\n%s\n' "$want" "${have%%[- ]*}" | sort -V | head -n1)" = "$want" ] ||
    fail "Go $want or newer is needed, this is $have: see https://go.dev/doc/install"
}

# A C compiler is needed for the race detector and for building sqlc.
need_cc() {
  local cc
  cc=$(go env CC)
  command -v "${cc%% *}" >/dev/null && return
  can_apt || fail "a C compiler is needed: install gcc"
  apt_install gcc libc6-dev
}

need_git() {
  command -v git >/dev/null && return
  can_apt || fail "git is needed: install git"
  apt_install git ca-certificates
}

# What npm installs here runs on Node 20.19, and on 22.
has_node() {
  command -v node >/dev/null && command -v npm >/dev/null &&
    node -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || major === 20 && minor >= 19 ? 0 : 1)'
}

need_node() {
  has_node && return
  local -r wanted="Node 20.19 or newer with npm is needed: see https://nodejs.org/en/download"
  can_apt || fail "$wanted"
  # What the distribution has may be older.
  local offered
  apt_lock
  apt-get -q update >.bin/apt.log 2>&1 || fail "$wanted (apt-get update failed: .bin/apt.log)"
  exec 9>&-
  offered=$(apt-cache policy nodejs | awk '$1 == "Candidate:" { print $2 }')
  [[ ${offered#*:} =~ ^[0-9]+ ]] && [ "${BASH_REMATCH[0]}" -ge 20 ] || fail "$wanted; this distribution has ${offered:-none}"
  apt_install nodejs npm
  has_node || fail "$wanted; this distribution's is $(node --version)"
}

need_postgres() {
  [ -z "${DATABASE_URL:-}" ] || return 0
  # It looks where `berth up` and the tests look, and says what is missing.
  local -r find=.bin/tools/find-postgres
  local missing
  mkdir -p .bin/tools
  CGO_ENABLED=0 go build -o $find ./pkg/localpg/find-postgres
  missing=$($find 2>&1 >/dev/null) && return
  [ -z "${BERTH_PG_BIN:-}" ] || fail "$missing"
  can_apt || fail "$missing, or DATABASE_URL to a server; 15 or newer is needed"
  # Only the binaries are wanted, not the cluster that the package makes and
  # starts on the default port. The file is the first package's own, so it is
  # edited in between.
  apt_install postgresql-common
  sed -ri 's/^#?create_main_cluster .*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
  apt_install postgresql
  $find >/dev/null
}

need_terraform() {
  mkdir -p .bin/tools
  CGO_ENABLED=0 go build -o .bin/tools/ensure-terraform ./cli/internal/toolchain/ensure-terraform
  .bin/tools/ensure-terraform
}

# What the processes of a Kubernetes node and dev/scripts/kube.sh call; Debian
# has the network plugins in /usr/lib/cni, others in /opt/cni/bin.
has_kube() {
  local program
  for program in containerd ctr runc iptables nft ip sysctl openssl curl; do
    command -v "$program" >/dev/null || return
  done
  [ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ]
}

need_kube() {
  has_kube && return
  local -r packages=(containerd runc containernetworking-plugins iptables nftables iproute2 procps openssl curl)
  can_apt || fail "install ${packages[*]}"
  # Only the executables are wanted, not services that the packages start.
  local policy=/usr/sbin/policy-rc.d
  if [ -e "$policy" ]; then
    apt_install "${packages[@]}"
  else
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    apt_install "${packages[@]}"
    rm -f "$policy"
    trap - EXIT
  fi
  has_kube || fail "containerd and its like were installed, but are not where they are looked for: see has_kube in dev/scripts/need.sh"
}

# What BuildKit calls. A machine that cannot have it does without: tests that build
# images skip.
need_buildkit() {
  local -a missing=()
  command -v runc >/dev/null || missing+=(runc)
  command -v rootlesskit >/dev/null || missing+=(rootlesskit)
  command -v newuidmap >/dev/null || missing+=(uidmap)
  command -v busybox >/dev/null || missing+=(busybox-static) # what tests make images of
  [ ${#missing[@]} -gt 0 ] || return 0
  can_apt || {
    echo "without ${missing[*]}, no images are built" >&2
    return 0
  }
  apt_install "${missing[@]}"
}

# The shells in which the tests press Tab. Nothing else needs them, so a machine
# that cannot have them does without: those tests skip.
need_shells() {
  local -a missing=()
  local shell
  for shell in zsh fish; do
    command -v "$shell" >/dev/null || missing+=("$shell")
  done
  [ -r /usr/share/bash-completion/bash_completion ] || missing+=(bash-completion)
  [ ${#missing[@]} -gt 0 ] || return 0
  can_apt || {
    echo "without ${missing[*]}, their completion is not tested" >&2
    return 0
  }
  apt_install "${missing[@]}"
}

# The browser that goes through the dashboard. A machine that cannot have it does without:
# its test skips.
need_chromium() {
  local name
  for name in chromium chromium-browser google-chrome; do
    ! command -v "$name" >/dev/null || return 0
  done
  can_apt || {
    echo "without chromium, the dashboard is not tested in a browser" >&2
    return 0
  }
  apt_install chromium
}

# What records a terminal, and types into it.
need_tour() {
  command -v asciinema >/dev/null && command -v expect >/dev/null && return
  can_apt || fail "to record the tour, install asciinema and expect"
  apt_install asciinema expect
}

for what in "$@"; do
  case $what in
  go | cc | git | node | postgres | terraform | kube | buildkit | shells | chromium | tour) "need_$what" ;;
  *) fail "need.sh: cannot get \"$what\"; there are: go cc git node postgres terraform kube buildkit shells tour" ;;
  esac
done
