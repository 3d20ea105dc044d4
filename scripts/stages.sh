# Stages of checks, to be sourced: each prints how long it took and whether it was fine; the last line says what failed.
bin=.venv/bin
failed=()
times=()
declare -A background=()
trap stop_background EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

stage() { # stage NAME COMMAND...: runs it, remembers a failure, goes on
  local name=$1 start=$SECONDS word=fine
  shift
  printf '\n== %s\n' "$name"
  "$@" || { failed+=("$name"); word=FAILED; }
  times+=("$(printf '%5d s  %s' "$((SECONDS - start))" "$name")")
  printf '== %s: %s (%s s)\n' "$name" "$word" "$((SECONDS - start))"
}

in_background() { # in_background NAME COMMAND...: starts it behind everything else; `output_of NAME` waits for it and shows what it wrote
  local name=$1
  shift
  mkdir -p build
  # A session of its own is a group of its own for the scheduler, where there are such groups: it has to stand back too.
  setsid bash -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec chrt --idle 0 "$@"' - "$@" >"build/$name.log" 2>&1 &
  background[$name]=$!
}

output_of() { # output_of NAME: the exit status of that command, which no longer stands back
  local status=0
  no_longer_idle "${background[$1]}"
  wait "${background[$1]}" || status=$?
  unset "background[$1]"
  cat "build/$1.log"
  return "$status"
}

no_longer_idle() { # no_longer_idle SESSION: else whatever else the machine does could keep it waiting for ever
  local pid
  { echo 0 >"/proc/$1/autogroup"; } 2>/dev/null
  for _ in 1 2; do # what was started in the meantime, too
    for pid in $(ps -o pid= --sid "$1"); do chrt --all-tasks --other --pid 0 "$pid"; done 2>/dev/null
  done
}

stop_background() { # each is the leader of a session, and so of a process group
  local pid
  for pid in "${background[@]}"; do kill -- "-$pid"; done 2>/dev/null
}

finish() { # the exit status of everything
  printf '\n'
  printf '%s\n' "${times[@]}"
  if [ "${#failed[@]}" -gt 0 ]; then
    printf '\nfailed: %s\n' "$(IFS=,; echo "${failed[*]}")"
    exit 1
  fi
  printf '\nall checks passed in %s s\n' "$SECONDS"
}
