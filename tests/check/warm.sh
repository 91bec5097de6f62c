#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: case files twice with one cache on disk, the second time without a code generator: every version comes from disk.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
build="${QN_BUILD_DIR:-$root/build/release}"
run=$build/tests/run_cases
[ -x "$run" ] || { echo "1..0 # SKIP no $run"; exit 0; }
cd "$root" || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export QUERN_TEST_CACHE=$scratch/cache QUERN_PROVIDER="${QUERN_PROVIDER:-$build/libquern-llvm.so}"
cases=(tests/cases/*/{rank0,scalar,overlap,for_does_not_wrap}*.case)
failed=0

# report STATUS N NAME
report() {
    if [ "$1" = 0 ]; then echo "ok $2 - $3"; else echo "not ok $2 - $3"; failed=1; fi
}

echo "TAP version 13"
"$run" "${cases[@]}" > "$scratch/cold" 2>&1
report $? 1 "${#cases[@]} case files with an empty cache"
if ! grep -qE ', [1-9][0-9]* compiles, ' "$scratch/cold"; then
    echo "ok 2 # SKIP nothing was compiled here"
    echo "1..2"
    exit $failed
fi
QUERN_PROVIDER=/nowhere/libquern-llvm.so "$run" "${cases[@]}" > "$scratch/warm" 2>&1
report $? 2 "... and without a code generator"
grep -q ', 0 compiles, ' "$scratch/warm"
report $? 3 "nothing is compiled again"
n=$(grep -c '^ok .*: \(x86\|ptx\)' "$scratch/warm")
[ "$n" -gt 50 ]
report $? 4 "$n points ran code from disk"
grep '^not ok' "$scratch/cold" "$scratch/warm" | head -10 | sed 's/^/# /'
echo "1..4"
exit $failed
