#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: code made ahead of time by the tool runs in programs that have no code generator.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/.." && pwd)}"
build="${QN_BUILD_DIR:-$root/build/release}"
use="$root/tests/interop/ahead"
kernels="$root/examples/kernels"
quern="$build/quern"
n=0
failed=0
if [ ! -x "$quern" ] || ! command -v cc > /dev/null; then
    echo "1..0 # SKIP no tool in $build, or no C compiler"
    exit 0
fi
if grep -qE '^QUERN_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt" 2> /dev/null; then
    echo "1..0 # SKIP the libraries have sanitizers, the programs have none"
    exit 0
fi
if ! grep -q avx2 /proc/cpuinfo; then
    echo "1..0 # SKIP the processor is below x86-64-v3"
    exit 0
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export QUERN_CACHE=off # not the one of who runs the tests

# passes WHAT COMMAND...: one test point; shows the output of a failure.
passes() {
    local what="$1"
    shift
    n=$((n + 1))
    if "$@" > "$folder/log" 2>&1; then
        echo "ok $n - $what"
    else
        echo "not ok $n - $what"
        tail -20 "$folder/log" | sed 's/^/# /'
        failed=1
    fi
}
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)

echo "TAP version 13"
passes "a bundle: saxpy of 1000 elements, and of any number" "$quern" bundle "$folder/bundle" \
    "$kernels/saxpy.qn" x=zeros:f32[1000] y=zeros:f32[1000] a=1 \
    "$kernels/saxpy.qn" --specialize dynamic x=zeros:f32[64] y=zeros:f32[64] a=1
passes "a program that names it compiles" cc -std=c11 "${warnings[@]}" -I"$root/include" "$use/use_bundle.c" -L"$build" \
    -Wl,-rpath,"$build" -lquern -o "$folder/use_bundle"
passes "... and runs its code without a code generator" \
    env QUERN_PROVIDER=/nowhere/libquern-llvm.so "$folder/use_bundle" "$folder/bundle" "$kernels/saxpy.qn"
n=$((n + 1))
if QUERN_PROVIDER=/nowhere/libquern-llvm.so "$folder/use_bundle" "$folder" "$kernels/saxpy.qn" > "$folder/log" 2>&1; then
    echo "not ok $n - ... which fails with an empty bundle"
    failed=1
else
    echo "ok $n - ... which fails with an empty bundle"
fi
echo "1..$n"
exit $failed
