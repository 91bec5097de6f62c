#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the array language of examples/language: sessions with their output (tests/language, docs/language.md), random
# expressions that all chapters must agree on, hostile input, Ctrl-C, files, and the bench.
#
# A session is a text in which lines that start with "> " are input, and all others the output. It is run by all chapters
# unless the first line names some: "> # chapters 3 4 5: ...".
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
build="${QN_BUILD_DIR:-$root/build/release}"
[ -x "$build/examples/language1" ] || { echo "1..0 # SKIP no examples in $build"; exit 0; }
export QUERN_CACHE=off QUERN_PROVIDER="${QUERN_PROVIDER:-$build/libquern-llvm.so}"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
n=0
failed=0

# report STATUS NAME FILE: a test point; on failure the beginning of the file.
report() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
        return
    fi
    echo "not ok $n - $2"
    head -n 30 "$3" 2> /dev/null | cut -c1-200 | sed 's/^/# /'
    failed=1
}

language() {
    timeout 120 "$build/examples/language$1" "${@:2}"
}

# run_session FILE NAME: runs a session in its chapters.
run_session() {
    local chapters="1 2 3 4 5" chapter
    if head -n 1 "$1" | grep -q '^> # chapter'; then
        chapters=$(head -n 1 "$1" | sed -E 's/^> # chapters? ([0-9 ]*).*/\1/')
    fi
    for chapter in $chapters; do
        sed -n 's/^> \{0,1\}//p' "$1" | language "$chapter" --echo > "$folder/out" 2> "$folder/err"
        report $((PIPESTATUS[1] != 0)) "$2 ends well in chapter $chapter" "$folder/err"
        sed 's/ $//' "$folder/out" | diff <(sed 's/ $//' "$1") - > "$folder/diff"
        report $? "$2 in chapter $chapter" "$folder/diff"
    done
}

echo "TAP version 13"

# ------------------------------------------------------------------------------------------------ sessions

for session in "$root"/tests/language/*.txt; do
    run_session "$session" "$(basename "$session" .txt)"
done

# Those of the tutorial: blocks of the kind `text` that begin with "> ".
awk -v to="$folder/doc" '
    /^```text$/ { number++; inside = 1; next }
    /^```$/ { inside = 0 }
    inside { print > (to number ".txt") }' "$root/docs/language.md" 2> "$folder/err"
for session in "$folder"/doc*.txt; do
    if [ -s "$session" ] && head -n 1 "$session" | grep -q '^> '; then
        run_session "$session" "docs/language.md $(basename "$session" .txt)"
    fi
done

# The code that the tutorial quotes: the lines between two markers of a file.
while read -r file marker; do
    awk -v start="/* [$marker] */" '
        index($0, start) { inside = 1; next }
        inside && index($0, "/* [end] */") { exit }
        inside { print }' "$root/$file" > "$folder/expected"
    awk -v start="<!-- $file [$marker] -->" '
        $0 == start { found = 1; next }
        found == 1 && /^```c$/ { found = 2; next }
        found == 2 && /^```$/ { exit }
        found == 2 { print }' "$root/docs/language.md" > "$folder/quoted"
    [ -s "$folder/expected" ] && diff "$folder/expected" "$folder/quoted" > "$folder/diff"
    report $? "docs/language.md quotes $file [$marker]" "$folder/diff"
done < <(sed -n 's/^<!-- \(examples\/[^ ]*\) \[\(.*\)\] -->$/\1 \2/p' "$root/docs/language.md")
[ "$(grep -c '^<!-- ' "$root/docs/language.md")" -ge 10 ]
report $? "docs/language.md quotes code" "$root/docs/language.md"

# ------------------------------------------------------------------------------------------------ agreement

# Random expressions whose numbers are small integers, so that no order of additions matters.
perl -e '
    srand($ARGV[0]);
    sub pick { $_[int rand @_] }
    sub e {
        my $d = shift;
        return pick(qw(x y A B C 2 3 1), "iota(4)", "expand(y, 1)", "transpose(C)", "[1, 2, 3, 4]") if $d == 0;
        my ($a, $b, $k) = (e($d - 1), e(int rand $d), pick(0, 1));
        return pick("($a + $b)", "($a - $b)", "min($a, $b)", "max($a, $b)", "-$a", "abs($a)", "($a < $b)", "f($a)", "f($b)",
            "where($a > 2, $b, $a)", "sum($a)", "sum($a, 0)", "sum($a, 1)", "least($a)", "greatest($a, $k)", "$a * $b",
            "($b == $a)", "g($a, $b)", "A[max(0, min(2, sum($b))), min(3, max(0, $a))]", "floor($a)");
    }
    print "let x = iota(4)\nlet y = [3, -1, 2]\nlet A = reshape(iota(12), 3, 4) - 5\nlet B = x - 7\n",
        "let C = transpose(A) - 2\nlet f(a) = a + sum(a)\nlet g(a, b) = where(a < b, a - 1, sum(b) + a)\n";
    print e(1 + int rand 4), "\n" for 1 .. $ARGV[1];' 7 120 > "$folder/random"
for chapter in 1 2 3 4; do
    language $chapter --echo < "$folder/random" > "$folder/random$chapter" 2> "$folder/err"
    report $? "random expressions end well in chapter $chapter" "$folder/err"
done
for chapter in 2 3 4; do
    diff "$folder/random1" "$folder/random$chapter" > "$folder/diff"
    report $? "random expressions have the results of chapter 1 in chapter $chapter" "$folder/diff"
done
[ "$(grep -c '^\[\|^-\{0,1\}[0-9]' "$folder/random1")" -gt 50 ]
report $? "most of them have results" "$folder/random1"

# ------------------------------------------------------------------------------------------------ hostile input

