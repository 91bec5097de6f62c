#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the public headers compile alone, pedantically, as every language they promise.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
n=0
failed=0

# compiles COMPILER LANGUAGE STANDARD HEADER
compiles() {
    n=$((n + 1))
    if ! command -v "$1" > /dev/null; then
        echo "ok $n # SKIP no $1"
        return
    fi
    local log
    if log=$(printf '#include "%s"\nint quern_header_is_complete;\n' "$4" |
        "$1" -x "$2" -std="$3" -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror \
            -I"$root/include" - 2>&1); then
        echo "ok $n - $4 with $1 as $3"
    else
        echo "not ok $n - $4 with $1 as $3"
        echo "$log" | head -20 | sed 's/^/# /'
        failed=1
    fi
}

echo "TAP version 13"
for header in quern.h quern/record.h quern/layout.h quern/view.h quern/builder.h quern/bytes.h quern/dlpack.h quern/cuda.h quern/cache.h quern/object.h quern/tune.h; do
    for standard in c99 c11 c17; do
        compiles gcc c $standard $header
        compiles clang-19 c $standard $header
    done
    for standard in c++17 c++20; do
        compiles g++ c++ $standard $header
        compiles clang++-19 c++ $standard $header
    done
done
for header in quern.hpp quern/view.hpp quern/function.hpp quern/value.hpp quern/builder.hpp quern/mdspan.hpp; do
    for standard in c++17 c++20; do
        compiles g++ c++ $standard $header
        compiles clang++-19 c++ $standard $header
    done
done
# Needs the header of the Fortran compiler, which belongs to gcc.
if echo '#include <ISO_Fortran_binding.h>' | gcc -x c -fsyntax-only - 2> /dev/null; then
    compiles gcc c c99 quern/fortran.h
    compiles gcc c c11 quern/fortran.h
    compiles g++ c++ c++17 quern/fortran.h
else
    n=$((n + 1))
    echo "ok $n # SKIP gcc does not find ISO_Fortran_binding.h"
fi
echo "1..$n"
exit $failed
