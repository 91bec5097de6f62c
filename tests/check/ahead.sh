#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: code made ahead of time by the tool runs in programs that have no code generator.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
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

# An object file and a header: the program that calls them knows nothing of Quern.
make_object() {
    "$quern" object "$folder/kernels.o" "$folder/kernels.h" \
        "$kernels/saxpy.qn" \
        "$kernels/saxpy.qn" --name saxpy1000 x=zeros:f32[1000] y=zeros:f32[1000] a=1 \
        "$kernels/saxpy.qn" --name saxpy_constant --constant-scalars x=zeros:f32[1000] \
        y=zeros:f32[1000] a=2.5 \
        "$kernels/stencil5.qn" --specialize dynamic old=zeros:f64[64,64] new=zeros:f64[64,64] c=1 \
        "$kernels/matmul.qn" --specialize dynamic a=zeros:f64[64,64] b=zeros:f64[64,64] \
        c=zeros:f64[64,64] \
        "$kernels/matmul.qn" --name matmul_packed a=zeros:f64[32,512] b=zeros:f64[512,512] \
        c=zeros:f64[32,512] \
        "$kernels/dot.qn" --specialize dynamic x=zeros:f64[64] y=zeros:f64[64] s=zeros:f64[] \
        "$kernels/rowsum.qn" --specialize dynamic a=zeros:f32[64,64] s=zeros:f32[64] \
        "$kernels/gather.qn" --specialize dynamic x=zeros:f64[64] at=zeros:i32[64] y=zeros:f64[64] \
        "$use/steps.qn" --specialize dynamic u=zeros:f64[64] steps=3 \
        "$use/scalars.qn" a=zeros:f32[4,5,600] b=zeros:f32[4,5,600] z=1 on=true h=3 \
        "$kernels/histogram.qn" "$kernels/spmv.qn" "$kernels/mandelbrot.qn" "$use/asserts.qn"
}
passes "an object file of all example kernels but some" make_object
passes "... needs nothing" bash -c "test -z \"\$(nm -u '$folder/kernels.o')\""
passes "... not even an executable stack" bash -c \
    "readelf -SW '$folder/kernels.o' | grep 'note.GNU-stack' | grep -qv X"
passes "one has memory of its own while it runs" grep -q 'return quern_run_with(INT64_C' \
    "$folder/kernels.h"
passes "the interpreter's program compiles" cc -std=c11 "${warnings[@]}" -I"$root/include" \
    "$use/interpret.c" -L"$build" -Wl,-rpath,"$build" -lquern -o "$folder/interpret"
passes "... and runs" bash -c "'$folder/interpret' '$kernels' > '$folder/wanted'"

# runs COMPILER FLAGS...: a program of the header and the object compiles, and prints what it should.
runs() {
    local compiler="$1"
    shift
    if ! command -v "$compiler" > /dev/null; then
        n=$((n + 1))
        echo "ok $n # SKIP no $compiler"
        return
    fi
    passes "$compiler $* compiles the header" "$compiler" "$@" "${warnings[@]}" -I"$folder" \
        "$use/use_object.c" -x none "$folder/kernels.o" -o "$folder/use_object"
    passes "... wrong arrays are refused" bash -c "'$folder/use_object' > '$folder/found'"
    passes "... results are the interpreter's" diff "$folder/wanted" "$folder/found"
}
runs cc -std=c11 -O2
passes "... nothing of Quern is linked" bash -c "! ldd '$folder/use_object' | grep -i quern"
echo '#include "kernels.h"' > "$folder/symbols.c"
passes "the functions have symbols where that is asked for" bash -c \
    "cc -c -DQUERN_ENTRY= '$folder/symbols.c' -o '$folder/symbols.o' &&
     nm '$folder/symbols.o' | grep -q ' T saxpy$'"
runs clang-19 -std=c99
runs c++ -x c++ -std=c++11
runs clang++-19 -x c++ -std=c++17 -O2
echo "1..$n"
exit $failed
