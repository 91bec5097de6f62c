#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: clang takes the libraries, the fuzzers and what these share with tests without a warning.
# Other tests are built by gcc alone.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
build="${QN_BUILD_DIR:-$root/build/release}"
cd "$root" || exit 1
echo "TAP version 13"
echo "1..1"
if ! command -v clang-19 > /dev/null; then
    echo "ok 1 # SKIP no clang-19"
    exit 0
fi
compile=(clang-19 -std=c11 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -I. -Iinclude
    -I"$build" -I"$build/generated/include" -I"$(llvm-config-19 --includedir)"
    -include "$build/generated/build_id.h" -DQN_FAULTS "-DQN_BUILD_DIR=\"$build\"")
log=$(find ir jit runtime/*.c runtime/cuda tests/*.c tests/unit/*.c tests/ptx tests/fuzz \
    tests/bench/bench_cuda_*.c tests/bench/bench_rank.c -name '*.c' -print0 |
    xargs -0 -P "$(nproc)" -n 12 "${compile[@]}" 2>&1)
if [ -z "$log" ]; then
    echo "ok 1 - no warning of clang"
else
    echo "not ok 1 - no warning of clang"
    echo "$log" | grep -A4 'warning\|error' | head -20 | sed 's/^/# /'
    exit 1
fi
