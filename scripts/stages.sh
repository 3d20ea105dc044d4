# Stages of checks, to be sourced: each prints how long it took and whether it was fine; the last line says what failed.
bin=.venv/bin
failed=()
times=()

stage() { # stage NAME COMMAND...: runs it, remembers a failure, goes on
  local name=$1 start=$SECONDS word=fine
  shift
  printf '\n== %s\n' "$name"
  "$@" || { failed+=("$name"); word=FAILED; }
  times+=("$(printf '%5d s  %s' "$((SECONDS - start))" "$name")")
  printf '== %s: %s (%s s)\n' "$name" "$word" "$((SECONDS - start))"
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
