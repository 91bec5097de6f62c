#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# check/examples.sh [BUILD]: the examples, the photo demo, the tool with good and bad input
# (tests/tool_cases), and the code quoted in docs/tutorial.md. TAP. BUILD is the folder of a build,
# by default QN_BUILD_DIR or build/release. The variable ENGINE picks the tool's engine for the cases
# that run kernels: interp, x86 or auto (the default). What is for GPUs runs on the driver QUERN_CUDA_DRIVER, else on a GPU where
# there is one, else on the stub driver of the build.
#
# A file of cases holds any number of
#   @ name
#   $ command in bash; `quern` is the tool, $K the folder of example kernels; it runs in a scratch
#     folder
#   = exit status                    (0 if absent)
#   > text that the output contains  (any number)
#   ! text that the errors contain   (any number)
#   ? x86                            (needs generated code: skipped with ENGINE=interp)
#   ? v4                             (needs generated code and a processor with AVX-512)
#   ? cuda                           (needs a GPU, or the stub driver, and generated code)
# and commands see make_npy FILE HEADER DATA (data as for printf %b).

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-${QN_BUILD_DIR:-$root/build/release}}
[ -d "$build" ] || { echo "1..0 # SKIP no build in $build"; exit 0; }
build=$(cd "$build" && pwd)
export QUERN_CACHE=off # not the one of who runs the tests
export K=$root/examples/kernels ENGINE=${ENGINE:-auto} PATH=$build:$PATH
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

tests=0
failures=0

