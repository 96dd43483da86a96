#!/usr/bin/env bash
# check_results.sh PROGRAM fails unless
#  - the tables and pictures of README.md and docs/reproducing.md match results/,
#  - every file of results/ has a table in docs/reproducing.md,
#  - the commands of results/ plan the trainings that were measured,
#  - the pages show the speeds of results/figures,
#  - no figure was typed by hand.
set -euo pipefail
cd "$(dirname "$0")/../.."

"$1" results results README.md docs/reproducing.md --pictures docs/images/results --check
python3 tests/docs/check_commands.py "$1"
scripts/figures check

missing() {
  echo "$1" >&2
  exit 1
}
grep -q '^<!-- summary mnist -->$' README.md || missing "README.md does not show results/mnist.json"
for file in results/*.json; do
  table=$(basename "$file" .json)
  grep -qx "<!-- results $table -->" docs/reproducing.md ||
    missing "docs/reproducing.md does not show $file"
  [ ! -e "docs/images/results/$table.svg" ] || grep -q "(images/results/$table.svg)" docs/reproducing.md ||
    missing "docs/reproducing.md does not show docs/images/results/$table.svg"
done

# A figure has a decimal point, a percent sign or a unit. Only generated tables, links and code may contain figures;
# sizes that are options are written as code: `512M`.
units='[0-9] ?(ms|µs|ns|GFLOP/s|GB/s|[KMG]i?B)([^A-Za-z]|$)|[0-9] times as (fast|long)|[0-9] of SGEMM'
for file in README.md docs/*.md results/README.md; do
  case $file in
    README.md) pattern='[0-9]\.[0-9]|[0-9] ?(%|percent)|'$units ;;
    docs/reproducing.md | results/README.md) pattern='[0-9]\.[0-9]|[0-9] ?(%|percent)' ;;
    docs/performance.md | docs/kernels.md | docs/python.md | docs/training.md) pattern=$units ;;
    *) pattern='(accuracy|perplexity)[^.]*[0-9]\.[0-9]' ;;
  esac
  awk -v file="$file" -v pattern="$pattern" '
    /^<!-- (results|summary|compare|figures:) / { inside = 1 }
    /^```/ { code = !code }
    { text = $0; gsub(/`[^`]*`|\]\([^)]*\)/, "", text) }
    !inside && !code && text ~ pattern { print file ":" NR ": a figure that no results file has: " $0; bad = 1 }
    /^<!-- end of (results|figures) -->$/ { inside = 0 }
    END { exit bad }' "$file" >&2
done
