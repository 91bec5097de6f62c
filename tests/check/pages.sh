#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: docs/tool.md, the manual page and the completions know every command and option of the tool.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
build="${QN_BUILD_DIR:-$root/build/release}"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
n=0
failed=0

# is WHAT FOUND EXPECTED
is() {
    n=$((n + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        printf 'found %s\nexpected %s\n' "$2" "$3" | sed 's/^/# /'
        failed=1
    fi
}

echo "TAP version 13"
help=$("$build/quern" --help)
commands=$(sed -nE 's/^  quern ([-a-z]+).*/\1/p' <<< "$help")
options=$(sed -nE 's/^  (--[-a-z]+).*/\1/p' <<< "$help")
is "help has commands and options" "$(grep -cxE 'run|bench|cache' <<< "$commands") $(grep -cxE -- '--engine|--strict|--out' <<< "$options")" "3 3"

# unknown TEXT WORDS: those that the text does not contain as a word.
unknown() {
    local word
    for word in $2; do
        grep -qE -- "(^|[^-a-z])$word([^-a-z]|$)" <<< "$1" || echo "$word"
    done
}
page=$(cat "$root/docs/tool.md")
is "docs/tool.md knows all commands" "$(unknown "$(grep '^quern' <<< "$page")" "$commands")" ""
is "... and all options" "$(unknown "$page" "$options")" ""

# The manual page, as it is read where groff is.
page=$("$build/quern" --man)
is "the manual page knows all commands" "$(unknown "${page//\\-/-}" "$commands")" ""
is "... and all options" "$(unknown "${page//\\-/-}" "$options")" ""
if command -v groff > /dev/null; then
    is "... and is without mistakes" "$("$build/quern" --man | groff -man -Tascii -ww -z 2>&1)" ""
    is "... also where a line begins with a dot" "$("$build/quern" --man | groff -man -Tascii | grep -c '\.npy file, or one')" 1
else
    echo "ok $((++n)) # SKIP no groff"
    echo "ok $((++n)) # SKIP no groff"
fi

# completes WORDS...: what the last word may become, as bash cuts the line.
completes() {
    bash -c 'source <("$0" --completion); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _quern; echo "${COMPREPLY[*]}"' \
        "$build/quern" quern "$@"
}
touch one.qn two.npy three.txt
mkdir inside
is "a command is completed" "$(completes ru)" "run"
is "... all of them from nothing" "$(completes "" | tr ' ' '\n')" "$commands"
is "an option is completed" "$(completes run one.qn --eng)" "--engine"
is "... all of them from two dashes" "$(completes run one.qn -- | tr ' ' '\n')" "$options"
is "its values are" "$(completes run one.qn --engine "")" "auto interp native"
is "... also behind a sign of equality" "$(completes run one.qn --engine = n)" "native"
is "... which may be the last word" "$(completes run one.qn --engine =)" "auto interp native"
is "kernels, arrays and folders are" "$(completes run "")" "inside one.qn two.npy"
is "a file behind the name of a parameter is" "$(completes run one.qn x = t)" "two.npy"
is "a folder for an option that takes one is" "$(completes run one.qn --bundle "")" "inside"
is "nothing for a number is" "$(completes run one.qn --threads "")" ""
is "actions of cache are" "$(completes cache ver)" "verify"
is "any file for a picture is" "$(completes bench one.qn --plot thr)" "three.txt"

# zsh, with functions in place of its own that print what they are given: _describe shows the words before the colons.
completes_in_zsh() {
    zsh -fc 'compdef() { }
        _describe() { local -a all=("${(@P)2}"); print -l -- "${(@)all%%:*}" }
        compadd() { print -l -- "${@:2}" }
        _files() { print -- "files $*" }
        compset() { true }
        source <("$1" --completion zsh); words=("${@:2}"); CURRENT=${#words}; _quern' zsh "$build/quern" quern "$@"
}
if command -v zsh > /dev/null; then
    is "zsh: all commands" "$(completes_in_zsh "")" "$commands"
    is "zsh: all options" "$(completes_in_zsh run one.qn --)" "$options"
    is "zsh: values of an option" "$(completes_in_zsh run one.qn --engine "" | tr '\n' ' ')" "auto interp native "
    is "zsh: actions of cache" "$(completes_in_zsh cache "" | tr '\n' ' ')" "list verify clear export import "
    is "zsh: a folder" "$(completes_in_zsh run one.qn --bundle "")" "files -/"
    is "zsh: kernels and arrays" "$(completes_in_zsh run "")" "files -g *.(qn|npy)"
else
    for what in commands options values actions folder files; do
        echo "ok $((++n)) # SKIP no zsh: $what"
    done
fi
echo "1..$n"
exit $failed