# report STATUS NAME: one test point; on failure the files out and err follow as comments.
report() {
    tests=$((tests + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tests - $2"
    else
        failures=$((failures + 1))
        echo "not ok $tests - $2"
        [ -n "$3" ] && echo "# $3"
        head -n 20 "$scratch/out" "$scratch/err" 2>/dev/null | cut -c1-200 | sed 's/^/# /'
    fi
}

make_header() {
    local n=${#2}
    printf '\x93NUMPY\x01\x00'"\\x$(printf %02x $((n & 255)))\\x$(printf %02x $((n >> 8)))"'%s' "$2" >"$1"
}
make_npy() {
    make_header "$1" "$2"
    printf '%b' "$3" >>"$1"
}
export -f make_header make_npy

# skip NAME REASON: a test point that is left out.
skip() {
    tests=$((tests + 1))
    echo "ok $tests - $1 # SKIP $2"
}

# ------------------------------------------------------------------------------------------------ a GPU

# Runs a command with the driver of this machine, or the stub: $driver is NULL where the system's is meant.
run_kernel_on() {
    QUERN_CUDA_DRIVER=$1 quern run "$K/saxpy.qn" x=iota:f32[8] y=ones:f32[8] a=2.5 --target cuda 2>"$scratch/no_gpu" | grep -qF '1 3.5 6'
}
no_gpu=""
driver=${QUERN_CUDA_DRIVER-}
if ! run_kernel_on "$driver"; then
    no_gpu=$(head -n 1 "$scratch/no_gpu")
    driver=$build/tests/stub/runs/libcuda.so.1
    run_kernel_on "$driver" && no_gpu=""
fi

# ------------------------------------------------------------------------------------------------ examples

run_example() {
    (cd "$scratch" && timeout 60 "$1" "${@:2}" >out 2>err </dev/null)
}

for source in "$root"/examples/[0-9][0-9]_*.c; do
    name=$(basename "$source" .c)
    run_example "$build/examples/$name"
    report $? "examples/$name"
done
for name in 02_stencil 03_matmul 04_spmv; do
    if [ -n "$no_gpu" ]; then
        skip "examples/$name cuda" "$no_gpu"
        continue
    fi
    QUERN_CUDA_DRIVER=$driver run_example "$build/examples/$name" cuda
    report $? "examples/$name cuda"
    QUERN_CUDA_DRIVER=/nowhere/libcuda.so.1 run_example "$build/examples/$name" cuda
    [ $? = 1 ] && grep -q QN_ERR_NOT_AVAILABLE "$scratch/err"
    report $? "examples/$name cuda says that there is no GPU"
done
run_example "$build/examples/05_expressions" 'a*(b - 2)'
report $? "examples/05_expressions of an expression"
run_example "$build/examples/05_expressions" 'a*(b - 2'
[ $? = 1 ]
report $? "examples/05_expressions of a bad expression ends with 1"

# ------------------------------------------------------------------------------------------------ photo

if [ -x "$build/examples/photo" ]; then
    photo=$build/examples/photo
    run_example "$photo" "$root/examples/photo/cat.png" "$scratch/photo-out"
    report $? "photo of a cat"
    grep -q 'all three layouts agree' "$scratch/out"
    report $? "photo: the layouts agree"
    [ -s "$scratch/photo-out/blur.png" ] && [ -s "$scratch/photo-out/sobel.png" ] && [ -s "$scratch/photo-out/equalised.png" ]
    report $? "photo: the results are written"
    [ "$(head -c 8 "$scratch/photo-out/sheet.png" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] &&
        [ "$(wc -c <"$scratch/photo-out/sheet.png")" -gt 200000 ]
    report $? "photo: the sheet is written"
    if command -v python3 >/dev/null; then
        python3 "$root/tests/check/photo_hue.py" "$root/examples/photo/cat.png" "$scratch/photo-out/equalised.png" >"$scratch/out" 2>"$scratch/err"
        report $? "photo: equalising luminance keeps hues"
    else
        skip "photo: equalising luminance keeps hues" "no python3"
    fi
    run_example "$photo" "$scratch/photo-out/sobel.png" "$scratch/photo-out/again"
    report $? "photo of its own result"
    run_example "$photo" --engine interp "$root/tests/tool_cases/rgba.png" "$scratch/photo-out/interp"
    report $? "photo --engine interp"
    run_example "$photo" --threads 2 "$root/tests/tool_cases/rgba.png" "$scratch/photo-out/threads"
    report $? "photo --threads 2"
    if [ -n "$no_gpu" ]; then
        skip "photo --target cuda" "$no_gpu"
    else
        QUERN_CUDA_DRIVER=$driver run_example "$photo" --target cuda "$root/tests/tool_cases/rgba.png" "$scratch/photo-out/cuda" &&
            grep -q 'all three layouts agree' "$scratch/out"
        report $? "photo --target cuda"
    fi
    QUERN_CUDA_DRIVER=/nowhere/libcuda.so.1 run_example "$photo" --target cuda "$root/tests/tool_cases/rgba.png"
    [ $? = 1 ] && grep -q 'target cuda: .*no CUDA driver' "$scratch/err"
    report $? "photo --target cuda says that there is no GPU"
    for png in "$root"/tests/tool_cases/*.png; do
        run_example "$photo" "$png" "$scratch/photo-out/$(basename "$png" .png)"
        report $? "photo of $(basename "$png")"
    done
    for bad in missing.png "$root/README.md" "$scratch"; do
        run_example "$photo" "$bad"
        [ $? = 1 ] && [ -s "$scratch/err" ]
        report $? "photo refuses $(basename "$bad")"
    done
    head -c 5000 "$root/examples/photo/cat.png" >"$scratch/cut.png"
    run_example "$photo" cut.png
    [ $? = 1 ] && [ -s "$scratch/err" ]
    report $? "photo refuses a truncated file"
    run_example "$photo" --engine steam
    [ $? = 2 ]
    report $? "photo --engine steam ends with 2"
fi

# ------------------------------------------------------------------------------------------------ the tool

# Runs the case in name, command, expected, parts_out, parts_err.
run_case() {
    [ -n "$command" ] || return
    if [ -n "$needs_code" ] && [ "$ENGINE" = interp ]; then
        skip "$(basename "$cases" .txt): $name" "needs generated code"
        return
    fi
    if [ "$needs_code" = v4 ] && ! grep -qw avx512bw /proc/cpuinfo; then
        skip "$(basename "$cases" .txt): $name" "no AVX-512 here"
        return
    fi
    if [ "$needs_code" = cuda ] && [ -n "$no_gpu" ]; then
        skip "$(basename "$cases" .txt): $name" "$no_gpu"
        return
    fi
    (cd "$scratch" && { [ "$needs_code" != cuda ] || export QUERN_CUDA_DRIVER=$driver; } && timeout 60 bash -c "$command" >out 2>err </dev/null)
    local status=$? why="" part
    [ $status = "$expected" ] || why="exit status $status, expected $expected"
    for part in "${parts_out[@]}"; do
        grep -qF -- "$part" "$scratch/out" || why="the output lacks: $part"
    done
    for part in "${parts_err[@]}"; do
        grep -qF -- "$part" "$scratch/err" || why="the errors lack: $part"
    done
    [ -z "$why" ]
    report $? "$(basename "$cases" .txt): $name" "$why"
}

for cases in "$root"/tests/tool_cases/*.txt; do
    command=""
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        '@ '*) run_case; name=${line#@ }; command=""; expected=0; needs_code=""; parts_out=(); parts_err=() ;;
        '? '*) needs_code=${line#? } ;;
        '$ '*) command="$command${command:+$'\n'}${line#\$ }" ;;
        '= '*) expected=${line#= } ;;
        '> '*) parts_out+=("${line#> }") ;;
        '! '*) parts_err+=("${line#! }") ;;
        esac
    done <"$cases"
    run_case
    command=""
done

for kernel in "$K"/*.qn; do
    quern print "$kernel" >"$scratch/once" 2>"$scratch/err" && quern print "$scratch/once" >"$scratch/out" 2>"$scratch/err" &&
        cmp -s "$scratch/once" "$scratch/out"
    report $? "print of $(basename "$kernel") prints again the same"
done

# ------------------------------------------------------------------------------------------------ the tutorial

# Prints the lines of file $1 between /* [$2] */ and /* [end] */, without the indentation of the marker.
quote() {
    awk -v start="/* [$2] */" '
        index($0, start) { inside = 1; indent = index($0, start) - 1; next }
        inside && index($0, "/* [end] */") { inside = 0 }
        inside { print substr($0, 1, indent) ~ /^ *$/ ? substr($0, indent + 1) : $0 }' "$1"
}

while read -r file marker; do
    quote "$root/$file" "$marker" >"$scratch/expected"
    awk -v start="<!-- $file [$marker] -->" '
        $0 == start { found = 1; next }
        found == 1 && /^```c$/ { found = 2; next }
        found == 2 && /^```$/ { exit }
        found == 2 { print }' "$root/docs/tutorial.md" >"$scratch/out"
    [ -s "$scratch/expected" ] && cmp -s "$scratch/expected" "$scratch/out"
    report $? "docs/tutorial.md quotes $file [$marker]"
done < <(sed -n 's/^<!-- \(examples\/[^ ]*\) \[\(.*\)\] -->$/\1 \2/p' "$root/docs/tutorial.md")

# The message that step 4 shows.
"$build/examples/04_spmv" 2>&1 | grep -F 'qn_launch:' | sed 's/^ *//' >"$scratch/out"
[ -s "$scratch/out" ] && grep -qFf "$scratch/out" "$root/docs/tutorial.md"
report $? "docs/tutorial.md shows the message of 04_spmv"

echo "1..$tests"
[ $failures = 0 ]
