#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: Fortran arrays as views and back, with the Fortran compiler that is here.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
export QUERN_CACHE=off # not the one of who runs the tests
build="${QN_BUILD_DIR:-$root/build/release}"
fortran="${FC:-gfortran}"
c="${CC:-gcc}"

# skip REASON: ends the script.
skip() {
    echo "1..0 # SKIP $1"
    exit 0
}

# bail OUTPUT: what was compiled and why it failed.
bail() {
    echo "TAP version 13"
    echo "not ok 1 - $1"
    sed 's/^/# /' "$folder/log" | head -40
    echo "1..1"
    exit 1
}

command -v "$fortran" > /dev/null || skip "no $fortran"
command -v "$c" > /dev/null || skip "no $c"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo '#include <ISO_Fortran_binding.h>' |
    "$c" -x c -fsyntax-only - 2> /dev/null || skip "$c does not find ISO_Fortran_binding.h"

# The module is Fortran 2003; the test is 2018.
"$fortran" -std=f2003 -Wall -Wextra -Werror -J "$folder" -c "$root/include/quern_f.f90" \
    -o "$folder/quern_f.o" > "$folder/log" 2>&1 || bail "the module compiles"
"$fortran" -std=f2018 -Wall -J "$folder" -c "$root/tests/interop/arrays.f90" \
    -o "$folder/arrays.o" > "$folder/log" 2>&1 || bail "the Fortran half compiles"
"$c" -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I"$root" -I"$root/include" \
    -c "$root/tests/interop/test_fortran.c" -o "$folder/test.o" > "$folder/log" 2>&1 ||
    bail "the C half compiles"
"$fortran" "$folder/test.o" "$folder/arrays.o" "$folder/quern_f.o" -L"$build" -lquern \
    -Wl,-rpath,"$build" -o "$folder/test" > "$folder/log" 2>&1 || bail "the test links"
"$folder/test"
