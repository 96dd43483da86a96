#!/usr/bin/env bash
# Fails unless the tables of README.md and docs/reproducing.md, and the pictures beside them, are what
# the program given as the first argument makes of results/, every table has its place, and no figure was
# typed by hand.
set -euo pipefail
cd "$(dirname "$0")/../.."

"$1" results results README.md docs/reproducing.md --pictures docs/images/results --check
for file in results/*.json; do
  [ -e "$file" ] || continue
  grep -qx "<!-- results $(basename "$file" .json) -->" docs/reproducing.md || {
    echo "docs/reproducing.md has no place for $file" >&2
    exit 1
  }
done
# Figures have a decimal point; outside of generated tables and code there must be none.
typed=$(awk '/^<!-- (results|summary) / { inside = 1 }
             /^```/ { code = !code }
             !inside && !code && /[0-9]\.[0-9]/ { print "docs/reproducing.md:" NR ": " $0 }
             /^<!-- end of results -->$/ { inside = 0 }' docs/reproducing.md)
[ -z "$typed" ] || {
  echo "figures that no results file has:" >&2
  echo "$typed" >&2
  exit 1
}
