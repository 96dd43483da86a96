#!/usr/bin/env bash
# Fails unless the first ```cpp block of README.md is examples/cpp/readme_example.cpp to the letter.
set -euo pipefail
cd "$(dirname "$0")/../.."

example=examples/cpp/readme_example.cpp
block=$(awk '/^```cpp$/ { inside = 1; next } inside && /^```$/ { exit } inside' README.md)
[ -n "$block" ] || { echo "README.md has no cpp block" >&2; exit 1; }
diff -u --label "$example" --label README.md "$example" - <<<"$block" || {
  echo "README.md and $example differ; copy one into the other" >&2
  exit 1
}
