#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Prepares a page in Markdown for Doxygen; the page itself is never changed. Doxygen 1.9 knows neither the anchors of
# headings that are usual elsewhere, page.md#a-heading, nor links to headers by their path:
#   1. a heading below the title gets the label PAGE--a-heading;
#   2. links to headings become references to such labels, links to headers references to their pages;
#   3. code and texts of links that are broken over two lines, where Doxygen loses its way, are joined;
#   4. a page with three headings or more gets a table of contents below its title.
use strict;
use warnings;

my ($file) = @ARGV;
(my $page = $file) =~ s{.*/}{};
$page =~ s/\.md$//;
open my $in, '<', $file or die "$file: $!";
my @lines = <$in>;
close $in;

# What a heading is called in links: lower case, no punctuation, blanks are dashes.
sub slug {
    my ($heading) = @_;
    $heading = lc $heading;
    $heading =~ s/\[([^\]]*)\]\([^)]*\)/$1/g;
    $heading =~ s/[^\w\- ]//g;
    $heading =~ s/ /-/g;
    return $heading;
}

# Labels are names for Doxygen: letters, digits, - and _.
sub label {
    my ($of, $slug) = @_;
    return "${of}--$slug";
}

my $n_headings = 0;
my $is_code = 0;
for my $line (@lines) {
    $is_code = !$is_code if $line =~ /^\s*```/;
    $n_headings++ if !$is_code && $line =~ /^## /;
}

$is_code = 0;
my ($has_title, $paragraph) = (0, '');

# Links and code may be broken over two lines: a paragraph is changed at once.
sub flush {
    my @parts = split /`/, $paragraph, -1;
    if (@parts % 2) { # every backtick has its partner
        $parts[2 * $_ + 1] =~ s/\n\s*/ /g for 0 .. $#parts / 2 - 1;
        $paragraph = join '`', @parts;
    }
    $paragraph =~ s{\[([^\]\[\n]*)\n\s*([^\]\[\n]*)\]\(}{[$1 $2](}g;
    $paragraph =~ s{\]\(#([\w-]+)\)}{"](\@ref " . label($page, $1) . ')'}ge;
    $paragraph =~ s{\]\((?:[\w./]*/)?([\w-]+)\.md#([\w-]+)\)}{"](\@ref " . label($1, $2) . ')'}ge;
    $paragraph =~ s{\]\((?:\.\./)?include/(?:quern/)?([\w.]+\.h(?:pp)?)\)}{](\@ref $1)}g;
    $paragraph =~ s{\]\((?:\.\./)?((?:examples|tests|ir|jit|runtime|LICENSE|NOTICE)[^)]*)\)}{]}g; # not part of the site
    print $paragraph;
    $paragraph = '';
}

for my $line (@lines) {
    if ($line =~ /^\s*```/) {
        flush();
        $is_code = !$is_code;
        print $line;
    } elsif ($is_code) {
        print $line;
    } elsif ($line =~ /^(#{2,6}) (.*?)\s*$/) {
        flush();
        my ($marks, $heading) = ($1, $2);
        (my $plain = $heading) =~ s/`//g; # which Doxygen shows as tags
        print "$marks $plain {#", label($page, slug($heading)), "}\n";
    } elsif (!$has_title && $line =~ /^# /) {
        flush();
        $has_title = 1;
        print $line;
        print "\n[TOC]\n" if $n_headings >= 3;
    } else {
        $paragraph .= $line;
        flush() if $line =~ /^\s*$/;
    }
}
flush();
