#!/usr/bin/env bash
# Makes the Debian packages of the build tree named by the first argument, unpacks them into a
# directory of their own, and uses what is there. Ends with 77 where the tools for it are missing, and if
# LibTorch is that of a Python package, whose folder is the second argument.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "$1")
packages=$build/packages root=$build/unpacked

fail() { echo "check_packages: $*" >&2; exit 1; }
expect() { grep -qE "$1" <<<"$2" || fail "expected '$1', got: $2"; }
[ -z "${2:-}" ] || { echo "check_packages: no Debian package has the LibTorch in $2"; exit 77; }
for tool in dpkg-deb dpkg-shlibdeps cpack; do
  command -v "$tool" >/dev/null || { echo "check_packages: $tool is missing"; exit 77; }
done

rm -rf "$packages" "$root"
cpack --config "$build/CPackConfig.cmake" >"$build/packages.log" 2>&1 || fail "$(cat "$build/packages.log")"
program=$(echo "$packages"/translution_*.deb) development=$(echo "$packages"/libtranslution-dev_*.deb)

echo "dependencies: those of the libraries that are linked, and the other package"
needs=$(dpkg-deb -f "$program" Depends)
for library in libtorch libc6 libgomp1 libstdc++6 libfmt zlib1g libpcre2 libopencv libjpeg62-turbo; do
  expect "(^|, )${library//+/\\+}" "$needs"
done
version=$(dpkg-deb -f "$program" Version)
expect "translution \\(= $version\\).*libtorch-dev" "$(dpkg-deb -f "$development" Depends)"

echo "contents: libraries for running in one, for linking in the other, nothing in both"
files=$(dpkg-deb -c "$program" | grep -v '^d' | awk '{ print $6 }' | sort)
others=$(dpkg-deb -c "$development" | grep -v '^d' | awk '{ print $6 }' | sort)
expect 'libtranslution\.so\.[0-9.]+$' "$files"
for path in 'libtranslution\.so$' 'libtranslution\.a$' 'TranslutionConfig\.cmake$' 'translution\.pc$'; do
  expect "$path" "$others"
done
[ -z "$(comm -12 <(echo "$files") <(echo "$others"))" ] || fail "both packages have the same file"
! grep -vE '^\./usr/' <<<"$files$others" || fail "files outside of /usr"

echo "unpacked: the program runs, and the examples find the library"
for package in "$program" "$development"; do dpkg-deb -x "$package" "$root"; done
expect "^translution $version " "$("$root/usr/bin/translution" --version)"
"$root/usr/bin/translution" info --model vit-a/12 --method translution --image-size 84 >/dev/null
cmake -S examples/cpp -B "$build/examples-unpacked" -G Ninja -DCMAKE_PREFIX_PATH="$root/usr" \
  >"$build/packages.log" 2>&1 || fail "$(cat "$build/packages.log")"
ls -1 "$packages"/*.deb
