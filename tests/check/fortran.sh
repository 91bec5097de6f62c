#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: Fortran arrays as views and back, kernels that are built and launched in Fortran, and the program of docs/fortran.md, with
# each Fortran compiler that is here and the C compiler that knows its descriptors. FC and CC name one pair.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
export QUERN_CACHE=off # not the one of who runs the tests
export QUERN_NUM_THREADS="${QUERN_NUM_THREADS:-2}"
build="${QN_BUILD_DIR:-$root/build/release}"
include="$root/include"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
n=0
failed=0

# result STATUS WHAT: one test point; shows the log of a failure.
result() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $name: $2"
    else
        echo "not ok $n - $name: $2"
        sed 's/^/# /' "$folder/log" | head -40
        failed=1
    fi
}

# passes WHAT COMMAND...
passes() {
    local what="$1"
    shift
    "$@" > "$folder/log" 2>&1
    result $? "$what"
}

# skip COUNT REASON
skip() {
    local i
    for ((i = 0; i < $1; i++)); do
        n=$((n + 1))
        echo "ok $n # SKIP $2"
    done
}

# runs WHAT PROGRAM: its own test points are lines "ok" and "not ok".
runs() {
    "$2" >> "$folder/log" 2>&1 # behind what compiling it said
    local status=$?
    grep -q '^1\.\.' "$folder/log" && ! grep -q '^not ok' "$folder/log" || status=1
    result $status "$1 ($(grep -c '^ok' "$folder/log") checks)"
}

# stops: a failure without stat ends the program, with its message.
stops() {
    ! "$folder/kernels" stop > "$folder/stop" 2>&1 && cat "$folder/stop" &&
        grep -q 'the kernel is not finished' "$folder/stop" && ! grep -q 'not reached' "$folder/stop"
}

# page: the program of docs/fortran.md prints what stands below it.
page() {
    local text
    text=$(awk '/^```$/ { inside = !inside; next } inside && !/```/ { print }' <(sed -n '/^It prints$/,/^## /p' "$root/docs/fortran.md"))
    "$folder/page" | diff - <(echo "$text") && [ -n "$text" ]
}

# tests NAME FORTRAN C FLAGS...: all of them; FLAGS are those of the Fortran compiler.
tests() {
    name="$1"
    local fortran="$2" c="$3" file
    shift 3
    if ! command -v "$fortran" > /dev/null || ! command -v "$c" > /dev/null; then
        skip 8 "no $fortran and $c"
        return
    elif ! echo '#include <ISO_Fortran_binding.h>' | "$c" -x c -fsyntax-only - 2> /dev/null; then
        skip 8 "$c does not find ISO_Fortran_binding.h"
        return
    fi
    local strict=(-std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I"$root" -I"$include")
    local libraries=(-L"$build" -lquern -Wl,-rpath,"$build")
    rm -f "$folder"/*
    cd "$folder" || exit 1
    # The first module is Fortran 2003, the others are 2018.
    passes "the modules compile" bash -e -c '
        fortran=$0 include=$1
        shift
        "$fortran" ${QN_F2003:--std=f2018} "$@" -c "$include/quern_f.f90" -o quern_f.o
        "$fortran" -std=f2018 "$@" -c "$include/quern_values.f90" -o quern_values.o
        "$fortran" -std=f2018 "$@" -c "$include/quern_kernels.f90" -o quern_kernels.o' "$fortran" "$include" "$@"
    passes "the C file compiles" "$c" "${strict[@]}" -c "$include/quern_f.c" -o quern_f_c.o
    passes "views: the Fortran half compiles" "$fortran" -std=f2018 ${1:+-Wall} -c "$root/tests/interop/arrays.f90" -o arrays.o
    passes "views: the C half compiles" "$c" "${strict[@]}" -c "$root/tests/interop/test_fortran.c" -o test.o
    "$fortran" test.o arrays.o quern_f.o "${libraries[@]}" -o views > log 2>&1
    runs "views of arrays, and back" ./views
    local objects=(quern_f.o quern_values.o quern_kernels.o quern_f_c.o)
    "$fortran" -O2 -std=f2018 "$root/tests/interop/kernels.f90" "${objects[@]}" "${libraries[@]}" -o kernels > log 2>&1
    runs "kernels built and launched in Fortran" ./kernels
    passes "a failure without stat stops the program" stops
    sed -n '/^```fortran$/,/^```$/p' "$root/docs/fortran.md" | sed '/^```/d' > page.f90
    "$fortran" -O2 -std=f2018 page.f90 "${objects[@]}" "${libraries[@]}" -o page 2>&1 | grep -i error
    passes "the program of docs/fortran.md prints what the page says" page
}

echo "TAP version 13"
if [ -n "${FC:-}" ]; then
    tests "$FC" "$FC" "${CC:-gcc}"
else
    QN_F2003=-std=f2003 tests gfortran gfortran gcc -Wall -Wextra -Werror
    flang=$(command -v flang-19 || command -v flang-new-19)
    tests flang-19 "${flang:-flang-19}" clang-19
fi
echo "1..$n"
exit $failed
