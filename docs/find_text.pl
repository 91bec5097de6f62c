#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# find_text.pl FOLDER: writes FOLDER/find_text.js, the text of the site that Doxygen made there, cut at its headings and
# at the members of headers, for find.html. Pages that only list names are left out.
use strict;
use warnings;

my ($folder) = @ARGV;
opendir my $dir, $folder or die "$folder: $!";
my @files = sort grep { /\.html$/ && !/^(find|annotated|classes|files|functions.*|globals.*|pages|namespace.*|dir_.*)\.html$/ &&
    !/_source\.html$/ } readdir $dir;
closedir $dir;

# Text of HTML, on one line.
sub text_of {
    my ($html) = @_;
    $html =~ s{<(script|style)\b.*?</\1>}{}gs;
    $html =~ s{</(?:p|div|li|td|th|tr|h\d|pre)>|<br\s*/?>}{ }g;
    $html =~ s/<[^>]*>//g;
    my %named = (lt => '<', gt => '>', amp => '&', quot => '"', nbsp => ' ', ndash => '-', mdash => '-', sect => '');
    $html =~ s/&#(\d+);/$1 < 128 ? chr $1 : ' '/ge;
    $html =~ s/&(\w+);/$named{$1} \/\/ ' '/ge;
    $html =~ s/\s+/ /g;
    $html =~ s/^ | $//g;
    return $html;
}

sub quoted {
    my ($text) = @_;
    $text =~ s/(["\\])/\\$1/g;
    $text =~ s{</}{<\\/}g;
    return "\"$text\"";
}

open my $out, '>', "$folder/find_text.js" or die "$folder/find_text.js: $!";
print $out "const find_text = [\n";
for my $file (@files) {
    open my $in, '<', "$folder/$file" or die "$file: $!";
    my $html = do { local $/; <$in> };
    close $in;
    my ($title) = $html =~ m{<title>(.*?)</title>}s;
    $title = text_of($title // $file);
    $title =~ s/^Quern: //;
    my ($body) = $html =~ m{<div class="contents">(.*?)<!-- contents -->}s or next;
    $body =~ s{<div class="toc">.*?</div>}{}s;
    # Anchors of headings and of members begin a section.
    my @parts = split m{(?=<h[1-6]><a class="anchor" id=|<a id="[a-z0-9]+" name=)}, $body;
    for my $part (@parts) {
        my ($anchor) = $part =~ m{^<(?:h[1-6]><a class="anchor"|a) id="([^"]+)"};
        my $heading = '';
        ($heading) = $part =~ m{^<h[1-6]>(.*?)</h[1-6]>}s if $part =~ /^<h/;
        ($heading) = $part =~ m{<h2 class="memtitle">(.*?)</h2>}s if $part =~ /^<a/;
        my $text = text_of($part);
        $heading = text_of($heading // '');
        $heading =~ s/^\W+ //;
        next if $text eq '';
        print $out '{page: ', quoted($title), ', heading: ', quoted($heading), ', url: ',
            quoted($file . (defined $anchor ? "#$anchor" : '')), ', text: ', quoted($text), "},\n";
    }
}
print $out "];\nif (typeof module !== \"undefined\")\n    module.exports = {find_text};\n";
close $out or die "$folder/find_text.js: $!";
