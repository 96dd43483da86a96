#!/usr/bin/env bash
# Installs the build tree named by the first argument into a directory inside of it, and uses what is
# there: the program, find_package from the examples, pkg-config.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "$1")
stage=$build/stage

fail() { echo "check_install: $*" >&2; exit 1; }
expect() { grep -qE "$1" <<<"$2" || fail "expected '$1', got: $2"; }

rm -rf "$stage"
cmake --install "$build" --prefix "$stage" >"$build/install.log" || fail "$(cat "$build/install.log")"
lib=$(dirname "$(find "$stage" -name libtranslution.so)")

echo "headers: those of the list, which include each other, LibTorch and the standard library alone"
listed=$(sed -n 's/^  \(translution\/.*\.h\)$/\1/p' cmake/PublicHeaders.cmake | sort)
installed=$(cd "$stage/include" && find translution -name '*.h' | sort)
[ "$listed" = "$installed" ] || fail "other headers than listed: $(diff <(echo "$listed") <(echo "$installed"))"
for header in $listed; do
  grep -q "\`$header\`" docs/api.md || fail "docs/api.md does not name $header"
done
others=$(grep -rnE '^#include <[^>]*[/.][^>]*>' "$stage/include" | grep -vE '<(torch|ATen|c10)/' || true)
[ -z "$others" ] || fail "a public header includes another library's: $others"
for include in $(grep -rhoE '^#include "translution/[^"]+' "$stage/include" | cut -d'"' -f2 | sort -u); do
  [ -f "$stage/include/$include" ] || fail "$include is included, but not installed"
done

echo "symbols: names of translution alone, and nothing internal"
for name in translution translution_train; do
  symbols=$(nm -DC --defined-only "$lib/lib$name.so" | cut -d' ' -f3-)
  bad=$(grep -vE '^((typeinfo|typeinfo name|vtable) for )?translution::' <<<"$symbols" || true)
  [ -z "$bad" ] || fail "lib$name.so exports $(head -3 <<<"$bad")"
  bad=$(grep -E 'translution::(kernels|detail|\(anonymous)' <<<"$symbols" || true)
  [ -z "$bad" ] || fail "lib$name.so exports internals: $(head -3 <<<"$bad")"
  echo "lib$name.so: $(wc -l <<<"$symbols") symbols"
done

echo "libraries: shared with a version, and an archive"
version=$("$stage/bin/translution" --version | sed -n '1s/translution \([^ ]*\) .*/\1/p')
for name in translution translution_train; do
  expect "SONAME +lib$name.so.${version%.*}\$" "$(objdump -p "$lib/lib$name.so")"
  [ -f "$lib/lib$name.so.$version" ] || fail "lib$name.so.$version is missing"
done
ar t "$lib/libtranslution.a" | grep -q gemm.cpp.o || fail "the archive has no kernels"

echo "program: takes its libraries from beside it, and brings manual and completions"
loaded=$(ldd "$stage/bin/translution" | awk '/libtranslution/ { print $3 }')
for path in $loaded; do
  [[ $(realpath "$path") == "$stage"/* ]] || fail "the program loads $path"
done
manual=$(zcat "$stage/share/man/man1/translution.1.gz")
for command in $("$stage/bin/translution" --help | awk '/^Options:/ { exit } /^  [a-z]/ { print $1 }'); do
  expect "^\\.SS \"translution $command" "$manual"
done
bash -n "$stage/share/bash-completion/completions/translution"
expect "^#compdef translution" "$(cat "$stage/share/zsh/site-functions/_translution")"

echo "find_package: the examples, with the shared library and the archive"
launcher=$(command -v ccache || true)
cmake -S examples/cpp -B "$build/examples" -G Ninja -DCMAKE_PREFIX_PATH="$stage" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" >"$build/examples.log" || fail "$(cat "$build/examples.log")"
cmake --build "$build/examples" >"$build/examples.log" || fail "$(cat "$build/examples.log")"
expect '^\[2, 50, 192\]  query \[172, 192, 192\]$' "$("$build/examples/readme_example")"
for name in only_the_op only_the_op_static; do
  expect '^63 offsets; the scores of a token add up to 1\.000; .* [0-9.]+$' "$("$build/examples/$name")"
done
! ldd "$build/examples/only_the_op_static" | grep -q libtranslution || fail "the archive was not used"
trained=$("$build/examples/train_tiny")
expect '^[0-9.]+ % of 500 unseen digits recognised$' "$trained"
[ "${trained%%.*}" -ge 70 ] || fail "train_tiny learned nothing: $trained"

echo "train, kill, resume, predict: a program outside the tree ends with the weights of one undisturbed"
runs=$build/consumer
rm -rf "$runs"
mkdir "$runs"
export OMP_WAIT_POLICY=passive
"$build/examples/train_and_resume" "$runs/whole" >"$runs/whole.log" || fail "$(cat "$runs/whole.log")"
"$build/examples/train_and_resume" "$runs/killed" >"$runs/killed.log" &
consumer=$!
until [ -e "$runs/killed/checkpoints/last" ] || ! kill -0 $consumer 2>/dev/null; do sleep 0.05; done
kill -KILL $consumer 2>/dev/null || fail "it ended before it could be killed"
wait $consumer 2>/dev/null || true
resumed=$("$build/examples/train_and_resume" "$runs/killed") || fail "$resumed"
expect '^starts after step [1-9]' "$resumed"
cmp "$runs/whole/checkpoints/last/model.safetensors" "$runs/killed/checkpoints/last/model.safetensors" ||
  fail "other weights after a kill"
[ -s "$runs/killed/report.html" ] || fail "no report"
/usr/bin/python3 - "$runs/one.png" <<'PY'
import struct, sys, zlib
side = 84
row = lambda y: b"\0" + bytes(255 if 20 <= y < 64 and 40 <= x < 44 else 0 for x in range(side))
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
open(sys.argv[1], "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
                              + chunk(b"IDAT", zlib.compress(b"".join(map(row, range(side))))) + chunk(b"IEND", b""))
PY
expect '^[0-9]  [0-9.]+ %$' "$("$build/examples/predict" "$runs/killed" "$runs/one.png")"
refused=$("$build/examples/predict" "$runs/none" "$runs/one.png" 2>&1) && fail "no run was taken for one"
expect "$runs/none" "$refused"

echo "find_package: another LibTorch is refused by name"
refused=$(cmake -S examples/cpp -B "$build/refused" -G Ninja -DCMAKE_PREFIX_PATH="$stage" \
  -DCMAKE_PROJECT_INCLUDE="$PWD/tests/install/other_torch.cmake" 2>&1) && fail "it was taken"
expect 'was built with LibTorch [0-9.]+, found was' "$(tr -s ' \n' '  ' <<<"$refused")"

command -v pkg-config >/dev/null || { echo "pkg-config: not here, left out"; exit 0; }
echo "pkg-config: compiles and links"
export PKG_CONFIG_PATH=$lib/pkgconfig
cat >"$build/by_pkg_config.cpp" <<'CPP'
#include "translution/ops/methods.h"
int main() { return translution::find_pairs({"3x3 cls"})->slot_count() == 28 ? 0 : 1; }
CPP
# shellcheck disable=SC2046
c++ "$build/by_pkg_config.cpp" -o "$build/by_pkg_config" $(pkg-config --cflags --libs translution)
LD_LIBRARY_PATH=$lib "$build/by_pkg_config" || fail "the program built by pkg-config failed"
