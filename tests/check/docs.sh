#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# TAP: the pages and the headers become a site without a warning, whose links have an end and whose search finds text.
root="${QN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
if ! command -v doxygen > /dev/null; then
    echo "1..0 # SKIP no doxygen"
    exit 0
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$root" || exit 1
site="$folder/html"
n=0
failed=0

# report STATUS WHAT: the log follows a failure.
report() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        head -20 "$folder/log" | sed 's/^/# /'
        failed=1
    fi
}

echo "TAP version 13"
DOXYGEN_OUTPUT="$folder" doxygen docs/Doxyfile > "$folder/log" 2>&1 && [ ! -s "$folder/log" ]
report $? "the site is made without a warning"
perl docs/find_text.pl "$site" > "$folder/log" 2>&1 && [ -s "$site/find_text.js" ]
report $? "the text for the search is made"

# Links to files of the site and to anchors in them; the search's own page makes its links when it runs.
perl -e '
    my ($site) = @ARGV;
    my (%anchor, %links);
    for my $path (glob "$site/*.html") {
        (my $file = $path) =~ s{.*/}{};
        open my $in, "<", $path or die $path;
        my $html = do { local $/; <$in> };
        $anchor{$file}{$_} = 1 for $html =~ /\b(?:id|name)="([^"]*)"/g;
        $links{$file} = [grep { !/^(?:https?|mailto|javascript):/ } $html =~ /\bhref="([^"]*)"/g];
    }
    my $n = 0;
    for my $file (sort keys %links) {
        for my $link (@{ $links{$file} }) {
            $n++;
            my ($to, $at) = $link =~ /^([^#]*)#?(.*)$/;
            $to = $file if $to eq "";
            if (!-e "$site/$to") {
                print "$file: $link: no such file\n";
            } elsif ($at ne "" && $to =~ /\.html$/ && !$anchor{$to}{$at}) {
                print "$file: $link: no such place\n";
            }
        }
    }
    print "only $n links\n" if $n < 1000;' "$site" > "$folder/log" 2>&1 && [ ! -s "$folder/log" ]
report $? "every link leads somewhere"
grep -l '&lt;tt&gt;\|^@section' "$site"/*.html > "$folder/log"
[ ! -s "$folder/log" ]
report $? "no page shows marks of Doxygen instead of its text"
pages=$(find docs -name '*.md' | wc -l)
find "$site" -name 'md_docs_*.html' > "$folder/log"
[ "$(wc -l < "$folder/log")" = "$pages" ]
report $? "every page of docs/ is there"
grep -q 'Quern is a C library that builds array kernels at run time' "$site/index.html" 2> "$folder/log"
report $? "the start page is README.md"
grep -q 'class="toc"' "$site/md_docs_running.html" 2> "$folder/log"
report $? "a page has its table of contents"
grep -q 'find.html' "$site/menudata.js" 2> "$folder/log"
report $? "the menu has the search"
for file in find.html find.js search/search.js; do
    ! grep -nE '(src|href)="(https?:)?//|fetch\(|XMLHttpRequest' "$site/$file" > "$folder/log" && [ -s "$site/$file" ]
    report $? "$file needs no network"
done
node=$(command -v node || command -v nodejs)
if [ -n "$node" ]; then
    "$node" -e '
        const {find_text} = require(process.argv[1] + "/find_text.js"), {find, excerpt} = require(process.argv[1] + "/find.js");
        const assert = require("assert");
        const first = find(find_text, "cancelling")[0];
        assert(first.url === "md_docs_running.html#running--cancelling", first.url);
        assert(find(find_text, "qn_launch")[0].url.startsWith("quern_8h.html#"));
        assert(find(find_text, "no-such-word-here").length === 0 && find(find_text, " ").length === 0);
        const both = find(find_text, "roofline intensity");
        assert(both.length > 0 && both.every(s => /roofline/i.test(s.page + s.heading + s.text)));
        const parts = excerpt("aa bb aa", "aa b");
        assert.deepStrictEqual(parts.map(p => p.text), ["aa", " ", "b", "b", " ", "aa"]);
        assert.deepStrictEqual(parts.map(p => p.is_found), [true, false, true, true, false, true]);
        for (const s of find_text)
            assert(s.text !== "" && !/<\/?(div|p|td)\b/.test(s.text), JSON.stringify(s));
    ' "$site" > "$folder/log" 2>&1
    report $? "the search finds headings, functions and text"
else
    echo "ok $((++n)) # SKIP no node: the search is not tried"
fi
echo "1..$n"
exit $failed