perl -e '
    srand(3);
    print "(" x 4000, "\n", "-" x 4000, "1\n", "[" x 4000, "\n", "1", "+1" x 2000, "\n", "f(" x 900, "\n";
    print "x" x 2000000, "\n1\0 + 2\n\xff\xfe\n", "1e99999 + 0x1p99999\n:\n:kernel\n:options x=y\nlet\nlet x\nlet f(\n";
    print "let f(x) = ", "f(" x 400, "x", ")" x 400, "\nf(1)\nlet h(x) = h(h(x))\nh(1)\n";
    print "let p(a,b,c,d,e,f,g,h,i) = 1\nlet a = reshape(1, 1, 1, 1, 1, 1, 1, 1, 1)\n";
    print "let v$_ = iota($_)\n" for 1 .. 1100;
    print "let z = iota(281474976710656)\niota(3)[iota(281474976710656)]\niota(20000000) * 0 + 1\n";
    print "let a = iota(100000000)\nlet b = a + 1\nlet c = b + 1\n1\n";
    print join("", map { chr(32 + int rand 95) } 1 .. 60), "\n" for 1 .. 300;
    print join("", map { chr(int rand 256) } 1 .. 60), "\n" for 1 .. 100;
    my @t = qw{( ) [ ] + - * / < == , let x iota sum 1 2 f expand transpose = 0.5 # where};
    print join(" ", map { $t[int rand @t] } 1 .. 1 + int rand 12), "\n" for 1 .. 500;' > "$folder/hostile"
for chapter in 1 4 5; do
    language $chapter < "$folder/hostile" > "$folder/out" 2> "$folder/err"
    report $? "hostile input ends well in chapter $chapter" "$folder/err"
done
for message in 'nested more than 100' 'at most 4095 characters' 'more than 1000 names' 'more than 1000 operations' \
    'no memory for an array' 'the commands are' 'at most 8 parameters' 'too many operands'; do
    grep -qF "$message" "$folder/out"
    report $? "... which is told: $message" "$folder/out"
done

# ------------------------------------------------------------------------------------------------ chapter 5

printf 'let y = iota(1000000)\n1\nsum(sin(expand(y, 1) * y))\n1 + 1\n' > "$folder/long"
"$build/examples/language5" < "$folder/long" > "$folder/out" 2>&1 &
pid=$!
for ((i = 0; i < 100; i++)); do
    sleep 0.3
    kill -0 $pid 2> /dev/null || break
    if grep -q '^1$' "$folder/out"; then
        kill -INT $pid 2> /dev/null
    fi
done
kill -KILL $pid 2> /dev/null && echo "# killed"
wait $pid 2> /dev/null
grep -q 'cancelled' "$folder/out"
report $? "Ctrl-C cancels a kernel that would run for hours" "$folder/out"
[ "$(tail -n 1 "$folder/out")" = 2 ]
report $? "... and the session goes on" "$folder/out"

printf ':kernel sum(iota(5) * 2)\n:plan sum(iota(5) * 3)\n:why sum(iota(5) * 4)\n:time iota(5) + 1\n' > "$folder/commands"
language 5 < "$folder/commands" > "$folder/out" 2> "$folder/err"
report $? "commands end well" "$folder/err"
for part in 'kernel "expression"' 'reduce sum striped' 'runs:' 'launches; first' '^20$' '^30$' '^40$'; do
    grep -q "$part" "$folder/out"
    report $? "commands show: $part" "$folder/out"
done
printf 'let x = iota(10)\n:options engine=interp\n:why x + 1\n:options engine=native compile=wait\n:why x + 1\n' > "$folder/commands"
language 5 < "$folder/commands" > "$folder/out" 2> "$folder/err"
grep -q 'runs:.*interpreter' "$folder/out" && grep -q 'runs: that version' "$folder/out"
report $? ":options chooses the engine" "$folder/out"
mkdir "$folder/cache"
chmod 700 "$folder/cache"
printf 'let x = iota(1000)\n:options compile=wait\nsum(x * x)\n' > "$folder/disk"
for run in 1 2; do
    QUERN_CACHE=$folder/cache language 5 < "$folder/disk" > "$folder/out$run" 2> "$folder/err"
    report $? "run $run with a cache on disk" "$folder/err"
done
[ -n "$(find "$folder/cache" -type f -size +0)" ] && cmp -s "$folder/out1" "$folder/out2"
report $? "code is kept on disk, and gives the same result" "$folder/out2"

# ------------------------------------------------------------------------------------------------ files, arguments, bench

printf 'let x = 3\nx + 1\n' > "$folder/good"
printf '1\n\n1 +\n2\n' > "$folder/bad"
[ "$(language 1 "$folder/good" 2> "$folder/err")" = 4 ]
report $? "a file runs" "$folder/err"
language 4 "$folder/bad" > "$folder/out" 2> "$folder/err"
[ $? = 1 ] && [ "$(cat "$folder/out")" = 1 ] && grep -qF "$folder/bad:3:4: expected an expression" "$folder/err"
report $? "a file ends at its first error, with status 1" "$folder/err"
language 1 "$folder/none" > "$folder/out" 2> "$folder/err"
[ $? = 1 ]
report $? "a file that is not there is status 1" "$folder/err"
language 1 --what > "$folder/out" 2> "$folder/err"
[ $? = 2 ] && grep -q '^usage' "$folder/err"
report $? "an unknown option is status 2" "$folder/err"
language 5 --bench > "$folder/out" 2> "$folder/err"
report $? "the bench's results agree" "$folder/out"
[ "$(grep -c ' x ' "$folder/out")" -ge 7 ] && grep -q 'code on disk' "$folder/out"
report $? "the bench has a row for each chapter" "$folder/out"

echo "1..$n"
exit $failed
