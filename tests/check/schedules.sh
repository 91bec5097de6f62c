#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the kernels of tests/schedules, each with a schedule that was written by hand. The schedule
# verifies, is the one that is lowered, and gives the bits of the interpreter, for each instruction
# set of this processor. A file with a line "# not yet: WHAT" verifies and is refused by the code
# generator, which names WHAT. Other lines of a head: "# arrays: NAME=VALUE...", as the tool takes
# them.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
build="${QN_BUILD_DIR:-$root/build/release}"
export QUERN_PROVIDER="${QUERN_PROVIDER:-$build/libquern-llvm.so}" QUERN_CACHE=off
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
tests=0
failures=0

report() { # STATUS NAME
    tests=$((tests + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tests - $2"
    else
        echo "not ok $tests - $2"
        failures=$((failures + 1))
        sed 's/^/# /' err
    fi
}

quern() { "$build/quern" "$@"; }

echo "TAP version 13"
if ! quern asm "$root/examples/kernels/copy.qn" from=zeros:f64[2,2] to=zeros:f64[2,2] >err 2>&1; then
    echo "1..0 # skipped: no generated code here"
    exit 0
fi
for isa in v3 v4; do
    quern run "$root/examples/kernels/copy.qn" from=zeros:f64[2,2] to=zeros:f64[2,2] \
        --engine native --isa "$isa" >err 2>&1 || continue
    for file in "$root"/tests/schedules/*.schedule; do
        name="$(basename "$file" .schedule), $isa"
        missing=$(sed -n 's/^# not yet: //p' "$file")
        read -ra arrays < <(sed -n 's/^# arrays: //p' "$file" | tr '\n' ' ')
        sed '/^schedule {/,$d' "$file" >kernel.qn
        sed -n '/^schedule {/,$p' "$file" >schedule
        outputs=()
        for array in "${arrays[@]}"; do
            [[ $array != *:* ]] || outputs+=(--out "${array%%=*}=${array%%=*}.npy")
        done
        rm -rf ./*.npy expected
        quern run kernel.qn "${arrays[@]}" --engine interp --show 0 "${outputs[@]}" >out 2>err
        report $? "$name: is interpreted"
        mkdir expected && mv ./*.npy expected/
        quern run kernel.qn "${arrays[@]}" --engine native --isa "$isa" --schedule schedule --show 0 \
            --stats "${outputs[@]}" >out 2>err
        status=$?
        if [ -n "$missing" ]; then
            [ $status = 1 ] && grep -q "QN_ERR_UNSUPPORTED.*no code is generated for $missing" err
            report $? "$name: verifies, and is not lowered yet: $missing"
            continue
        fi
        [ $status = 0 ] && grep -q 'by the schedule that was given' out
        report $? "$name: its schedule is the one that is lowered"
        same=0
        for output in expected/*.npy; do
            cmp "$output" "$(basename "$output")" >>err 2>&1 || same=1
        done
        report $same "$name: the bits of the interpreter"
    done
done
echo "1..$tests"
[ $failures = 0 ]
