#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Prepares a public header for Doxygen; the header itself is never changed. Line by line:
#   1. the comment at the top becomes that of the file;
#   2. a declaration that follows another without a comment or a blank line shares its comment;
#   3. names that mean the same wherever they stand get their text from the table below;
#   4. lists kept as macros, X(NAME, number, "text", ...), become enumerators with the row's text, the rows of quern/dtypes.def and
#      quern/reducers.def enumerators, and those of the op table functions, with the row's last text.
use strict;
use warnings;

# Fields, handles and macros that the header leaves to common sense.
my %known = (
    reserved   => 'must be 0',
    id         => 'a number of the builder\'s; 0 is inert',
    rank       => 'number of dimensions',
    dtype      => 'a qn_dtype',
    extent     => 'number of indices',
    stride     => 'elements',
    dim        => 'the dimensions',
    data       => 'the element at the lower bounds',
    layout     => 'where the elements are',
    plan       => 'plan fields the caller fixes',
    message    => 'one line, zero-terminated',
    event_arg  => 'passed to event_hook',
    qn_context => 'Caches and threads. Opaque and counted.',
    qn_builder => 'A kernel under construction. Opaque.',
    qn_kernel  => 'A finished kernel. Opaque and counted.',
    qn_counters => 'Counters of a context.',
    QN_API     => 'Exported by the library.',
);

my ($file) = @ARGV;
open my $in, '<', $file or die "$file: $!";
my @lines = <$in>;
close $in;
my $text = join '', @lines;

# Rows of every list: name of the macro -> [[name, number, text], ...].
my %list;
while ($text =~ /^#define\s+(QN_\w+_LIST)\(X\)\s*\\\n((?:.*\\\n)*.*\n)/mg) {
    my ($name, $body) = ($1, $2);
    $body =~ s/\\\n/\n/g;
    push @{ $list{$name} }, [$1, $2, $3] while $body =~ /\bX\((\w+),\s*(?:(\d+),\s*)?"([^"]*)"/g;
}

# The op table, beside the header.
my @ops;
(my $table = $file) =~ s{[^/]*$}{quern/ops.def};
if ($text =~ m{#include "quern/ops\.def"} && open my $t, '<', $table) {
    while (<$t>) {
        push @ops, [$1, $2, $3] if /^QN_OP\(\w+,\s*(\w+),\s*\w+,\s*(\d+),.*"([^"]*)"\)\s*$/;
    }
    close $t;
}

# Rows of a table of enumerators beside the header: [NAME, number, last text].
sub rows_of {
    my ($name) = @_;
    (my $path = $file) =~ s{[^/]*$}{quern/$name.def};
    open my $t, '<', $path or return;
    my @rows;
    while (<$t>) {
        push @rows, [$1, $2, $3] if /^QN_[A-Z]+\((\w+),\s*(\d+),.*"([^"]*)"\)\s*$/;
    }
    close $t;
    return @rows;
}

my ($member, $is_file_done, $previous) = ('', 0, '');
my $in_comment = 0;
my $own = '';     # the comment being read
my $shared = '';  # the one that the next bare declaration shares
for my $i (0 .. $#lines) {
    my $line = $lines[$i];
    if (!$is_file_done && $line =~ m{^/\*\s*$}) {
        $line = "/** \@file\n";
        $is_file_done = 1;
    }
    $is_file_done = 1 if $line =~ m{^/\*\*};

    # A list of enumerators or fields, or of ops: written out.
    if ($line =~ /^\s*#\s*define QN_X\((.*?)\)\s*(.*)$/) {
        $member = $2;
        print "\n";
        next;
    }
    if ($line =~ /^\s*#\s*define QN_(?:OP|DTYPE|REDUCER)\(.*?\)\s*(.*)$/) {
        $member = $1;
        print "\n";
        next;
    }
    if ($line =~ /^\s*#\s*undef QN_(X|OP|DTYPE|REDUCER)\b/) {
        $member = '';
        print "\n";
        next;
    }
    if ($member ne '' && $line =~ /^\s*(QN_\w+_LIST)\(QN_X\)/) {
        for my $row (@{ $list{$1} }) {
            my $m = $member;
            my ($name, $number, $what) = @$row;
            $m =~ s/QN_(\w*)##name/QN_$1$name/;
            $m =~ s/\bname\b/$name/;
            $m =~ s/\bbit\b/$number/;
            $m =~ s/\bnumber\b/$number/;
            $m =~ s{([,;])\s*$}{$1 /**< $what */};
            print "$m ";
        }
        print "\n";
        next;
    }
    if ($member ne '' && $line =~ /#include "quern\/(dtypes|reducers)\.def"/) {
        for my $row ($member =~ /\\$/ ? () : rows_of($1)) { # a row of several lines is code
            my ($name, $number, $what) = @$row;
            print $member =~ /##NAME/ ? ($member =~ s/##NAME/$name/r =~ s/\bnumber\b/$number/r) . " /**< $what */ " : "$member ";
        }
        print "\n";
        next;
    }
    if ($member ne '' && $line =~ /#include "quern\/ops\.def"/) {
        for my $op (@ops) {
            my ($name, $arity, $what) = @$op;
            my $args = join ', ', 'qn_builder *b', map { "qn_val $_" } ('x', 'y', 'z')[0 .. $arity - 1];
            print $member =~ /=|QN_OP_/ ? "QN_OP_$name, /**< $what */ " : "/** $what */ QN_API qn_val qn_$name($args); ";
        }
        print "\n";
        next;
    }

    # Names from the table.
    if (!$in_comment && $previous !~ m{\*/\s*$} || $line =~ /^    /) {
        if ($line =~ /^    [\w ]+?\*?(\w+)(\[\w+\])?;\s*$/ && $known{$1} && $line !~ m{/\*}) {
            my $what = $known{$1};
            $line =~ s{\s*$}{ /**< $what */\n};
        } elsif ($line =~ /^typedef struct (\w+)( \1;| \{)\s*$/ && $known{$1}) {
            print $shared = "/** $known{$1} */ ";
        } elsif ($line =~ /^#define (QN_API)$/) {
            print "/** $known{$1} */ \n";
        }
    }

    # Comments that are shared.
    if ($in_comment) {
        $own .= $line;
        $in_comment = 0 if $line =~ m{\*/};
        $shared = $own unless $in_comment;
    } elsif ($line =~ m{^/\*\*}) {
        $own = $line;
        $in_comment = $line !~ m{\*/};
        $shared = $own unless $in_comment;
    } elsif ($line =~ /^\s*$/ || $line =~ m{^/\*}) {
        $shared = '';
    } elsif ($shared ne '' && $previous =~ /;\s*$|^\#\s*define/ && $line =~ /^(QN_API |\#\s*define QN_)/) {
        (my $copy = $shared) =~ s/\n/ /g;
        $copy =~ s/\s+\*\s(?!\/)/ /g;
        print $copy, $line;
        $previous = $line;
        next;
    }
    $previous = $line;
    print $line;
}
