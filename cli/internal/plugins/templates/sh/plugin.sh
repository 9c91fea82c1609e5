#!/bin/sh
# Keeps a record in the plugin's state: the files name and text. `plugin.sh run DIR` is one
# job, a plan or an apply; DIR has what it needs and takes what it leaves.
set -u
cd "$2" || exit 1

# end OUTCOME EXITCODE ERROR [NO_CHANGE]: leaves the result, last and by rename.
end() {
  printf '{"outcome":"%s","error":"%s","no_change":%s}' "$1" "$3" "${4:-false}" > out/result.new
  command -p mv out/result.new out/result.json
  exit "$2"
}
trap 'end cancelled 1 "stopped on request"' TERM
command -v cat cp grep mkdir mv rm sed tr > /dev/null || end failed 1 "cat, cp, grep, mkdir, mv, rm, sed and tr are needed and not on PATH"
[ "$1" = run ] && [ "$BERTH_CONTRACT" = 1 ] && grep -q '"version":1,' job.json || end refused 10 "this plugin knows version 1 of the contract"
name_now=$(cat "$BERTH_STATE_DIR/name" 2> /dev/null)
text_now=$(cat "$BERTH_STATE_DIR/text" 2> /dev/null)

# plan compares the record with the one that is there, and pins what its apply is to do.
plan() {
  [ -s in/config/token ] || end failed 1 "token is missing: give the component a token"
  name=$(cat in/config/name) text=$(cat in/config/text) action=none
  if [ "$BERTH_DESTROY" = true ]; then
    [ -z "$name_now$text_now" ] || action=delete
  elif [ -z "$name_now" ]; then action=create
  elif [ "$name_now" != "$name" ]; then action=replace
  elif [ "$text_now" != "$text" ]; then action=update
  fi
  json=$(printf %s "$text" | sed 's/[\\"]/\\&/g' | tr -d '\n')
  printf '{"action":"%s","name":"%s","text":"%s"}' $action "$name" "$json" > out/plan.canonical.json
  [ $action = none ] && echo '{"no_change":true}' > out/plan.summary.json && end succeeded 0 "" true
  mkdir -p out/pinned && cp in/config/name in/config/text in/config/token out/pinned/
  printf '{"objects":[{"address":"record %s","action":"%s","fields":[{"path":"text","after":"%s"}]}]}' "$name" $action "$json" > out/plan.summary.json
  end succeeded 0 ""
}

# apply does what the plan pinned, and nothing else. It may be repeated.
apply() {
  for f in name text token; do [ -s in/pinned/$f ] || end refused 10 "what the plan pinned is damaged"; done
  if [ "$BERTH_DESTROY" = true ]; then
    rm -f "$BERTH_STATE_DIR/name" "$BERTH_STATE_DIR/text"
    end succeeded 0 ""
  fi
  for f in text name; do
    cp in/pinned/$f "$BERTH_STATE_DIR/.$f" && mv "$BERTH_STATE_DIR/.$f" "$BERTH_STATE_DIR/$f" || end failed 1 "the record cannot be written"
  done
  printf '{"receipt":{"value":"%s","sensitive":true}}' "$(cat in/pinned/token)" > out/outputs.json
  echo "record written" # the log
  end succeeded 0 ""
}
"$BERTH_OPERATION"
