# shellcheck shell=bash
# Part of dev/scripts/kube.sh: the processes that it starts, each with a file
# $dir/pid/NAME. A process is known by its id and when it began, so a later one
# that got the same id is never taken for it.

# began prints when a process began, in ticks since boot; nothing when it is
# gone, or waits for its parent to take note that it is.
began() {
  { sed 's/.*) //' "/proc/$1/stat" | awk '$1 != "Z" {print $20}'; } 2>/dev/null
}

# alive FILE: the process of a pid file runs.
alive() {
  local pid since
  read -r pid since 2>/dev/null <"$1" && [ -n "$since" ] && [ "$(began "$pid")" = "$since" ]
}

# start NAME COMMAND... starts a process that outlives us, unless it runs.
start() {
  local name=$1
  shift
  if alive "$dir/pid/$name"; then return; fi
  setsid "$@" >>"$dir/log/$name.log" 2>&1 </dev/null &
  echo "$! $(began $!)" >"$dir/pid/$name"
  say "started $name"
}

# await NAME SECONDS COMMAND... waits until a command succeeds, which says that
# a process works.
await() {
  local name=$1 end=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ! alive "$dir/pid/$name" || [ "$SECONDS" -ge "$end" ]; then
      tail -n 20 "$dir/log/$name.log" >&2
      fail "$name did not come to work: the end of its log is above"
    fi
    sleep 0.1
  done
}

# stop NAME ends a process: it is asked, and after 5 s made to.
stop() {
  local file=$dir/pid/$1 pid
  if alive "$file"; then
    read -r pid _ <"$file"
    kill "$pid" 2>/dev/null || true
    for _ in {1..50}; do
      alive "$file" || break
      sleep 0.1
    done
    if alive "$file"; then kill -KILL "$pid" 2>/dev/null || true; fi
  fi
  rm -f "$file"
}

# list_processes DIR prints name, process id and memory of each.
list_processes() {
  local file pid
  for file in "$1"/pid/*; do
    [ -e "$file" ] || continue # none
    read -r pid _ <"$file"
    if alive "$file"; then
      printf '%-20s %7d %5d MB\n' "${file##*/}" "$pid" "$(awk '/^VmRSS/{print int($2/1024)}' "/proc/$pid/status")"
    else
      printf '%-20s ended, see %s\n' "${file##*/}" "$1/log/${file##*/}.log"
    fi
  done >&2
}
