#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the pages docs/adding-*.md: every path that they name exists, and their lists of files are
# true as far as a name tells. A page
# explains its lists by a row that is there. Each file of the list names that row; no other file of the library's code does.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
cd "$root" || exit 1
n=0
failed=0
shopt -s lastpipe # the last part of a pipe counts in this shell

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

# paths FILE: paths of the tree that a page names in backquotes.
paths() {
    grep -oE '`(include|ir|jit|runtime|tests|examples|docs)/[A-Za-z0-9_./-]+`' "$1" | tr -d '`' | sort -u
}

# listed FILE FIRST LAST: paths of the first column of the FIRST-th to LAST-th table with the head "file".
listed() {
    awk -v first="$2" -v last="$3" '
        /^\| file \|/ { table++ }
        !/^\|/ { inside = 0 }
        /^\| file \|/ { inside = table >= first && table <= last }
        inside' "$1" | cut -d'|' -f2 |
        grep -oE '`(include|ir|jit|runtime|tests|examples|docs)/[A-Za-z0-9_./-]+`' | tr -d '`' | sort -u
}

# naming PATTERN FILES...: those that match, apart from comments of C and Lua.
naming() {
    local pattern="$1" file
    shift
    for file in "$@"; do
        perl -0777 -e '
            my ($pattern, $file) = @ARGV;
            open my $in, "<", $file or exit 1;
            my $text = <$in>;
            $text =~ s{/\*.*?\*/}{}gs if $file =~ /\.[ch](pp)?$/;
            $text =~ s{//[^\n]*}{}g if $file =~ /\.[ch](pp)?$/;
            $text =~ s{--[^\n]*}{}g if $file =~ /\.lua$/;
            exit($text =~ /$pattern/i ? 0 : 1)' "$pattern" "$file" && echo "$file"
    done
}

# is_true PAGE FIRST LAST PATTERN NAME [EXCEPT]: the list names what it says, and all of the library that matches. EXCEPT: files
# of the library that name it and are explained elsewhere on the page.
is_true() {
    local page="docs/$1" pattern="$4" files list
    list=$(listed "$page" "$2" "$3")
    [ -n "$list" ] || echo "$page has no list" | is_empty "$1: the list of $5 is found"
    comm -23 <(echo "$list") <(naming "$pattern" $list | sort) | is_empty "$1: each file of the list names $5"
    files=$(find include ir jit runtime -type f \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.def' \
        -o -name '*.qn' -o -name '*.lua' -o -name '*.py' -o -name '*.f90' -o -name '*.in' \))
    comm -23 <(naming "$pattern" $files | sort) <(printf '%s\n' $list ${6:-} | sort -u) |
        is_empty "... and no other file of the library names $5"
}

for page in docs/adding-*.md; do
    paths "$page" | while read -r path; do [ -e "$path" ] || echo "$page: $path"; done |
        is_empty "${page#docs/}: its paths exist"
done
is_true adding-an-op.md 1 1 '(?<!__builtin_)popcount' popcount
is_true adding-an-op.md 2 2 'QN_I_LOOKUP\b|QN_INST\(LOOKUP,|check_lookup|parse_lookup' "the instruction lookup"
is_true adding-a-dtype.md 1 1 'bf16' bf16 include/quern/math.def
is_true adding-a-reducer.md 1 1 'QN_COMBINE_PROD|QN_REDUCER\(PROD|\b(qn_)?prod\b' prod "runtime/bindings/python/quern/__init__.py runtime/bindings/python/quern/_trace.py
    runtime/bindings/python/quern/_expression.py runtime/bindings/lua/quern/builder.lua runtime/bindings/lua/quern/expression.lua"
is_true adding-a-target.md 1 1 'aarch64|QN_ISA_NEON' AArch64
is_true adding-a-transformation.md 1 1 'qn__apply_stream\b|stream %[0-9]|`stream i`|QN_TRANSFORM\(stream,' stream

# Constants of Fortran are those of the lists. Its atomics have no value to compare with.
constants() {
    perl -0777 -ne 's/&\s*\n\s*//g; print "$1 $2\n" while /\b(qn_[a-z0-9_]+) = (\d+)/g' include/quern_f.f90 include/quern_kernels.f90
}
sed -nE 's/^QN_DTYPE\((\w+), ([0-9]+),.*/qn_\L\1 \2/p; s/^QN_REDUCER\((\w+), ([0-9]+),.*/qn_\L\1 \2/p' \
    include/quern/dtypes.def include/quern/reducers.def | grep -v '^qn_compare_exchange ' | sort | comm -23 - <(constants | sort) |
    is_empty "Fortran has the numbers of dtypes and reducers"
# Every transformation is explained.
sed -nE 's/^QN_TRANSFORM\((\w+),.*/\1/p' jit/schedule/transforms.def |
    while read -r name; do grep -qE "^\| .*\`$name [a-z]" docs/schedule-text.md || echo "$name"; done |
    is_empty "docs/schedule-text.md has a line for each transformation"
echo "1..$n"
exit $failed
