#!/usr/bin/env bash
# Fails unless configs/ is what the program given as the first argument writes.
set -euo pipefail
cd "$(dirname "$0")/../.."

written=$(mktemp -d)
trap 'rm -rf "$written"' EXIT
"$1" configs "$written"
diff -ru configs "$written" || {
  echo "configs/ is not what the program writes; run: translution configs configs" >&2
  exit 1
}
