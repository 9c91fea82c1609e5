#!/bin/sh
# Keeps a greeting in a file of the install's directory: PLACE/COMPONENT.txt. Its
# state says which place that is.
# The contract: docs/reference/plugin-contract.md.
set -u
cd "$2" || exit 1

# end OUTCOME EXITCODE ERROR [NO_CHANGE]: leaves the result, last and by rename.
end() {
  printf '{"outcome":"%s","error":"%s","no_change":%s}' "$1" "$3" "${4:-false}" > out/result.new
  command -p mv out/result.new out/result.json
  exit "$2"
}
trap 'end cancelled 1 "stopped on request"' TERM
[ "$1" = run ] && [ "$BERTH_CONTRACT" = 1 ] && grep -q '"version":1,' job.json || {
  command -v grep mv > /dev/null || end failed 1 "grep and mv are needed and not on PATH"
  end refused 10 "this plugin knows version 1 of the contract"
}
cd "$BERTH_INSTALL_DIR" || end failed 1 "there is no install directory"
was=$(cat "$BERTH_STATE_DIR/place" 2> /dev/null) # where the greeting stands now
now=$(cat "$was/$BERTH_COMPONENT_NAME.txt" 2> /dev/null)
cd "$2" || exit 1

plan() {
  text=$(cat in/config/text) place=$(cat in/config/place) action=none
  [ -s in/config/token ] || end failed 1 "token is missing: give the component a token"
  if [ "$BERTH_DESTROY" = true ]; then
    [ -z "$was$now" ] || action=delete
  elif [ -z "$was" ]; then action=create
  elif [ "$was" != "$place" ]; then action=replace
  elif [ "$now" != "$text" ]; then action=update
  fi
  json=$(printf %s "$text" | sed 's/[\\"]/\\&/g' | tr -d '\n')
  printf '{"action":"%s","place":"%s","text":"%s"}' "$action" "$place" "$json" > out/plan.canonical.json
  [ $action = none ] && echo '{"no_change":true}' > out/plan.summary.json && end succeeded 0 "" true
  mkdir -p out/pinned && cp in/config/text in/config/place in/config/token out/pinned/ && echo $action > out/pinned/action
  printf '{"objects":[{"address":"greeting %s","action":"%s","fields":[{"path":"text","after":"%s"}]}]}' \
    "$BERTH_COMPONENT_NAME" $action "$json" > out/plan.summary.json
  end succeeded 0 ""
}

apply() {
  for f in action text place token; do [ -s in/pinned/$f ] || end refused 10 "what the plan pinned is damaged"; done
  place=$(cat in/pinned/place) to=$BERTH_INSTALL_DIR
  [ -z "$was" ] || [ "$was" = "$place" ] && [ "$BERTH_DESTROY" = false ] || rm -f "$to/$was/$BERTH_COMPONENT_NAME".*
  [ "$BERTH_DESTROY" = false ] || { rm -f "$to/$place/$BERTH_COMPONENT_NAME".* "$BERTH_STATE_DIR/place"; end succeeded 0 ""; }
  mkdir -p "$to/$place" && cp in/pinned/text "$to/$place/$BERTH_COMPONENT_NAME.new" &&
    mv "$to/$place/$BERTH_COMPONENT_NAME.new" "$to/$place/$BERTH_COMPONENT_NAME.txt" &&
    echo "$place" > "$BERTH_STATE_DIR/.place" && mv "$BERTH_STATE_DIR/.place" "$BERTH_STATE_DIR/place" ||
    end failed 1 "the greeting cannot be written"
  printf '{"receipt":{"value":"%s","sensitive":true}}' "$(cat in/pinned/token)" > out/outputs.json
  echo "greeting written to $place" # the log
  end succeeded 0 ""
}
"$BERTH_OPERATION"
