#!/bin/sh
# Installs Berth from a folder or a URL that has a release:
#
#	install.sh --from https://downloads.example.com/berth/1.4.0
#	install.sh --from ./1.4.0 --to ~/berth
#
#	--from DIR|URL   where release.json and the archives are
#	--to DIR         where to install: DIR/VERSION, and a link DIR/current
#	                 (default: /opt/berth as root, else ~/.local/share/berth-releases)
#	--version V      refuse any other version
#	--key FILE       public key in PEM to trust instead of the one in this script
#
# Nothing of a release is run or unpacked before its list is verified with the
# key, and the archive with the list. It needs OpenSSL 3, tar, gzip, sha256sum or
# shasum, and for URLs curl.
set -eu

public_key='@PUBLIC_KEY@'
payload_type=application/vnd.berth.release.v1+json

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

# get NAME copies a file of the release here.
get() {
  case $from in
  https://*) curl -fsSL --proto '=https' --proto-redir '=https' -o "$work/$1" "$from/$1" ;;
  http://127.0.0.1:* | http://localhost:*) curl -fsS -o "$work/$1" "$from/$1" ;;
  *://*) fail "$from: only https is safe" ;;
  *) cp "$from/$1" "$work/$1" ;;
  esac || fail "$from has no $1"
}

sha256() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

# verify_list checks the signature of release.json and writes what was signed to
# payload. The envelope must look exactly as Berth writes it, on one line.
verify_list() {
  [ "$(wc -l <"$work/release.json")" -eq 1 ] || fail "release.json is not a signed list"
  grep -Eq '^\{"payloadType":"'"$(echo "$payload_type" | sed 's/[.+]/\\&/g')"'","payload":"[A-Za-z0-9+/=]+","signatures":\[\{"keyid":"ed25519:[0-9a-f]{32}","sig":"[A-Za-z0-9+/=]+"\}\]\}$' \
    "$work/release.json" || fail "release.json is not a signed list"
  sed 's/.*"payload":"\([^"]*\)".*/\1/' "$work/release.json" | openssl base64 -d -A >"$work/payload"
  sed 's/.*"sig":"\([^"]*\)".*/\1/' "$work/release.json" | openssl base64 -d -A >"$work/signature"
  # What DSSE signs: the kind and the bytes, with their lengths.
  size=$(wc -c <"$work/payload" | tr -d ' ')
  { printf 'DSSEv1 %d %s %d ' "${#payload_type}" "$payload_type" "$size" && cat "$work/payload"; } >"$work/signed"
  openssl pkeyutl -verify -pubin -inkey "$work/key.pem" -rawin -in "$work/signed" -sigfile "$work/signature" >/dev/null 2>&1 ||
    fail "release.json is not signed with the key of this script: nothing was installed"
}

# listed NAME prints the SHA256 of a file in the verified list.
listed() {
  pattern=$(echo "$1" | sed 's/[.+]/\\&/g')
  tr '{' '\n' <"$work/payload" | sed -nE 's/^"name":"'"$pattern"'","sha256":"([0-9a-f]{64})","size":[0-9]+\}.*/\1/p'
}

# check_archive refuses what would be written elsewhere than into its folder, and
# everything but plain files and folders.
check_archive() {
  tar -tzf "$work/$archive" >"$work/names" || fail "$archive cannot be read"
  tar -tvzf "$work/$archive" >"$work/entries"
  if grep -Ev '^[-d]' "$work/entries" >/dev/null; then fail "$archive has links or devices in it"; fi
  # shellcheck disable=SC2310
  if grep -Ev "^$(echo "$folder" | sed 's/[.+]/\\&/g')/" "$work/names" >/dev/null || grep -E '(^|/)\.\.(/|$)|^/|[^A-Za-z0-9_./+ -]' "$work/names" >/dev/null; then
    fail "$archive has names that lead out of its folder"
  fi
}

platform() {
  case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) fail "there is no Berth for $(uname -s)" ;;
  esac
  case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "there is no Berth for $(uname -m)" ;;
  esac
  echo "${os}_$arch"
}

# In a function, so that half a script does nothing.
main() {
  from='' to='' want='' key=''
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "usage: install.sh --from DIR|URL [--to DIR] [--version V] [--key FILE]"
    case $1 in
    --from) from=${2%/} ;;
    --to) to=$2 ;;
    --version) want=$2 ;;
    --key) key=$2 ;;
    *) fail "usage: install.sh --from DIR|URL [--to DIR] [--version V] [--key FILE]" ;;
    esac
    shift 2
  done
  [ -n "$from" ] || fail "--from says where the release is, a folder or a URL"
  if [ -z "$to" ]; then
    if [ "$(id -u)" = 0 ]; then to=/opt/berth; else to=$HOME/.local/share/berth-releases; fi
  fi
  for program in openssl tar gzip; do
    command -v "$program" >/dev/null || fail "$program is needed"
  done
  platform=$(platform)
  mkdir -p "$to"
  work=$(mktemp -d "$to/.install-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  if [ -n "$key" ]; then cp "$key" "$work/key.pem"; else echo "$public_key" >"$work/key.pem"; fi
  get release.json
  verify_list
  version=$(sed -nE 's/.*,"version":"([A-Za-z0-9.+-]+)"\}$/\1/p' "$work/payload")
  [ -n "$version" ] || fail "the list has no version"
  [ -z "$want" ] || [ "$want" = "$version" ] || fail "this is version $version, not $want"

  folder=berth_${version}_$platform archive=$folder.tar.gz
  sum=$(listed "$archive")
  [ -n "$sum" ] || fail "the list has no $archive"
  get "$archive"
  [ "$(sha256 "$work/$archive")" = "$sum" ] || fail "$archive is not what was signed: nothing was installed"
  check_archive
  mkdir "$work/unpacked"
  tar -xzf "$work/$archive" -C "$work/unpacked" --no-same-owner
  rm -rf "${to:?}/$version"
  mv "$work/unpacked/$folder" "$to/$version"
  ln -sfn "$version" "$to/current"
  echo "Berth $version is in $to/current/bin"
}

main "$@"
