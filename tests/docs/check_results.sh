#!/usr/bin/env bash
# Fails unless the tables of README.md and docs/reproducing.md, and the pictures beside them, are what
# the program given as the first argument makes of results/, every table has its place, commands plan what
# was measured, pages have the speeds of results/figures, and no figure was typed by hand.
set -euo pipefail
cd "$(dirname "$0")/../.."

"$1" results results README.md docs/reproducing.md --pictures docs/images/results --check
python3 tests/docs/check_commands.py "$1"
scripts/figures check

missing() {
  echo "$1" >&2
  exit 1
}
grep -q '^<!-- summary mnist -->$' README.md || missing "README.md has no place for results/mnist.json"
for file in results/*.json; do
  table=$(basename "$file" .json)
  grep -qx "<!-- results $table -->" docs/reproducing.md ||
    missing "docs/reproducing.md has no place for $file"
  [ ! -e "docs/images/results/$table.svg" ] || grep -q "(images/results/$table.svg)" docs/reproducing.md ||
    missing "docs/reproducing.md does not show docs/images/results/$table.svg"
done

# Figures have a decimal point, a percent sign or a unit; outside of generated tables and code there must be
# none. Sizes that are settings stand in code: `512M`.
units='[0-9] ?(ms|µs|ns|GFLOP/s|GB/s|[KMG]i?B)([^A-Za-z]|$)|[0-9] times as (fast|long)|[0-9] of SGEMM'
for file in README.md docs/*.md results/README.md; do
  case $file in
    README.md) pattern='[0-9]\.[0-9]|[0-9] ?(%|percent)|'$units ;;
    docs/reproducing.md | results/README.md) pattern='[0-9]\.[0-9]|[0-9] ?(%|percent)' ;;
    docs/performance.md | docs/kernels.md | docs/python.md | docs/training.md) pattern=$units ;;
    *) pattern='(accuracy|perplexity)[^.]*[0-9]\.[0-9]' ;;
  esac
  awk -v file="$file" -v pattern="$pattern" '
    /^<!-- (results|summary|figures:) / { inside = 1 }
    /^```/ { code = !code }
    { text = $0; gsub(/`[^`]*`/, "", text) }
    !inside && !code && text ~ pattern { print file ":" NR ": a figure that no results file has: " $0; bad = 1 }
    /^<!-- end of (results|figures) -->$/ { inside = 0 }
    END { exit bad }' "$file" >&2
done
