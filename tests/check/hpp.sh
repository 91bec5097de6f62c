#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: quern.hpp as C++17, 20 and 23, with each compiler that is here; the last also with libc++, which has <mdspan>. Where that
# is missing, the mdspan of the tests takes the place of that of Kokkos, which is known by its macro.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
export QUERN_CACHE=off # not the one of who runs the tests
build="${QN_BUILD_DIR:-$root/build/release}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
n=0
failed=0

# runs COMPILER FLAGS...: compiles and runs the test.
runs() {
    n=$((n + 1))
    if ! command -v "$1" > /dev/null || ! printf '#include <array>\nint main() {}\n' |
        "$@" -x c++ - -o "$folder/empty" 2> /dev/null; then
        echo "ok $n # SKIP no $*"
        n=$((n + 1))
        echo "ok $n # SKIP no $*"
        return
    fi
    program "$root/tests/interop/test_hpp.cpp" "$@"
    n=$((n + 1))
    program "$root/tests/interop/test_hpp_parity.cpp" "$@"
}

# program SOURCE COMPILER FLAGS...: test point n.
program() {
    local source="$1"
    shift
    if "$@" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -ffp-contract=off -I"$root" -I"$root/include" "$source" \
        -L"$build" -lquern -Wl,-rpath,"$build" -o "$folder/test" > "$folder/log" 2>&1 &&
        "$folder/test" > "$folder/log" 2>&1; then
        echo "ok $n - $(basename "$source"): $* ($(grep -c '^ok' "$folder/log") checks)"
    else
        echo "not ok $n - $(basename "$source"): $*"
        grep -v '^ok' "$folder/log" | head -30 | sed 's/^/# /'
        failed=1
    fi
}

# compiles WHAT SOURCE: whether g++ takes statements in a kernel with the arrays x and y and the index i.
compiles() {
    printf '#include "quern.hpp"\nvoid f(quern::array x, quern::array y, quern::value i);\nvoid f(quern::array x, quern::array y, quern::value i) { %s }\n' "$1" |
        g++ -std=c++17 -I"$root/include" -fsyntax-only -x c++ - > "$folder/log" 2>&1
}

# element EXPECTED STATEMENTS: they compile (yes) or are refused by a deleted function (no).
element() {
    local found=no
    n=$((n + 1))
    if ! command -v g++ > /dev/null; then
        echo "ok $n # SKIP no g++"
        return
    fi
    compiles "$2" && found=yes
    if [ $found = "$1" ] && { [ $found = yes ] || grep -q 'use of deleted function' "$folder/log"; }; then
        echo "ok $n - $([ "$1" = yes ] && echo compiles || echo "is refused"): $2"
    else
        echo "not ok $n - $2"
        head -20 "$folder/log" | sed 's/^/# /'
        failed=1
    fi
}

# refuses HEADER COMPILER FLAGS...: before C++17 there is one error, which says so.
refuses() {
    local header=$1
    shift
    n=$((n + 1))
    if ! command -v "$1" > /dev/null; then
        echo "ok $n # SKIP no $*"
        return
    fi
    printf '#include "%s"\nint main() {}\n' "$header" |
        "$@" -I"$root/include" -fsyntax-only -x c++ - > "$folder/log" 2>&1
    if [ "$(grep -cE '(error|warning|note): ' "$folder/log")" = 1 ] &&
        grep -q 'error: .*quern.hpp needs C++17' "$folder/log"; then
        echo "ok $n - $* refuses $header in one line"
    else
        echo "not ok $n - $* refuses $header in one line"
        head -30 "$folder/log" | sed 's/^/# /'
        failed=1
    fi
}

echo "TAP version 13"
runs g++ -std=c++17
runs g++ -std=c++20
runs clang++-19 -std=c++17
runs clang++-19 -std=c++23 -stdlib=libc++
runs g++ -std=c++17 -DMDSPAN_IMPL_STANDARD_NAMESPACE=tiny -include tests/interop/mdspan.hpp "-I$root"
# A swap is right, or does not compile.
element yes "quern::value t = x(i); x(i) = y(i); y(i) = t;"
element no "auto t = x(i); x(i) = y(i); y(i) = t;"
element no "auto &&t = x(i); x(i) = y(i); y(i) = t;"
element no "const auto &t = x(i); x(i) = y(i); y(i) = t;"
element no "auto t = x(i); auto u = t;"
refuses quern.hpp g++ -std=c++14
refuses quern/view.hpp g++ -std=c++11
refuses quern/builder.hpp g++ -std=c++14
refuses quern.hpp clang++-19 -std=c++14
echo "1..$n"
exit $failed
