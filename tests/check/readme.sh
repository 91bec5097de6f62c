#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the program in README.md compiles with the command that stands below it, and prints what its comment says; the
# command of the tool works as pasted, and writes the file that it names.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
export QUERN_CACHE=off # not the one of who runs the tests
build="${QN_BUILD_DIR:-$root/build/release}"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$root" || exit 1

echo "TAP version 13"
echo "1..3"
sed -n '/^```c$/,/^```$/p' README.md | sed '/^```/d' > "$folder/hello.c"
expected=$(sed -nE 's|.*/\* ([0-9 ]+) \*/$|\1|p' "$folder/hello.c")
command=$(grep '^cc .*hello\.c' README.md |
    sed "s|hello\.c|$folder/hello.c|; s|-o hello|-o $folder/hello|; s|\$PWD/build/release|$build|; s|build/release|$build|")
# The second substitution of build/release must not touch an absolute path that was just put in.
command=$(echo "$command" | sed "s|-L[^ ]*|-L$build|; s|-rpath,[^ ]*|-rpath,$build|")
failed=0
if eval "$command -Wall -Wextra -Werror" 2> "$folder/log"; then
    echo "ok 1 - the program compiles"
else
    echo "not ok 1 - the program compiles"
    sed 's/^/# /' "$folder/log"
    failed=1
fi
tool=$(sed -n 's|^build/release/quern run|run|p' README.md)
if (cd "$folder" && eval "$build/quern ${tool//examples\//$root/examples/}") > "$folder/log" 2>&1 &&
    [ -n "$tool" ] && [ -s "$folder/y.npy" ]; then
    echo "ok 2 - the command of the tool writes its file"
else
    echo "not ok 2 - the command of the tool writes its file"
    sed 's/^/# /' "$folder/log"
    failed=1
fi
if grep -qE '^QUERN_SANITIZE:[A-Z]*=.' "$build/CMakeCache.txt" 2> /dev/null; then
    echo "ok 3 # SKIP the libraries have sanitizers, the program has none"
    exit $failed
fi
found=$("$folder/hello" 2>&1)
if [ -n "$expected" ] && [ "$found" = "$expected" ]; then
    echo "ok 3 - it prints $expected"
else
    echo "not ok 3 - it prints $expected"
    echo "# found $found"
    failed=1
fi
exit $failed
