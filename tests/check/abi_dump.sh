#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: abidiff (Debian: abigail-tools) finds no incompatible change between the types and functions of the headers and those of
# tests/check/abi.xml.gz. The release library has no debug information, so the dump is that of a library in which each function
# of the headers has an empty body; tests/check/abi.sh says that the real library exports them. New functions, and new members
# at the end of structs that carry their size, are compatible. `abi_dump.sh --update` writes the dump anew.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
compiler="${CC:-cc}"
kept="$root/tests/check/abi.xml.gz"
cd "$root" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "TAP version 13"
if ! command -v abidiff > /dev/null || ! command -v abidw > /dev/null; then
    echo "1..0 # SKIP abidw and abidiff are not installed (Debian: abigail-tools)"
    exit 0
fi

# source FOLDER: the headers of a folder, and an empty definition of each function that they declare.
source_of() {
    local headers
    headers=$(
        echo '#include "quern.h"'
        for header in include/quern/*.h; do
            case "$header" in */fortran.h) ;; *) echo "#include \"quern/$(basename "$header")\"" ;; esac
        done
    )
    echo "$headers"
    echo "$headers" | "$compiler" -std=c11 -E -P -I"$1" -x c - |
        perl -0777 -ne 's/\s+/ /g; s/([;{}])/$1\n/g;
            while (/__attribute__\(\(visibility\("default"\)\)\) ([^;{}]*);/g) { print "$1 { __builtin_trap(); }\n" }'
}

# dump FOLDER XML: the types and functions of the headers of a folder.
dump() {
    source_of "$1" > "$work/abi.c"
    (cd "$work" && "$compiler" -std=c11 -g -fPIC -shared -I"$1" abi.c -o library.so &&
        abidw --headers-dir "$1" --drop-private-types --no-show-locs --no-comp-dir-path --no-corpus-path \
            --no-parameter-names --no-write-default-sizes library.so > "$2")
}

# compare XML XML: whether nothing was changed or taken away.
compare() {
    abidiff --no-added-syms --suppressions "$work/growing" "$1" "$2" > "$work/report" 2>&1
}

# Structs that begin with their size, or are filled by functions that are told their size, may grow at the end.
growing() {
    {
        perl -0777 -ne 'while (/typedef struct (qn_\w+) \{\s*size_t bytes;/g) { print "$1\n" }' include/quern.h include/quern/*.h
        perl -0777 -ne 's/\s+/ /g; while (/(qn_\w+) \*out, size_t out_bytes/g) { print "$1\n" }' include/quern.h include/quern/*.h
    } | LC_ALL=C sort -u | while read -r name; do
        printf '[suppress_type]\n  name = %s\n  has_data_member_inserted_at = end\n' "$name"
    done
}

growing > "$work/growing"
n=0
failed=0
result() { # result STATUS WHAT
    n=$((n + 1))
    [ "$1" = 0 ] && echo "ok $n - $2" || { echo "not ok $n - $2"; failed=1; }
}

dump "$root/include" "$work/new.xml" 2> "$work/log"
status=$?
if [ "${1:-}" = --update ]; then
    [ $status = 0 ] && gzip -9nc "$work/new.xml" > "$kept"
    exit $?
fi
result $status "the types of the headers are dumped"
sed 's/^/# /' "$work/log"
[ "$(grep -c __builtin_trap "$work/abi.c")" -gt 300 ] && [ "$(grep -c '<function-decl' "$work/new.xml")" -gt 300 ] &&
    [ "$(grep -c suppress_type "$work/growing")" -gt 8 ]
result $? "functions and structs that may grow are found"

gzip -dc "$kept" > "$work/old.xml" && compare "$work/old.xml" "$work/new.xml"
result $? "nothing of tests/check/abi.xml.gz was changed or taken away"
[ $n = 3 ] && [ $failed = 1 ] && sed 's/^/# /' "$work/report"

# changed SEEN WHAT FILE SED: the headers with a change, which abidiff sees (1) or takes for a compatible one (0).
changed() {
    rm -rf "$work/include"
    cp -r include "$work/include"
    sed -i "$4" "$work/include/$3"
    local seen=1
    ! cmp -s "include/$3" "$work/include/$3" && dump "$work/include" "$work/changed.xml" 2> "$work/log" &&
        { compare "$work/new.xml" "$work/changed.xml" && seen=0; [ $seen = "$1" ]; }
    result $? "$2"
    sed 's/^/# /' "$work/log"
}
changed 1 "a function that is gone is seen" quern.h '/qn_kernel_n_params(const/d'
changed 1 "another type of a result is seen" quern.h 's/int qn_kernel_n_params(/long qn_kernel_n_params(/'
changed 1 "one parameter more is seen" quern.h 's/qn_version(void)/qn_version(int more)/'
changed 1 "another number of an enumerator is seen" quern/dtypes.def 's/(I8, 2, /(I8, 22, /'
changed 1 "a member in the middle of a struct is seen" quern/layout.h 's/^    int64_t begin;/    int64_t more, begin;/'
changed 0 "a function that is new is compatible" quern.h 's/^QN_API uint32_t qn_version(void);/&QN_API int qn_new_one(int x);/'
changed 0 "a member at the end of a struct that carries its size is compatible" quern.h 's/^    int32_t is_written;/    int32_t is_written, more;/'
echo "1..$n"
exit $failed
