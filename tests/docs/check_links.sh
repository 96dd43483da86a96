#!/usr/bin/env bash
# Fails unless all files and headings that README.md, CONTRIBUTING.md and docs/ link to exist, and mkdocs.yml
# lists exactly the pages of docs/.
set -euo pipefail
cd "$(dirname "$0")/../.."
failed=0
complain() { echo "$1" >&2; failed=1; }

# Anchors of a page's headings: lower case, hyphens for blanks, no punctuation.
anchors() {
  sed '/^```/,/^```/d' "$1" |
    LC_ALL=C.UTF-8 sed -nE '/^#+ /{ s/^#+ +//; s/[^[:alnum:]_ -]//g; s/ /-/g; s/.*/\L&/; p }'
}

for page in README.md CONTRIBUTING.md docs/*.md; do
  folder=$(dirname "$page")
  links=$(sed '/^```/,/^```/d' "$page" | grep -oE '\]\([^) ]+\)|(src|href)="[^"]+"' |
    sed -E 's/^\]\(|\)$//g; s/^(src|href)="//; s/"$//' | sort -u) || true
  for link in $links; do
    case $link in http://* | https://*) continue ;; esac
    target=${link%%#*} anchor=""
    [[ $link == *#* ]] && anchor=${link#*#}
    path=$page
    [ -z "$target" ] || path=$folder/$target
    if [ ! -e "$path" ]; then
      complain "$page links to $link, which is not there"
    elif [ -n "$anchor" ] && ! anchors "$path" | grep -qxF "$anchor"; then
      complain "$page links to $link; $path has no such heading"
    fi
  done
done

listed=$(grep -oE '[A-Za-z_-]+\.md$' mkdocs.yml | sort)
there=$(cd docs && ls ./*.md | sed 's|^\./||' | sort)
difference=$(diff <(echo "$listed") <(echo "$there")) ||
  complain "mkdocs.yml (<) and docs/ (>) differ: $(tr '\n' ' ' <<<"$difference")"
exit "$failed"
