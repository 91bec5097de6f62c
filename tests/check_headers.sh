#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: quern.h compiles alone, pedantically, as every language it promises.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}"
n=0
failed=0

# compiles COMPILER LANGUAGE STANDARD
compiles() {
    n=$((n + 1))
    if ! command -v "$1" > /dev/null; then
        echo "ok $n # SKIP no $1"
        return
    fi
    local log
    if log=$(printf '#include "quern.h"\nint quern_header_is_complete;\n' |
        "$1" -x "$2" -std="$3" -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror \
            -I"$root/include" - 2>&1); then
        echo "ok $n - quern.h with $1 as $3"
    else
        echo "not ok $n - quern.h with $1 as $3"
        echo "$log" | head -20 | sed 's/^/# /'
        failed=1
    fi
}

echo "TAP version 13"
for standard in c99 c11 c17; do
    compiles gcc c $standard
    compiles clang-19 c $standard
done
for standard in c++17 c++20; do
    compiles g++ c++ $standard
    compiles clang++-19 c++ $standard
done
echo "1..$n"
exit $failed
