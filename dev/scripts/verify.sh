#!/usr/bin/env bash
# Fails when something that is derived from something else is out of date:
# generated files, go.mod files, and the versions that the workspace links.
set -euo pipefail
cd "$(dirname "$0")/../.."
dev/scripts/need.sh go cc

status=0
complain() {
  echo "$1" >&2
  status=1
}

readonly generated=(
  services/{ctl-api,runner-api,log-ingest}/internal/apigen
  services/internal/store/{ctldb,runnerdb,builderdb,logdb,shareddb}
  pkg/{ctlapi,runnerapi,logapi}
  sdk/typescript/src/api.gen.ts
)

echo "generated files"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/services" "$copy/pkg"
cp -r openapi "$copy/openapi"
cp services/sqlc.yaml "$copy/services/"
for dir in services/internal/store/migrations services/internal/store/queries; do
  if [ -d "$dir" ]; then
    mkdir -p "$copy/$dir"
    cp -r "$dir/." "$copy/$dir"
  fi
done
dev/scripts/tools.sh generate
(cd dev/tools && GOWORK=off go test ./bundle)
BERTH_GENERATE_ROOT=$copy dev/scripts/generate.sh >/dev/null

# Both ways: a file that differs, and one that nothing generates any more.
# doc.go files are the only ones written by hand in these directories.
list() { (cd "$1" && { find "${generated[@]}" -type f ! -name doc.go 2>/dev/null || true; } | LC_ALL=C sort); }
while read -r file; do
  if ! cmp -s "$copy/$file" "$file"; then complain "$file is not what \`make generate\` writes"; fi
done < <({ list "$copy"; list .; } | LC_ALL=C sort -u)

# Where packages come from is the machine's to say.
if grep -l '"resolved"' sdk/typescript/package-lock.json dev/openapi/lint/package-lock.json dev/oidc/package-lock.json web/package-lock.json; then
  complain "a package-lock.json names a registry: delete its \"resolved\" lines"
fi

# Executables and data do not belong here; generated code is the largest text.
echo "file sizes"
while read -r size file; do
  limit=1
  case $file in *.gen.go) limit=3 ;; esac
  [ "$size" -le $((limit * 1000000)) ] || complain "$file is larger than $limit MB"
done < <(git ls-files -z | xargs -0 stat -c '%s %n' 2>/dev/null)

echo "go.mod files"
for dir in pkg services runner runner/policy cli dev dev/collector dev/kube/k8s dev/kube/helm examples/shop/src/web; do
  if ! difference=$(cd "$dir" && GOWORK=off go mod tidy -diff 2>&1); then
    complain "$dir/go.mod is not tidy: cd $dir && GOWORK=off go mod tidy"
    head -n 10 <<<"$difference" >&2
  fi
done

# A workspace has one build list, so it may link newer modules than a release,
# which is built with GOWORK=off. Tests then test what nobody ships.
echo "linked versions"
linked() {
  go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}' "$1" |
    { grep -v '^github.com/berth-dev/' || true; } | LC_ALL=C sort -u
}
while read -r dir package; do
  if ! workspace=$(cd "$dir" && linked "$package") || ! alone=$(cd "$dir" && GOWORK=off linked "$package"); then
    complain "$dir: cannot list what $package links"
  elif [ "$workspace" != "$alone" ]; then
    complain "$dir ($package) links other versions in the workspace (<) than alone (>); \`go work sync\` evens them:"
    diff <(echo "$workspace") <(echo "$alone") | grep '^[<>]' >&2
  fi
done <<'EOF'
pkg ./cmd/berth-verify
services ./ctl-api
services ./runner-api
services ./builder
services ./log-ingest
runner ./cmd/runner
runner ./cmd/engine
cli ./cmd/berth
EOF

exit "$status"
