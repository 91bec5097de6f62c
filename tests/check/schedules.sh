#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the kernels of tests/schedules, each with a schedule that was written by hand. The schedule
# verifies, is the one that is lowered, and gives the bits of the interpreter, for each instruction
# set of this processor. A file with a line "# not yet: WHAT" verifies and is refused by the code
# generator, which names WHAT; one with "# not on ISA: WHAT" for that instruction set. Other lines
# of a head: "# arrays: NAME=VALUE...", as the tool takes
# them. Files *.grid are of a GPU: the code has blocks of as many threads as their line "# threads: X,
# Y, Z" says, and, where there is a GPU, gives the bits of the interpreter.
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

# Splits FILE into kernel.qn and schedule; sets arrays and outputs.
split() {
    read -ra arrays < <(sed -n 's/^# arrays: //p' "$1" | tr '\n' ' ')
    sed '/^\(schedule\|declared\) {/,$d' "$1" >kernel.qn
    sed -n '/^\(schedule\|declared\) {/,$p' "$1" >schedule
    outputs=()
    for array in "${arrays[@]}"; do
        [[ $array != *:* ]] || outputs+=(--out "${array%%=*}=${array%%=*}.npy")
    done
    rm -rf ./*.npy expected
}

# Runs the interpreter, and keeps what it wrote as expected.
interpret() {
    quern run kernel.qn "${arrays[@]}" --engine interp --show 0 "${outputs[@]}" >out 2>err
    report $? "$1: is interpreted"
    mkdir expected && mv ./*.npy expected/
}

# Whether all arrays are as expected.
compare() {
    local output same=0
    for output in expected/*.npy; do
        cmp "$output" "$(basename "$output")" >>err 2>&1 || same=1
    done
    report $same "$1: the bits of the interpreter"
}

for file in "$root"/tests/schedules/*.grid; do
    name="$(basename "$file" .grid), GPU"
    threads=$(sed -n 's/^# threads: //p' "$file")
    missing=$(sed -n 's/^# not yet: //p' "$file")
    split "$file"
    if [ -n "$missing" ]; then
        ! quern asm kernel.qn "${arrays[@]}" --target cuda --schedule schedule >out 2>err &&
            grep -q "QN_ERR_UNSUPPORTED.*no code is generated for $missing" err
        report $? "$name: verifies, and is not lowered: $missing"
        continue
    fi
    quern asm kernel.qn "${arrays[@]}" --target cuda --schedule schedule >out 2>err &&
        grep -q "^\.reqntid $threads\$" out
    report $? "$name: blocks of $threads threads"
    if quern run kernel.qn "${arrays[@]}" --target cuda --show 0 >out 2>err; then
        interpret "$name"
        quern run kernel.qn "${arrays[@]}" --target cuda --schedule schedule --show 0 \
            "${outputs[@]}" >out 2>err
        report $? "$name: runs on the GPU"
        compare "$name"
    fi
done
for isa in v3 v4; do
    quern run "$root/examples/kernels/copy.qn" from=zeros:f64[2,2] to=zeros:f64[2,2] \
        --engine native --isa "$isa" >err 2>&1 || continue
    for file in "$root"/tests/schedules/*.schedule; do
        name="$(basename "$file" .schedule), $isa"
        missing=$(sed -n "s/^# not \(yet\|on $isa\): //p" "$file")
        split "$file"
        interpret "$name"
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
        compare "$name"
    done
done
# What a plan copies is a buffer of its schedule: without the buffer nothing would be copied.
copies() { # FILE FIELDS OF-THE-PLAN, what the schedule has
    read -ra arrays < <(sed -n 's/^# arrays: //p' "$root/tests/schedules/$1.schedule" | tr '\n' ' ')
    sed '/^schedule {/,$d' "$root/tests/schedules/$1.schedule" >kernel.qn
    quern asm kernel.qn "${arrays[@]}" --plan "$2" --stage schedule >out 2>err
    grep -qE "$3" out
    report $? "$1 with $2: its copies are buffers"
}
copies abt_rows "pack=1" '%15 through b0'
copies atb_packed "pack=1" '%15 through b0'
echo "1..$tests"
[ $failures = 0 ]
