#!/usr/bin/env bash
# Makes an image of this machine's Postgres for development, and pushes it.
# Prints the image's name with its digest. Usage: postgres-image.sh NAME:TAG [docker]
# docker: the local Docker makes it, and it is not pushed.
#
# The container makes a database folder at PGDATA the first time, with the
# password of PASSWORD_FILE for the administrator postgres, and serves it on 5432.
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly name=$1 root=$PWD/.bin/postgres-image

dev/scripts/need.sh postgres
mkdir -p .bin/tools
CGO_ENABLED=0 go build -o .bin/tools/find-postgres ./pkg/localpg/find-postgres
bin=$(.bin/tools/find-postgres)
share=$("$bin/pg_config" --sharedir 2>/dev/null || true)
[ -d "$share" ] || share=/usr/share/postgresql/$(basename "$(dirname "$bin")")
lib=$(dirname "$bin")/lib

rm -rf "$root"
mkdir -p "$root"/{etc,bin,tmp,dev/shm}
# copy puts files where they are here, links as what they lead to.
copy() {
  local file
  for file in "$@"; do
    mkdir -p "$root$(dirname "$file")"
    cp -rL --no-preserve=ownership "$file" "$root$file"
  done
}
copy "$bin"/{initdb,postgres,pg_isready} "$share" /bin/dash /bin/cat /usr/share/zoneinfo
mkdir -p "$root$lib"
find "$lib" -maxdepth 1 -name '*.so' ! -name 'llvmjit*' -exec cp -t "$root$lib" {} +
ln -sf dash "$root/bin/sh"
find "$root" -type f \( -name '*.so' -o -perm -u+x \) -exec ldd {} + 2>/dev/null | grep -oE '/[^ ]+\.so[^ ]*' | sort -u |
  while read -r library; do [ -e "$root$library" ] || [ ! -e "$library" ] || copy "$library"; done
echo 'postgres:x:65532:65532::/tmp:/bin/sh' >"$root/etc/passwd"
echo 'postgres:x:65532:' >"$root/etc/group"
cat >"$root/bin/serve" <<END
#!/bin/sh
set -eu
export PATH=$bin:/bin
if [ ! -s "\$PGDATA/PG_VERSION" ]; then
  initdb -D "\$PGDATA" -U postgres -A scram-sha-256 --pwfile="\$PASSWORD_FILE" -E UTF8 --locale=C
  echo 'host all all all scram-sha-256' >>"\$PGDATA/pg_hba.conf"
fi
exec postgres -D "\$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp -c max_connections=300
END
# pg_isready of probes is called by its name alone.
ln -sf "$bin/pg_isready" "$root/bin/pg_isready"
chmod 755 "$root/bin/serve"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$root" -cf "$root.tar" .
rm -rf "$root"
if [ "${2:-}" = docker ]; then
  command -v docker >/dev/null || {
    echo "no registry was found for this cluster, and there is no Docker: set BERTH_DEV_REGISTRY to a registry that the nodes pull from" >&2
    exit 1
  }
  docker import --change 'ENTRYPOINT ["/bin/serve"]' --change 'USER 65532:65532' "$root.tar" "$name"
else
  .bin/kube/mkimage --base "$root.tar" --entry /bin/serve "$name"
fi
