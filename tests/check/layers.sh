#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: what each folder may include and call, what the libraries export, and which names stand at the top.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
build="${QN_BUILD_DIR:-$root/build/release}"
cd "$root" || exit 1
n=0
failed=0

# is_empty WHAT: passes if nothing comes on standard input; shows what does.
is_empty() {
    local found
    found=$(head -20)
    n=$((n + 1))
    if [ -z "$found" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        echo "$found" | sed 's/^/# /'
        failed=1
    fi
}

# includes FILES...: "file:header" of every include.
includes() {
    grep -HoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]+[>"]' "$@" 2> /dev/null |
        sed -E 's/#[[:space:]]*include[[:space:]]*//; s/:[[:space:]]*/:/'
}

# code FILES...: "file:line:text" without comments and strings.
code() {
    local file
    for file in "$@"; do
        [ -f "$file" ] && perl -0777 -pe '
            s{/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"}{my $x = $&; $x =~ s/[^\n]//g; $x}gse' "$file" |
            awk -v f="$file" '{ print f ":" NR ":" $0 }'
    done
}

# is_not_empty WHAT: the opposite; shows that the other tests look at something.
is_not_empty() {
    n=$((n + 1))
    if [ -n "$(head -1)" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        failed=1
    fi
}

echo "TAP version 13"
shopt -s nullglob lastpipe # the last part of a pipe counts in this shell
shopt -s globstar
ir=(ir/**/*.[ch])
jit=(jit/**/*.[ch] jit/**/*.cpp)
runtime=(runtime/*.[ch] runtime/cuda/*.[ch])
library=("${ir[@]}" "${jit[@]}" "${runtime[@]}")

# wide FILES...: "file:line" of lines of more than 100 columns, those that clang-format leaves apart.
wide() {
    awk 'FNR == 1 { off = 0 } /clang-format off/ { off = 1 } /clang-format on/ { off = 0 }
         !off && length($0) > 100 { print FILENAME ":" FNR }' "$@"
}
printf '%0101d\n' 0 | wide | grep ':1$' | is_not_empty "wide lines are found"
wide "${library[@]}" include/**/*.h* tests/**/*.[ch] examples/*.[ch] | is_empty "lines have at most 100 columns"

# leaning FILES...: "file:line:text" of comments that begin with the words of the one before.
leaning() {
    grep -nHE '^[[:space:]]*(/\*\*?|\*|//) *(The same|Likewise|Ditto|As above)\b' "$@" |
        grep -E '/\*|//'
}
echo '/** The same of two. */' | leaning - | is_not_empty "leaning comments are found"
leaning "${library[@]}" include/**/*.h* tests/**/*.[ch] examples/*.[ch] |
    is_empty "comments do not lean on their neighbour"

includes ir/*.[ch] | grep -x 'ir/core.c:"ir/ir.h"' | is_not_empty "includes are found"
code ir/format.c | grep -E '\bvsnprintf[[:space:]]*\(' | is_not_empty "calls are found"
includes include/*.h include/quern/* |
    grep -vE ':(<(stdbool|stddef|stdint)\.h>|<initializer_list>|"quern(/[a-z_]+\.(def|h)|\.h)")$' |
    grep -vE '^include/quern/[a-z]+\.hpp:("quern\.hpp"|<[a-z_]+>)$' |
    grep -vE '^include/quern/fortran\.h:<(ISO_Fortran_binding|stdarg|stdio|string)\.h>$' |
    is_empty "include/ uses itself only"
includes "${ir[@]}" | grep '"' | grep -vE ':"(ir/[a-z0-9_/]+\.(h|def)|quern\.h|quern/embed\.h|quern/[a-z]+\.def)"$' |
    is_empty "ir/ uses include/ and itself"
includes "${ir[@]}" | grep -E ':<(llvm|pthread|threads|unistd|dlfcn|sys/|fcntl|signal|cuda|time)' |
    is_empty "ir/ has no LLVM, threads or input and output"
formats='vs?n?printf|strto(f|d|ld)|atof|sscanf|setlocale|localeconv'
letters='to(upper|lower)|is(alpha|alnum|space|print|upper|lower|punct)'
code "${library[@]}" | grep -v '^ir/format\.c:' | grep -E "\b($formats|$letters)[[:space:]]*\(" |
    grep -vE '^runtime/(machine|provider)\.c:[0-9]+:.*\bsscanf' |
    is_empty "only ir/format.c formats, and nothing depends on the locale of the host"
grep -nE '\bsn?printf\([^;]*%[-+ #0-9.*]*l?[aefgAEFG]' "${library[@]}" |
    is_empty "floats are formatted by qn__format"
includes "${jit[@]}" | grep '"' |
    grep -vE ':"(jit/[a-z0-9_/]+\.(h|def)|ir/ir\.h|quern\.h|quern/[a-z]+\.def)"$' |
    is_empty "jit/ uses ir/ir.h, include/ and itself"

# The folders of jit/ stand on a kernel's way: each includes those before it.
includes "${jit[@]}" | awk -F '[:"/]' '
    BEGIN { rank["facts"] = 1; rank["analysis"] = 2; rank["schedule"] = 3
            rank["lower"] = 4; rank["target"] = 5; rank["emit"] = 6 }
    # Fields of jit/lower/map.c:"jit/schedule/plan.h": from $2; the name of the header begins behind the quote.
    $2 !~ /\.h$/ && match($0, /"jit\/[a-z]+\//) {
        to = substr($0, RSTART + 5, RLENGTH - 6)
        if (!($2 in rank) || !(to in rank) || rank[to] > rank[$2]) print
    }' | is_empty "... and each folder of jit/ those before it"

# Which target code is for is asked by the table of targets, and by what collects facts for the key.
code jit/*.h jit/{analysis,schedule,lower,emit}/*.[ch] |
    grep -E '\bis_gpu\b|\bQN_ISA_(V[0-9]|SM)|\bQN_TARGET_|\bisa[[:space:]]+[<>]|[[:space:]][<>]=?[[:space:]]+[a-z_>.-]*\bisa\b' |
    is_empty "... and asks for properties of a target, not which it is"
code jit/facts/target.c | grep -E '\bQN_TARGET_' | is_not_empty "... but for the table of targets"
includes "${runtime[@]}" | grep '"' |
    grep -vE ':"(runtime/[a-z0-9_/]+\.h|jit/(jit|provider|emit/gdb)\.h|ir/(ir|printed)\.h|quern\.h|quern/[a-z]+\.(def|h)|generated/names\.inc)"$' |
    is_empty "runtime/ uses jit/, ir/, include/ and itself"
includes runtime/bindings/*/*.[ch] | grep '"' | grep -vE ':"(quern/[a-z]+\.(def|h)|quern\.h|binding\.h|broadcast\.h)"$' |
    is_empty "runtime/bindings/ uses include/ and itself"
code runtime/bindings/*/*.[ch] | grep -E '\b(abort|exit|_exit|printf|puts|perror)[[:space:]]*\(' |
    is_empty "... and does not abort, exit or print"
includes $(find . -path ./build -prune -o -path ./.git -prune -o \( -name '*.[ch]' -o -name '*.cpp' \) -print) |
    grep -E '<llvm(-c)?/' | grep -vE '^(\./)?jit/(lower|target|emit)/[a-z_0-9/]*\.([ch]|cpp):' |
    is_empty "LLVM headers only in jit/lower, jit/target and jit/emit"
includes $(find examples -name '*.[ch]') | grep '"' |
    grep -vE ':"(quern\.h|quern/(cuda|cache|object|embed|tune)\.h|quern/[a-z]+\.def|[a-z0-9_]+\.h)"$' | is_empty "examples/ use include/ only"

code "${library[@]}" |
    grep -E '\b(abort|exit|_exit|_Exit|quick_exit|raise|printf|puts|putchar|perror|atexit|signal|sigaction)[[:space:]]*\(' |
    grep -vE '^jit/emit/exit\.c:[0-9]+:.*\batexit\(wait_for_requests\)' |
    is_empty "the library does not abort, exit, print or touch signals; one exit handler waits for compiles"
code "${library[@]}" | grep -E '\b(stdout|stderr|stdin)\b' | is_empty "... nor use the standard streams"
code "${library[@]}" | grep -E '\b(STDERR|STDOUT|STDIN)_FILENO\b' | grep -v '^runtime/env\.c:' |
    is_empty "... but for env.c, which QUERN_VERBOSE asks to write to standard error"
code "${ir[@]}" "${jit[@]}" | grep -E '\b(getenv|secure_getenv)\b' |
    is_empty "ir/ and jit/ do not read the environment"

# Cases, pages, pictures and lists have none: a comment would be part of what they say, or has no place.
find CMakeLists.txt bootstrap .ci include ir jit runtime tests examples docs -type f ! -name '*.case' ! -name '*.md' ! -name '*.png' ! -name '*.jpg' ! -name '*.gz' \
    ! -name '*.npy' ! -name '*.json.in' ! -name '*.ipynb' ! -path 'tests/tool_cases/*' ! -path 'tests/language/*.txt' ! -path tests/check/abi.txt ! -path '*/__pycache__/*' \
    ! -path runtime/packages/copyright.in |
    while read -r file; do
        head -3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
    done | is_empty "every source file has its licence tag"

# declared: "name file" of what the headers declare for other files.
declared() {
    code {ir,jit}/**/*.h runtime/*.h runtime/cuda/*.h | grep -E '^[^:]+:[0-9]+:[a-zA-Z]' | grep -vE ':(typedef|#)' |
        sed -nE 's/^([^:]+):[0-9]+:[a-zA-Z][^(]*\b(qn__[a-z0-9_]+)\(.*/\2 \1/p' | sort -u
}
declared | is_not_empty "internal names are found"
declared | cut -d' ' -f1 | uniq -d | is_empty "no internal name is declared in two headers"

# exported LIBRARY: names it defines for others.
exported() {
    nm -D --defined-only "$1" 2> /dev/null | awk '$2 != "A" { print $3 }' | sed 's/@.*//'
}
for file in libquern.so libquern-llvm.so; do
    [ -f "$build/$file" ] || echo "$build/$file is missing"
done | is_empty "both libraries are built"
exported "$build/libquern.so" | grep -x qn_launch | is_not_empty "libquern.so exports qn_launch"
exported "$build/libquern-llvm.so" | is_not_empty "libquern-llvm.so exports something"
exported "$build/libquern.so" | grep -vE '^qn_[a-z0-9]' | is_empty "libquern.so exports qn_ names only"
exported "$build/libquern-llvm.so" | grep -vx 'qn_llvm_provider' |
    is_empty "libquern-llvm.so exports its one function"
readelf -dW "$build/libquern-llvm.so" | grep -q 'NEEDED.*libLLVM' ||
    nm -D --undefined-only "$build/libquern-llvm.so" | grep '__cxa_atexit' |
    is_empty "libquern-llvm.so with LLVM in it registers no destructors"
grep -hoE '\bqn_[a-z0-9_]+\(' include/quern.h include/quern/*.h | tr -d '(' | sort -u > "${TMPDIR:-/tmp}/quern-names.$$"
exported "$build/libquern.so" | grep -vxFf "${TMPDIR:-/tmp}/quern-names.$$" |
    grep -vxFf <(sed -nE 's/^QN_(OP\([A-Z0-9_]+, *|MATH\(|RANDOM\()([a-z0-9_]+),.*/qn_\2/p' include/quern/ops.def include/quern/math.def) |
    is_empty "everything exported is declared in a public header"
rm -f "${TMPDIR:-/tmp}/quern-names.$$"
nm -D "$build/libquern.so" 2> /dev/null | grep -i llvm | is_empty "libquern.so does not link LLVM"

ls -A | grep -vxE 'jit|runtime|ir|include|tests|examples|docs|build|CMakeLists\.txt|CMakePresets\.json|LICENSE|NOTICE|README\.md|bootstrap|\..*' |
    is_empty "no other names at the top"
echo "1..$n"
exit $failed
