#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the binary interface is that of tests/check/abi.txt: exported functions with their declarations, structs with their members,
# and numbers. Nothing of it may change or go within a major version; what is new may come. `check/abi.sh --update` writes the
# file anew.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
build="${QN_BUILD_DIR:-$root/build/release}"
compiler="${CC:-cc}"
cd "$root" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# declarations: one line a function, as the preprocessor gives it.
declarations() {
    {
        echo '#include "quern.h"'
        for header in include/quern/*.h; do
            case "$header" in */fortran.h) ;; *) echo "#include \"quern/$(basename "$header")\"" ;; esac
        done
    } | "$compiler" -std=c11 -E -P -Iinclude -x c - |
        perl -0777 -ne 's/\s+/ /g; s/([;{}])/$1\n/g;
            while (/__attribute__\(\(visibility\("default"\)\)\) ([^;{}]*);/g) { print "function $1\n" }' | LC_ALL=C sort -u
}

# tables: structs and numbers, as the library tells them.
tables() {
    cat > "$work/tables.c" << 'END'
#include "quern/embed.h"
#include <stdio.h>
int main(void)
{
    const char *name;
    int64_t value;
    for (int i = 0; (name = qn_number_name(i, &value)); i++)
        printf("number %s %lld\n", name, (long long)value);
    for (int i = 0; (name = qn_struct_name(i)); i++) {
        qn_member m;
        for (int j = 0; qn_struct_member(name, j, &m, sizeof m, 0) == QN_OK; j++)
            printf("member %s.%s %lld %lld\n", name, m.name, (long long)m.offset_bytes, (long long)m.bytes);
    }
    return 0;
}
END
    "$compiler" -std=c11 -Iinclude "$work/tables.c" -o "$work/tables" -L"$build" -lquern -Wl,-rpath,"$build" &&
        "$work/tables" | grep -vE '^number QN_(VERSION_|N_|MAX_|MOST_|SUMMARY_LAST|TEXT_FORMAT)' | LC_ALL=C sort
}

exported() {
    nm -D --defined-only "$build/libquern.so" | awk '$2 == "T" { print "symbol " $3 }' | sed 's/@.*//' | LC_ALL=C sort
}

{
    declarations
    tables
    exported
} > "$work/abi.txt"
if [ "${1:-}" = --update ]; then
    cp "$work/abi.txt" tests/check/abi.txt
    exit 0
fi

echo "TAP version 13"
n=0
failed=0
result() { # result STATUS WHAT
    n=$((n + 1))
    [ "$1" = 0 ] && echo "ok $n - $2" || { echo "not ok $n - $2"; failed=1; }
}
[ "$(grep -c '^function' "$work/abi.txt")" -gt 300 ] && [ "$(grep -c '^member' "$work/abi.txt")" -gt 150 ] &&
    [ "$(grep -c '^number' "$work/abi.txt")" -gt 150 ] && [ "$(grep -c '^symbol' "$work/abi.txt")" -gt 300 ]
result $? "functions, members, numbers and symbols are found"
sed -nE 's/^function [^(]*\b(qn_[a-z0-9_]+)\(.*/\1/p' "$work/abi.txt" | LC_ALL=C sort -u > "$work/declared.txt"
sed -n 's/^symbol //p' "$work/abi.txt" | LC_ALL=C sort -u > "$work/exported.txt"
LC_ALL=C comm -23 "$work/declared.txt" "$work/exported.txt" > "$work/hidden.txt"
[ -s "$work/declared.txt" ] && [ ! -s "$work/hidden.txt" ]
result $? "every function that is declared is exported"
sed 's/^/# /' "$work/hidden.txt"
LC_ALL=C sort -u tests/check/abi.txt > "$work/old.txt"
LC_ALL=C sort -u "$work/abi.txt" > "$work/new.txt"
LC_ALL=C comm -23 "$work/old.txt" "$work/new.txt" > "$work/gone.txt"
[ ! -s "$work/gone.txt" ]
result $? "nothing of tests/check/abi.txt was changed or taken away"
sed 's/^/# /' "$work/gone.txt"
# A change of any kind of line is seen: the comparison itself is tried on a file with one of each changed.
seen=0
for kind in function member number symbol; do
    awk -v k="$kind" '$1 == k && !done { $0 = $0 " changed"; done = 1 } { print }' "$work/new.txt" | LC_ALL=C sort > "$work/try.txt"
    [ "$(LC_ALL=C comm -23 "$work/try.txt" "$work/new.txt" | wc -l)" = 1 ] && seen=$((seen + 1))
done
[ $seen = 4 ]
result $? "a change of a function, member, number or symbol is seen"
new=$(LC_ALL=C comm -13 "$work/old.txt" "$work/new.txt" | wc -l)
[ "$new" = 0 ] || echo "# $new lines are new: tests/check/abi.sh --update before a release"
echo "1..$n"
exit $failed
