#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: quern.hpp as C++17, 20 and 23, with each compiler that is here; the last also with libc++, which has <mdspan>.
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
        return
    fi
    if "$@" -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -ffp-contract=off -I"$root" \
        -I"$root/include" "$root/tests/interop/test_hpp.cpp" -L"$build" -lquern \
        -Wl,-rpath,"$build" -o "$folder/test" > "$folder/log" 2>&1 &&
        "$folder/test" > "$folder/log" 2>&1; then
        echo "ok $n - $* ($(grep -c '^ok' "$folder/log") checks)"
    else
        echo "not ok $n - $*"
        grep -v '^ok' "$folder/log" | head -30 | sed 's/^/# /'
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
refuses quern.hpp g++ -std=c++14
refuses quern/view.hpp g++ -std=c++11
refuses quern/builder.hpp g++ -std=c++14
refuses quern.hpp clang++-19 -std=c++14
echo "1..$n"
exit $failed
